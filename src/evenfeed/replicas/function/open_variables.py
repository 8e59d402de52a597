"""`Candidates`: the programs of one signature. Each is for other shapes of the variables of unknown shape that it reads."""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, final

from evenfeed.replicas.function.programs import Program

# A function of a variable that grows with each step needs another program each time.
_MOST: Final = 32


def are_held(shapes: Sequence[tuple[Any, tuple[int, ...]]]) -> bool:
    """Return True if variables have the shapes that a program was traced with."""
    for variable, shape in shapes:  # noqa: SIM110 - a generator would cost more than most steps have to check
        if variable.held.shape != shape:
            return False
    return True


@final
class Candidates:
    """The programs of one signature. Those that were not used for the longest time are forgotten."""

    def __init__(self) -> None:
        self._programs: deque[Program] = deque(maxlen=_MOST)

    def find(self) -> Program | None:
        """Return the program for the shapes that variables have now, if there is one."""
        found = next((each for each in self._programs if are_held(each.open_shapes)), None)
        if found is not None:
            self._programs.remove(found)
            self._programs.append(found)
        return found

    def add(self, program: Program) -> None:
        """Add a program that was traced just now."""
        self._programs.append(program)
