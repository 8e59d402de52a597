"""Whether a user's function can be sent to another process, and what to type where it cannot."""

import os
import pickle
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, final

from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from evenfeed.core.side_effects import Effect, Effects
from evenfeed.runtime.functions.calls import name_of

# Set in a process while it loads the user's program again, for a function that is defined there.
LOADING_MAIN: Final = ContextVar("LOADING_MAIN", default=False)

_SHARED: Final = (Effect.READS, Effect.ASSIGNS, Effect.PULLS)

GUARD: Final = (
    'put what the program does below `if __name__ == "__main__":`, or the function into a module of its '
    "own."
)


def check_portable(function: Callable[..., Any], vectorize: bool | None) -> None:
    """Raise, at the line that asks for processes, where they could not load the function."""
    if vectorize:
        raise InvalidArgumentError(
            "processes=True runs a function element by element, but vectorize=True asks for Blocks.",
            fix="leave one of them out.",
        )
    if sys.platform != "linux":
        raise UnimplementedError(
            "processes=True needs Linux, whose processes can share memory that has no name.",
            fix="leave it out: num_parallel_calls=… runs the function in threads.",
        )
    if LOADING_MAIN.get():
        return  # what the first process checked, and never runs here
    name = name_of(function)
    look = _Look()
    try:
        look.dump(function)
    except Exception as error:
        raise InvalidArgumentError(
            f"{name} cannot be sent to another process: {error}",
            fix="write it with def at the top level of a module, and bind values to it with "
            "functools.partial; or leave processes=True out.",
        ) from error
    if look.needs_main and not _main_has_a_file():
        raise InvalidArgumentError(
            f"{name} is defined in a program without a file (a notebook, python -c, standard input), "
            "where another process cannot find it.",
            fix="put it into a module, say steps.py, and write `from steps import …`.",
        )


def check_alone(name: str, effects: Effects) -> None:
    """Raise if a function shares a variable or an iterator with the program that it would be sent away from."""
    shared = [effect for effect in effects if effect in _SHARED]
    if shared:
        raise _shares(name, effects.text(*shared))


@final
class EffectsElsewhere(Effects):
    """What a function does in another process, where what it shares with the program is only a copy."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def add(self, effect: Effect, name: str = "") -> None:
        """Raise for what the program would not see."""
        super().add(effect, name)
        if effect in _SHARED:
            raise _shares(self._name, self.text(effect))


def _shares(name: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} {what}, but runs in processes, which have copies of their own.",
        fix="leave processes=True out, or bind the value that the function needs: "
        "functools.partial(function, variable.numpy()).",
    )


def refuse_while_loading_main(name: str) -> None:
    """Raise in a process that would start processes itself, because it runs the user's program again."""
    if LOADING_MAIN.get():
        raise FailedPreconditionError(
            f"Another process loads this program again, for {name} is defined in it, and so comes to "
            "where processes are started.",
            fix=GUARD,
        )


def _main_has_a_file() -> bool:
    main = sys.modules["__main__"]
    if main.__spec__ is not None:
        return True
    path = getattr(main, "__file__", None)
    return path is not None and os.path.isfile(path)


@final
class _Look(pickle.Pickler):
    """Goes through all that would be sent, without copying it."""

    def __init__(self) -> None:
        super().__init__(_Nowhere(), 5, buffer_callback=lambda _: None)
        self.needs_main = False

    def reducer_override(self, obj: Any) -> Any:
        self.needs_main |= getattr(obj, "__module__", None) == "__main__"
        return NotImplemented


@final
class _Nowhere:
    def write(self, data: Any) -> int:
        return len(data)
