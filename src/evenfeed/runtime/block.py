"""A Block: a run of elements as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core.conversion import Array


@final
@dataclass(frozen=True, slots=True)
class Block:
    """A run of elements: for each part one array with a leading axis, None for a None."""

    columns: tuple[Array | None, ...]
    length: int

    def row(self, index: int) -> list[Any]:
        """Return the parts of one element."""
        # The dots keep a scalar an array, so that every part of an element has a shape and a dtype.
        return [None if column is None else column[index, ...] for column in self.columns]

    def cut(self, start: int, stop: int) -> "Block":
        """Return the elements from `start` up to `stop` or the end, without copying them."""
        if start == 0 and stop >= self.length:
            return self
        columns = tuple(None if c is None else c[start:stop] for c in self.columns)
        return Block(columns, min(stop, self.length) - start)

    @property
    def bytes_per_row(self) -> int:
        """How much memory one element takes, pointers only where it is text."""
        return sum(0 if c is None else c.nbytes for c in self.columns) // max(1, self.length)


def concatenated(blocks: Sequence[Block]) -> Block:
    """Return the elements of all blocks, one after the other, as one."""
    if len(blocks) == 1:
        return blocks[0]
    columns = zip(*(block.columns for block in blocks), strict=True)
    joined = tuple(None if parts[0] is None else np.concatenate(parts) for parts in columns)
    return Block(joined, sum(block.length for block in blocks))
