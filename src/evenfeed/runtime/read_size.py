"""Reads long stretches ahead where that is unobservable, so that compiled functions are called less often."""

from collections.abc import Callable
from time import perf_counter
from typing import Final, final

from evenfeed.core.block import Block
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import Operator, PushbackOperator, State, rows_per_block
from evenfeed.runtime.provenance import Provenance

# In seconds. Elements that are never used are wasted work, and the first element waits for the whole stretch, so no
# stretch takes longer.
_LONGEST_READ: Final = 0.002
# In seconds. Now and then twice as many elements are tried: seldom if a read takes longer than the first of these, because
# only a few plans take as long for one element as for many; never if it takes longer than the second.
_LONGEST_TRIAL: Final = 0.02
_LONGEST_SLOW_TRIAL: Final = 0.5
_SLOW_WAIT: Final = 16
# The number of reads between two trials; it grows as long as trials do not pay.
_SHORTEST_WAIT: Final = 4
_LONGEST_WAIT: Final = 256
# A trial pays if the time per element falls below this fraction.
_PAYS: Final = 0.85


def widened(operator: Operator, child: Operator, function: RowFunction) -> Operator:
    """Let `operator`, which runs `function` on what `child` returns, read long stretches if that is unobservable."""
    return ReadWide(operator) if is_free(child, function) else operator


def is_free(child: Operator, function: RowFunction) -> bool:
    """Return True if it is unobservable on how many elements of `child` the function runs, and how often.

    A function that draws in turn runs for the elements that were asked for, no more: the next round of a repeat, or
    the next dataset of an interleave, continues its sequence.
    """
    return child.reads_freely and goes_unnoticed(function)


def goes_unnoticed(function: RowFunction) -> bool:
    """Return True if nobody can tell for how many elements the function was called."""
    return function.is_pure and function.is_vectorised


@final
class Stretch:
    """How many elements to read at a time: 1, 2, 4, … times what is asked for, so that the first elements come soon.

    A stretch that took too long is shortened, unless that does not pay: a compiled function takes as long for one
    element as for all that it was compiled for.

    Attributes:
        rows: How many to read next, unless more are asked for.
    """

    def __init__(self) -> None:
        self.rows = 1
        self._last = 0, 0.0  # how many were asked for, and the time per element
        self._least = 1  # shorter stretches take as long
        self._proven = 0  # the longest stretch that was short enough lately
        # How many reads to wait before the next trial: a busy machine may have spoilt the last one.
        self._wait = 0
        self._waited = 0

    def read(self, read: Callable[[int], Block | None], most: int) -> Block | None:
        """Return the next stretch of elements, which may be more than `most`."""
        # A multiple of what is asked for, so that no later read has to span two stretches.
        count = max(most, self.rows - self.rows % most)
        self.rows = 1  # after an error it starts over
        start = perf_counter()
        block = read(count)
        if block is not None:
            self.learn(count, block, perf_counter() - start)
        return block

    def learn(self, count: int, block: Block, took: float) -> None:
        """Choose how many to read next, from how long a read of `count` took."""
        each = took / block.length
        self.rows = min(self._next(count, took, each), rows_per_block(block))
        self._last = count, each

    def _next(self, count: int, took: float, each: float) -> int:
        before, each_before = self._last
        if took <= _LONGEST_READ:
            self._proven = max(count, self._proven)
        if 2 * took <= _LONGEST_READ:
            return 2 * count
        if count > max(before, self._least) and each < _PAYS * each_before:
            self._wait = self._waited = 0
            return 2 * count
        if count < before and each * _PAYS > each_before:
            self._least = before
        is_short = took <= _LONGEST_READ
        if (is_short or count <= self._least) and took < _LONGEST_SLOW_TRIAL and self._tries(took):
            return 2 * count
        return count if is_short else max(self._least, self._shorter(count, took))

    def _shorter(self, count: int, took: float) -> int:
        """Return how many elements to read after a read that took too long.

        If reads of this length were fast before, one slow read is no reason to shorten them: the machine is busy, or a
        file ends. And if lengths vary, the memory allocator keeps returning and requesting pages.
        """
        proven, self._proven = self._proven, 0
        if took >= _LONGEST_TRIAL or not proven:
            return count // 2
        return min(count, proven)

    def _tries(self, took: float) -> bool:
        """Return True if it is time to try twice as many elements; doubles the wait until the next trial."""
        self._waited += 1
        if self._waited <= (self._wait if took < _LONGEST_TRIAL else max(self._wait, _SLOW_WAIT)):
            return False
        self._wait, self._waited = min(2 * self._wait + _SHORTEST_WAIT, _LONGEST_WAIT), 0
        return True


@final
class WideLook:
    """How many elements a filter looks at: twice as many while it keeps none, within the time of a stretch.

    Attributes:
        rows: How many to look at next, unless more are asked for.
    """

    def __init__(self) -> None:
        self.rows = 1
        self._stretch = Stretch()

    def learn(self, count: int, block: Block, took: float, *, kept: int) -> None:
        """Choose how many to look at next, after a look at a Block took this long.

        Args:
            count: How many were asked for.
            block: The elements that came.
            took: The time to read them and to evaluate the predicate, in seconds.
            kept: How many of them were kept.
        """
        self._stretch.learn(count, block, took)
        if kept == 0:
            self.rows = min(2 * count, self._stretch.rows)
        elif kept > 1:  # if it keeps one each time, the length is right
            self.rows = max(1, count // 2)


@final
class ReadWide(PushbackOperator):
    """Reads more than it is asked for, and keeps the rest for the next reads.

    The elements do not depend on the length of the stretches.

    Args:
        child: The operator to read from.
        only_if_hidden: Whether to read more only while that is unobservable. It always is, otherwise.
    """

    calls_nothing = True

    def __init__(self, child: Operator, *, only_if_hidden: bool = False) -> None:
        super().__init__(child)
        self._stretch = Stretch()
        self._only_if_hidden = only_if_hidden

    @property
    def reads_freely(self) -> bool:
        """True unless somebody might notice extra reads."""
        return not self._only_if_hidden

    def read(self, most: int) -> Block | None:
        if not self._feed.is_used_up or (self._only_if_hidden and not self._feed.child.hides_reads):
            return self._feed.read(most)
        rows = self._stretch.read(self._feed.read, most)
        if rows is None:
            return None
        self._feed.give_back(max(0, rows.length - most))
        return rows.cut(0, most)

    def give_back(self, count: int) -> None:
        """Take back the last `count` elements of the last read."""
        self._feed.give_back(count)

    def seek(self, count: int) -> None:
        self._feed.seek(count)

    def rewound(self, count: int) -> State | None:
        return self._feed.rewound(count)

    def provenance(self, count: int) -> Provenance:
        return self._feed.provenance(count)
