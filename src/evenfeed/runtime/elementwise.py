"""Operators that return one element for each that they read."""

from typing import final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.draws import key_of, words_at
from evenfeed.runtime.operator import Operator, State
from evenfeed.runtime.rows import LARGEST_NUMBER, Rows, numbered, side_by_side, uncountable
from evenfeed.runtime.whence import Place, Whence


@final
class CountElements(Operator):
    """Puts a count before each element."""

    def __init__(self, child: Operator, start: int) -> None:
        self._child = child
        self._next = start

    def read(self, most: int) -> Block | None:
        """Return the next elements with their numbers."""
        room = max(1, LARGEST_NUMBER + 1 - self._next)
        try:
            block = self._child.read(min(most, room))
        except Exception:
            self._next += 1  # an element that fails has a number too
            raise
        if block is None:
            return None
        first = self._next
        self._next += block.length
        if first > LARGEST_NUMBER:
            raise uncountable()
        return numbered(block, first + np.arange(block.length, dtype=np.int64))

    def whence(self, count: int) -> Whence:
        """Return where the same elements of the child come from."""
        return self._child.whence(count)

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


@final
class DrawKeys(Operator):
    """Puts the random bits of its position before each element."""

    def __init__(self, child: Operator, seed: tuple[int, ...]) -> None:
        self._elements = CountElements(child, 0)
        self._key = key_of(*seed)

    def read(self, most: int) -> Block | None:
        """Return the next elements with their bits."""
        block = self._elements.read(most)
        if block is None:
            return None
        numbers, *columns = block.columns
        return keyed(Block(tuple(columns), block.length), self._key, np.asarray(numbers))

    def whence(self, count: int) -> Whence:
        """Return where the same elements of the child come from."""
        return self._elements.whence(count)

    def state(self) -> State:
        """Return the next position, and the child's."""
        return self._elements.state()

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._elements.restore(state)

    def children(self) -> tuple[Operator, ...]:
        """Return what counts the elements."""
        return (self._elements,)


@final
class KeyedRows(Rows):
    """Rows behind the random bits of their positions."""

    def __init__(self, rows: Rows, seed: tuple[int, ...]) -> None:
        self._rows = rows
        self._key = key_of(*seed)
        self.size = rows.size

    def fetch(self, positions: Positions) -> Block:
        """Return the rows at `positions`, each behind its bits."""
        return keyed(self._rows.fetch(positions), self._key, positions)

    def run(self, start: int, count: int) -> Block:
        """Return `count` rows from `start` on, each behind its bits."""
        positions = np.arange(start, start + count, dtype=np.int64)
        return keyed(self._rows.run(start, count), self._key, positions)

    def whence(self, position: int) -> Place | None:
        """Return where the same row comes from."""
        return self._rows.whence(position)


def keyed(block: Block, key: int, positions: Positions) -> Block:
    """Return the block with a first column of random bits."""
    return side_by_side([Block((words_at(key, positions),), block.length), block])
