"""Operators that keep the elements that a user's function chooses."""

from typing import final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.runtime.functions import FailedRow, RowFunction
from evenfeed.runtime.operator import Fed, Operator, State


class _Asks(Fed):
    """Asks a predicate about the elements of a child."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        super().__init__(child)
        self._predicate = predicate


@final
class KeepSome(_Asks):
    """Keeps the elements for which a predicate is true."""

    def read(self, most: int) -> Block | None:
        """Return elements that stay; what is read is never more than what is asked for."""
        while (came := self._feed.read(most)) is not None:
            kept = np.flatnonzero(self._answers(came))
            if len(kept):
                return came if len(kept) == came.length else came.gather(kept)
        return None

    def _answers(self, came: Block) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Ask the predicate; where it fails, the error waits until what came before is delivered."""
        try:
            answers = self._predicate.rows(came, self._feed.number - came.length)
        except FailedRow as failed:
            self._feed.refuse(came.length - failed.index, failed.error)
            answers = failed.before
        column = None if answers is None else answers.columns[0]
        return np.zeros(0, np.bool_) if column is None else np.asarray(column)


@final
class StopAtFalse(_Asks):
    """Ends before the first element for which a predicate is false."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        super().__init__(child, predicate)
        self._ended = False

    def read(self, most: int) -> Block | None:
        """Return the elements up to the first that does not stay."""
        came = None if self._ended else self._feed.read(most)
        if came is None:
            return None
        for index in range(came.length):  # behind the first false it must not be asked
            if not self._holds(came, index):
                return came.cut(0, index) if index else self.read(most)
        return came

    def _holds(self, came: Block, index: int) -> bool:
        """Ask about one element; where the answer is no, or an error, the rest is given back."""
        rest = came.length - index
        try:
            holds = bool(self._predicate.one(came.row(index), self._feed.number - rest)[0])
        except Exception as error:  # noqa: BLE001 - it is raised when what came before is delivered
            self._feed.refuse(rest, error)
            return False
        if not holds:
            self._ended = True
            self._feed.give_back(rest)
        return holds

    def state(self) -> State:
        """Return whether it has ended, and the position."""
        return [self._ended, super().state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._ended, inner = state
        super().restore(inner)
