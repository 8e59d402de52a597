"""Libraries with a setting of their own that follows the current strategy, such as Keras's distribution."""

from collections.abc import Callable
from typing import Final, final


@final
class Followers:
    """Functions to call when the current strategy of a thread changes."""

    def __init__(self) -> None:
        self._functions: list[Callable[[], None]] = []

    def add(self, function: Callable[[], None]) -> None:
        """Call a function now, and after each change. It runs in the thread whose strategy changed."""
        if function not in self._functions:
            self._functions.append(function)
            function()

    def notify(self) -> None:
        """Call the functions, because a scope was entered or left."""
        for function in self._functions:
            function()


followers: Final = Followers()
