"""The operators of filters, several of which run as one, and of take_while."""

from time import perf_counter
from typing import Final, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.conversion import Array
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import FailedRow, Operator, PushbackOperator, State
from evenfeed.runtime.read_size import WideLook, goes_unnoticed, is_free

# If a smaller part of the elements is left, they are gathered before the next predicate.
_PART: Final = 0.5


@final
class KeepSome(PushbackOperator):
    """Keeps the elements for which all predicates are true.

    Never reads more elements than it is asked for, unless that is unobservable: then it looks at more and more of
    them at a time while it keeps none.

    Args:
        child: The operator to read from.
        predicate: The predicate that sees every element.
        others: Further predicates. They may see elements that an earlier one drops, so they must be pure and
            must not fail.
    """

    def __init__(self, child: Operator, predicate: RowFunction, *others: RowFunction) -> None:
        super().__init__(child)
        self._predicate = predicate
        self._others = others
        self.is_free = is_free(child, predicate)
        self._look = WideLook()

    @property
    def hides_reads(self) -> bool:
        """The other predicates are pure in any case."""
        return self._feed.child.hides_reads and goes_unnoticed(self._predicate)

    def read(self, most: int) -> Block | None:
        look = self._look if self.hides_reads else None
        while True:
            start = perf_counter()
            ask = most if look is None else max(most, look.rows)
            block = self._feed.read(ask)
            if block is None:
                return None
            kept = self._kept(block, most)
            if look is not None:
                look.learn(ask, block, perf_counter() - start, kept=len(kept))
            if len(kept):
                return block if len(kept) == block.length else block.gather(kept)

    def _kept(self, block: Block, most: int) -> Positions:
        """Return the first rows to keep, at most `most`, and give back the elements after them.

        If the predicate fails, the error waits until the elements before it are returned.
        """
        failed: FailedRow | None = None
        try:
            answers = self._predicate.rows(block, self._feed.number - block.length)
        except FailedRow as error:
            answers, failed = error.before, error
        kept = np.arange(0) if answers is None else self._chosen(block, _answers(answers))
        if len(kept) > most:
            kept = kept[:most]
            self._feed.give_back(block.length - 1 - int(kept[-1]))
        elif failed is not None:
            self._feed.give_back_failed(block.length - failed.index, failed.error)
        return kept

    def _chosen(self, block: Block, first: Array) -> Positions:
        """Return the rows that all predicates select, given the answers of the first."""
        rows, answers = block.cut(0, len(first)), first
        chosen: Positions | None = (
            None  # where `rows` are in the Block, if they are some of its rows
        )
        for predicate in self._others:
            if np.count_nonzero(answers) < _PART * rows.length:
                some = np.flatnonzero(answers)
                chosen = some if chosen is None else chosen[some]
                if not len(some):
                    break
                rows = rows.gather(some)
                answers = _answers(predicate.rows(rows))
            else:
                answers = answers & _answers(predicate.rows(rows))
        some = np.flatnonzero(answers)
        return some if chosen is None else chosen[some]


@final
class StopAtFalse(PushbackOperator):
    """Ends before the first element for which a predicate is false."""

    def __init__(self, child: Operator, predicate: RowFunction, *, singly: bool) -> None:
        super().__init__(child)
        self._predicate = predicate
        self._singly = singly  # whether it is observable that elements after the end are read
        # Otherwise the predicate must not be called after the first False.
        self._at_once = predicate.is_vectorised and predicate.is_pure
        self._ended = False

    def read(self, most: int) -> Block | None:
        block = None if self._ended else self._feed.read(1 if self._singly else most)
        if block is None:
            return None
        if self._at_once:
            count = self._count(block)
        else:
            count = next(
                (i for i in range(block.length) if not self._holds(block, i)), block.length
            )
        return block.cut(0, count) if count else self.read(most)

    def _count(self, block: Block) -> int:
        """Return how many elements come before the first that is rejected or fails; give back the others."""
        failed: FailedRow | None = None
        try:
            done = self._predicate.rows(block, self._feed.number - block.length)
        except FailedRow as error:
            done, failed = error.before, error
        answers = np.zeros(0, np.bool_) if done is None else _answers(done)
        count = len(answers) if answers.all() else int(answers.argmin())
        if count < len(answers):
            self._ended = True
            self._feed.give_back(block.length - count)
        elif failed is not None:
            self._feed.give_back_failed(block.length - failed.index, failed.error)
        return count

    def _holds(self, block: Block, index: int) -> bool:
        """Evaluate the predicate on one element; give back the rest if it is false or fails."""
        rest = block.length - index
        try:
            holds = bool(self._predicate.one(block.row(index), self._feed.number - rest)[0])
        except Exception as error:  # noqa: BLE001 - raised after the elements before it
            self._feed.give_back_failed(rest, error)
            return False
        if not holds:
            self._ended = True
            self._feed.give_back(rest)
        return holds

    def state(self) -> State:
        return [self._ended, super().state()]

    def restore(self, state: State) -> None:
        self._ended, inner = state
        super().restore(inner)


def _answers(block: Block) -> Array:
    return np.asarray(block.columns[0])
