"""Reads in long stretches where nobody can see it, so that compiled functions are called seldom."""

from collections.abc import Callable
from time import perf_counter
from typing import Final, final

from evenfeed.core.block import Block
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.operator import Fed, Operator
from evenfeed.runtime.whence import Whence

# What is read and not used in the end is lost: no stretch takes longer, or more memory.
_LONGEST_READ: Final = 0.002
_MOST_BYTES: Final = 1 << 20


def widened(operator: Operator, child: Operator, function: RowFunction) -> Operator:
    """Return an operator that runs `function` on what `child` gives, in long stretches where it may."""
    free = child.reads_freely and function.is_pure and function.is_vectorised
    return ReadWide(operator) if free else operator


@final
class Stretch:
    """How many elements to read at a time: 1, 2, 4, … times what is asked for, so that the first come soon.

    Attributes:
        rows: How many to read next, if not more are asked for.
    """

    def __init__(self) -> None:
        self.rows = 1

    def read(self, read: Callable[[int], Block | None], most: int) -> Block | None:
        """Return the next stretch of elements, which may be more than `most`."""
        count, self.rows = max(most, self.rows), 1  # behind an error it begins anew
        start = perf_counter()
        block = read(count)
        took = perf_counter() - start
        if block is not None:
            self.rows = _next_count(count, block, took)
        return block


def _next_count(count: int, block: Block, took: float) -> int:
    if took > _LONGEST_READ:
        return max(1, count // 2)
    longer = 2 * count * block.bytes_per_row <= _MOST_BYTES and 2 * took <= _LONGEST_READ
    return 2 * count if longer else count


@final
class ReadWide(Fed):
    """Reads more than it is asked for, and keeps the rest for the next reads.

    The elements do not depend on how long the stretches are.
    """

    def __init__(self, child: Operator) -> None:
        super().__init__(child)
        self._stretch = Stretch()

    @property
    def reads_freely(self) -> bool:
        """It is only used where that is so."""
        return True

    def read(self, most: int) -> Block | None:
        """Return elements that were read before, or else the first of a new stretch."""
        if not self._feed.is_used_up:
            return self._feed.read(most)
        rows = self._stretch.read(self._feed.read, most)
        if rows is None:
            return None
        self._feed.give_back(max(0, rows.length - most))
        return rows.cut(0, most)

    def whence(self, count: int) -> Whence:
        """Return where the same elements of the child come from."""
        return self._feed.whence(count)
