"""Warns if every batch is uneven, and recommends a batch size that divides evenly.

A function that has also run on even parts gets no warning: only its last batch is partial.
"""

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, final
from weakref import WeakSet

from evenfeed.core.callsite import where_called

_STEPS: Final = 3

# The code objects of functions that were compiled for even parts, by any strategy.
_seen_even: Final[WeakSet[Any]] = WeakSet()


def note_even(function: Callable[..., Any]) -> None:
    """Remember that a function also runs on even parts."""
    _seen_even.add(_code(function))


@final
class Watch:
    """Counts the steps of a function that runs on uneven parts.

    Args:
        function: The user function.
        lengths: The number of rows of each replica; empty if the parts differ in something else.
    """

    def __init__(self, function: Callable[..., Any], lengths: Sequence[int]) -> None:
        self._code = _code(function)
        self._lengths = list(lengths)
        self._origin = where_called()
        self._left = _STEPS

    def step(self) -> None:
        """Count a step. Warn, once, if the function has run on uneven parts only."""
        self._left -= 1
        if self._left == 0 and self._lengths and self._code not in _seen_even:
            warnings.warn_explicit(
                self._message(),
                UserWarning,
                self._origin.filename if self._origin else "<unknown>",
                self._origin.line if self._origin else 0,
            )

    def _message(self) -> str:
        count = len(self._lengths)
        below = sum(self._lengths) // count * count
        sizes = f"{below} or {below + count}" if below else f"{count}"
        return (
            f"The replicas get {self._lengths} rows at every step. Uneven parts cannot run as one program, which is "
            f"slower. A batch size of {sizes} divides evenly among {count} replicas."
        )


def _code(function: Callable[..., Any]) -> Any:
    """Return an object that identifies a function even if it is redefined at each step."""
    return getattr(inspect.unwrap(function), "__code__", None) or function
