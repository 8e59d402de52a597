"""`OpenVariables`: the variables of unknown shape that compiled programs read."""

from collections.abc import Sequence
from typing import Any, final


def are_held(shapes: Sequence[tuple[Any, tuple[int, ...]]]) -> bool:
    """Return True if variables have the shapes that a program was traced with."""
    return all(variable.held.shape == shape for variable, shape in shapes)


@final
class OpenVariables:
    """The variables of unknown shape that the programs of a function read. For other shapes it is traced again.

    Attributes:
        found: The variables.
    """

    def __init__(self) -> None:
        self.found: dict[Any, None] = {}

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes that they hold now."""
        return [variable.held.shape for variable in self.found]

    def add(self, traced: Sequence[tuple[Any, tuple[int, ...]]]) -> list[tuple[int, ...]]:
        """Add variables, and the shapes that a program was traced with; return the shapes of those that are new."""
        new = [(variable, shape) for variable, shape in traced if variable not in self.found]
        self.found.update(dict.fromkeys(variable for variable, _ in new))
        return [shape for _, shape in new]
