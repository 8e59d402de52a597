"""Checks that a user function can run in another process: pickling, the main program, shared state."""

import os
import pickle
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, final

from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from evenfeed.core.side_effects import Effect, Effects
from evenfeed.runtime.functions.calls import name_of

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
    name = name_of(function)
    check = _PickleCheck()
    try:
        check.dump(function)
    except Exception as error:
        raise InvalidArgumentError(
            f"{name} cannot be sent to another process: {error}",
            fix="define it with def at the top level of a module, and bind values to it with "
            "functools.partial; or omit processes=True.",
        ) from error
    if check.needs_main and not _main_has_a_file():
        raise InvalidArgumentError(
            f"{name} is defined in a program without a file (a notebook, python -c, standard input), "
            "so another process cannot import it.",
            fix="move it to a module, say steps.py, and write `from steps import …`.",
        )


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


def _main_has_a_file() -> bool:
    main = sys.modules["__main__"]
    if main.__spec__ is not None:
        return True
    path = getattr(main, "__file__", None)
    return path is not None and os.path.isfile(path)


@final
class _PickleCheck(pickle.Pickler):
    """Pickles an object without copying or keeping the data."""

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
