"""Keeps the rows of many small parts of files together: rows of any number of parts are then one gather."""

from collections.abc import Mapping
from typing import Final, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated, fetched_apart

# Larger parts are not copied: a gather takes longer than to find them.
_MOST_OF_ONE: Final = 1 << 18
_MOST_OF_ALL: Final = 1 << 26

_UNKNOWN, _REFUSED = -1, -2  # in place of a Block


@final
class SmallParts:
    """The decoded rows of small parts, in a few Blocks, each about twice as long as the next.

    Args:
        count: How many parts there are, small or not.
    """

    def __init__(self, count: int) -> None:
        self._blocks: list[Block] = []
        self._parts: list[Positions] = []  # the parts in each Block
        self._block_of = np.full(count, _UNKNOWN)
        self._first = np.zeros(count, np.int64)  # the first row of each part, in its Block
        self._bytes = 0

    def has_room(self, size: int) -> bool:
        """Return True if a part of this many bytes may be added."""
        return size <= _MOST_OF_ONE and self._bytes + size <= _MOST_OF_ALL

    def reserve(self, size: int) -> None:
        """Count the bytes of a part that will be added."""
        self._bytes += size

    def missing(self, parts: Positions) -> Positions:
        """Return which of these parts were neither added nor refused, each once."""
        return np.unique(parts[self._block_of[parts] == _UNKNOWN])

    def holds(self, parts: Positions) -> bool:
        """Return True if all of these parts were added."""
        return bool((self._block_of[parts] >= 0).all())

    def refuse(self, part: int) -> None:
        """Note that a part is never added."""
        self._block_of[part] = _REFUSED

    def add(self, parts: Mapping[int, Block]) -> None:
        """Add the rows of parts."""
        numbers = np.array([*parts])
        lengths = np.array([block.length for block in parts.values()])
        self._block_of[numbers] = len(self._blocks)
        self._first[numbers] = np.cumsum(lengths) - lengths
        self._blocks.append(concatenated([*parts.values()]))
        self._parts.append(numbers)
        while len(self._blocks) > 1 and 2 * self._blocks[-1].length > self._blocks[-2].length:
            self._join_last_two()

    def gather(self, parts: Positions, within: Positions) -> Block:
        """Return for every i row `within[i]` of part `parts[i]`; all of these parts were added."""
        rows = self._first[parts] + within
        return fetched_apart(
            self._block_of[parts], rows, lambda block, mine: self._blocks[block].gather(mine)
        )

    def run(self, part: int, start: int, count: int) -> Block | None:
        """Return rows of one part from `start` on, as views; None if it was not added."""
        block = int(self._block_of[part])
        if block < 0:
            return None
        first = int(self._first[part]) + start
        return self._blocks[block].cut(first, first + count)

    def _join_last_two(self) -> None:
        last, numbers = self._blocks.pop(), self._parts.pop()
        self._block_of[numbers] -= 1
        self._first[numbers] += self._blocks[-1].length
        self._blocks[-1] = concatenated([self._blocks[-1], last])
        self._parts[-1] = np.concatenate([self._parts[-1], numbers])
