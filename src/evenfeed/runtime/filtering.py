"""Operators that keep the elements that a user's function chooses."""

from typing import NoReturn, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.conversion import Array
from evenfeed.runtime.functions import FailedRow, RowFunction
from evenfeed.runtime.operator import Feed, Operator, State


@final
class KeepSome(Operator):
    """Keeps the elements for which a predicate is true."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        self._feed = Feed(child)
        self._predicate = predicate
        self._error: Exception | None = None

    def read(self, most: int) -> Block | None:
        """Return elements that stay; what is read is never more than what is asked for."""
        while True:
            if self._error is not None:
                self._raise()
            came = self._feed.read(most)
            if came is None:
                return None
            kept = self._kept(came)
            if len(kept):
                return came if len(kept) == came.length else came.gather(kept)

    def _raise(self) -> NoReturn:
        error, self._error = self._error, None
        self._feed.read(1)  # until now a state would have led back to the element that failed
        raise error or AssertionError

    def _kept(self, came: Block) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.flatnonzero(self._answers(came))

    def _answers(self, came: Block) -> Array:
        """Ask the predicate; where it fails, the error waits until what came before is delivered."""
        try:
            answers = self._predicate.rows(came)
        except FailedRow as failed:
            self._error = failed.error
            self._feed.give_back(came.length - failed.index)
            answers = failed.before
        column = None if answers is None else answers.columns[0]
        return np.zeros(0, np.bool_) if column is None else np.asarray(column)

    def state(self) -> State:
        """Return the position behind the last element read."""
        return self._feed.state()

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._feed.restore(state)
        self._error = None

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._feed.child,)


@final
class StopAtFalse(Operator):
    """Ends before the first element for which a predicate is false."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        self._feed = Feed(child)
        self._predicate = predicate
        self._ended = False

    def read(self, most: int) -> Block | None:
        """Return the elements up to the first that does not stay."""
        came = None if self._ended else self._feed.read(most)
        if came is None:
            return None
        count = self._leading(came)
        self._ended = count < came.length
        self._feed.give_back(came.length - count)
        return came.cut(0, count) if count else None

    def _leading(self, came: Block) -> int:
        """Ask the predicate one by one: behind the first false it must not be asked."""
        for index in range(came.length):
            if not bool(self._predicate.one(came.row(index))[0]):
                return index
        return came.length

    def state(self) -> State:
        """Return whether it has ended, and the position."""
        return [self._ended, self._feed.state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._ended, inner = state
        self._feed.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._feed.child,)
