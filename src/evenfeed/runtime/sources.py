"""The rows that a plan begins with."""

from collections.abc import Sequence
from typing import final

from evenfeed.core.block import Block, Column, Positions, read_only
from evenfeed.plan.sources import Range
from evenfeed.runtime.rows import Rows


@final
class Numbers(Rows):
    """The numbers of a range."""

    def __init__(self, node: Range) -> None:
        self._node = node
        self.size = node.size

    def fetch(self, positions: Positions) -> Block:
        """Return the numbers at `positions`."""
        numbers = self._node.start + self._node.step * positions
        return Block((numbers.astype(self._node.dtype, copy=False),), len(positions))


@final
class Arrays(Rows):
    """The rows of arrays of one length."""

    def __init__(self, columns: Sequence[Column], size: int) -> None:
        # An element that a user changes must not change the source.
        self._block = read_only(Block(tuple(columns), size))
        self.size = size

    def fetch(self, positions: Positions) -> Block:
        """Return copies of the rows at `positions`."""
        return self._block.gather(positions)

    def run(self, start: int, count: int) -> Block:
        """Return the rows as views."""
        return self._block.cut(start, start + count)
