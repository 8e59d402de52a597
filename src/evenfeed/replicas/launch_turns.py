"""Launches programs on several devices one at a time, so that XLA always has threads left to run them.

Programs that assign variables also take turns: from the values that one reads until the new ones are stored, no other
thread runs another. Otherwise threads that add to one variable would lose each other's additions. Assignments outside of
programs take no turn: one that comes between such a program's read and its assignment is lost.
"""

from collections.abc import Callable
from threading import RLock
from typing import Any, Final, TypeVar, final

from evenfeed.core.lazy_jax import jax_tree
from evenfeed.tensors.device_arrays import is_traced

_Result = TypeVar("_Result")

# A thread that holds one of these may take those below it, but none above it.
_compiling: Final = RLock()
_assigning: Final = RLock()
_launching: Final = RLock()


@final
class Launch:
    """A program that no two threads launch at once, nor any other such program.

    A launch holds a thread of XLA's CPU client for each device. Once 32 programs are under way it holds them until one of
    these is finished, and several launches together would leave no thread that runs them (docs/decisions/devices.md).
    """

    __slots__ = ("_is_compiled", "_program")

    def __init__(self, program: Callable[..., Any]) -> None:
        self._program = program
        self._is_compiled = False

    def __call__(self, *arrays: Any) -> Any:
        if self._is_compiled:
            with _launching:
                return self._program(*arrays)
        with _compiling:  # for a long time: programs that are compiled already need not wait
            result = self._program(*arrays)
            self._is_compiled = not any(map(is_traced, jax_tree.tree_leaves(result)))
            return result

    def assigning(self, assign: Callable[..., _Result], *args: Any) -> _Result:
        """Call a function that reads variables, runs this program, and assigns them."""
        if not self._is_compiled:
            with _compiling:
                if not self._is_compiled:
                    with _assigning:  # other programs that assign wait until this one is compiled
                        return assign(*args)
        with _assigning:  # `__call__` takes its turn to launch
            return assign(*args)


def assigning(assign: Callable[..., _Result], *args: Any) -> _Result:
    """Call a function that reads variables, runs a program on one device, and assigns them."""
    with _assigning:
        return assign(*args)


def at_any_time(assign: Callable[..., _Result], *args: Any) -> _Result:
    """Call a function that assigns variables, without waiting for others."""
    return assign(*args)


def turns(run: Callable[..., Any], *, waits: bool) -> Callable[..., Any]:
    """Return what calls a function that runs a program and assigns variables: `assigning`, or one of its kind.

    Args:
        run: The program.
        waits: Whether it waits for Python code or other workers. They may assign variables too, so it must not have
            the turn meanwhile.
    """
    if waits:
        return at_any_time
    return run.assigning if isinstance(run, Launch) else assigning
