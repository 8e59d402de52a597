"""Launches programs on several devices one at a time, so that XLA always has threads left to run them."""

from collections.abc import Callable
from threading import RLock
from typing import Any, Final

_compiling: Final = RLock()
_launching: Final = RLock()


def launched_in_turn(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program that no two threads launch at once, nor any other such program.

    A launch holds a thread of XLA's CPU client for each device. Once 32 programs are under way it holds them until one of
    these is finished, and several launches together would leave no thread that runs them (docs/decisions/devices.md).
    """
    is_compiled = False

    def launch(*arrays: Any) -> Any:
        nonlocal is_compiled
        if is_compiled:
            with _launching:
                return program(*arrays)
        with _compiling:  # for a long time: programs that are compiled already need not wait
            result = program(*arrays)
            is_compiled = True
            return result

    return launch
