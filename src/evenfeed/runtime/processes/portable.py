"""Checks that a user function can run in another process: the platform, the main program, shared state."""

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, final

from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from evenfeed.core.side_effects import Effect, Effects
from evenfeed.runtime.processes.pickling import check_pickles

# True in a process while it loads the main program again, for a function that is defined there.
LOADING_MAIN: Final = ContextVar("LOADING_MAIN", default=False)

_SHARED: Final = (Effect.READS, Effect.ASSIGNS, Effect.PULLS)

GUARD: Final = (
    'move the program\'s top-level code below `if __name__ == "__main__":`, or move the function to a '
    "module of its own."
)


def check_portable(function: Callable[..., Any], vectorize: bool | None) -> None:
    """Raise at the line that asks for processes if they could not load the function."""
    if vectorize:
        raise InvalidArgumentError(
            "processes=True runs a function element by element, but vectorize=True asks for Blocks.",
            fix="pass only one of them.",
        )
    if sys.platform != "linux":
        raise UnimplementedError(
            "processes=True needs Linux: it uses anonymous shared memory.",
            fix="omit it: num_parallel_calls=… runs the function in threads.",
        )
    if LOADING_MAIN.get():
        return  # the first process has checked it, and the function never runs here
    check_pickles(function)


def check_alone(name: str, effects: Effects) -> None:
    """Raise if a function shares a variable or an iterator with the program that starts the processes."""
    shared = [effect for effect in effects if effect in _SHARED]
    if shared:
        raise _shares_state(name, effects.text(*shared))


@final
class EffectsElsewhere(Effects):
    """The effects of a function in another process, which only has a copy of the program's state."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def add(self, effect: Effect, name: str = "") -> None:
        """Raise if the program would not see the effect."""
        super().add(effect, name)
        if effect in _SHARED:
            raise _shares_state(self._name, self.text(effect))


def _shares_state(name: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} {what}, but runs in processes, which have their own copies.",
        fix="omit processes=True, or bind the value that the function needs: "
        "functools.partial(function, variable.numpy()).",
    )


def refuse_while_loading_main(name: str) -> None:
    """Raise if this process only loads the main program again, and would start processes itself."""
    if LOADING_MAIN.get():
        raise FailedPreconditionError(
            f"{name} is defined in the main program, so another process loads that program again, and "
            "the program would start processes there too.",
            fix=GUARD,
        )
