"""Operators that return one element for each that they read."""

from typing import final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.runtime.operator import Operator, State
from evenfeed.runtime.rows import numbered


@final
class CountElements(Operator):
    """Puts a count before each element."""

    def __init__(self, child: Operator, start: int) -> None:
        self._child = child
        self._next = start

    def read(self, most: int) -> Block | None:
        """Return the next elements with their numbers."""
        try:
            block = self._child.read(most)
        except Exception:
            self._next += 1  # an element that fails has a number too
            raise
        if block is None:
            return None
        first = self._next
        self._next += block.length
        return numbered(block, np.arange(first, self._next, dtype=np.int64))

    def state(self) -> State:
        """Return the next number, and the child's position."""
        return [self._next, self._child.state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._next, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)
