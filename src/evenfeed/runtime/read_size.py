"""Reads in long stretches where nobody can see it, so that compiled functions are called seldom."""

from collections.abc import Callable
from time import perf_counter
from typing import Final, final

from evenfeed.core.block import Block
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import Operator, PushbackOperator, rows_per_block
from evenfeed.runtime.provenance import Provenance

# What is read and not used in the end is lost, and whoever waits for the first element waits for all: no stretch takes
# longer, or more memory.
_LONGEST_READ: Final = 0.002
# Twice as many elements are tried now and then, unless a read takes longer.
_LONGEST_TRIAL: Final = 0.02
# So many reads pass between two trials: more from trial to trial, if none of them paid.
_SHORTEST_WAIT: Final = 4
_LONGEST_WAIT: Final = 256
# An element must take so much less in a stretch that is twice as long.
_PAYS: Final = 0.75


def widened(operator: Operator, child: Operator, function: RowFunction) -> Operator:
    """Return an operator that runs `function` on what `child` gives, in long stretches where it may."""
    free = child.reads_freely and function.is_pure and function.is_vectorised
    return ReadWide(operator) if free else operator


@final
class Stretch:
    """How many elements to read at a time: 1, 2, 4, … times what is asked for, so that the first come soon.

    A stretch that takes too long is shorter the next time, unless that does not pay: a compiled function takes as
    long for one element as for all that it was compiled for.

    Attributes:
        rows: How many to read next, if not more are asked for.
    """

    def __init__(self) -> None:
        self.rows = 1
        self._last = 0, 0.0  # how many were asked for, and what one took
        self._least = 1  # fewer take as long
        # How many reads to wait before twice as many are tried again: a busy machine may have spoilt the last trial.
        self._wait = 0
        self._waited = 0

    def read(self, read: Callable[[int], Block | None], most: int) -> Block | None:
        """Return the next stretch of elements, which may be more than `most`."""
        # A multiple of what is asked for: no later read then has to join the rest of one stretch to the next.
        count = max(most, self.rows - self.rows % most)
        self.rows = 1  # after an error it starts over
        start = perf_counter()
        block = read(count)
        if block is not None:
            self.learn(count, block, perf_counter() - start)
        return block

    def learn(self, count: int, block: Block, took: float) -> None:
        """Choose how many to read next, from how long a read for `count` took."""
        each = took / block.length
        self.rows = min(self._next(count, took, each), rows_per_block(block))
        self._last = count, each

    def _next(self, count: int, took: float, each: float) -> int:
        before, each_before = self._last
        if 2 * took <= _LONGEST_READ:
            return 2 * count
        if count > max(before, self._least) and each < _PAYS * each_before:
            self._wait = self._waited = 0
            return 2 * count
        if count < before and each * _PAYS > each_before:
            self._least = before
        if count <= self._least and took < _LONGEST_TRIAL and self._tries():
            return 2 * count
        return max(self._least, count // 2) if took > _LONGEST_READ else count

    def _tries(self) -> bool:
        """Return True if it is time to try twice as many elements; the next wait is twice as long."""
        self._waited += 1
        if self._waited <= self._wait:
            return False
        self._wait, self._waited = min(2 * self._wait + _SHORTEST_WAIT, _LONGEST_WAIT), 0
        return True


@final
class ReadWide(PushbackOperator):
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

    def provenance(self, count: int) -> Provenance:
        """Return where the same elements of the child come from."""
        return self._feed.provenance(count)
