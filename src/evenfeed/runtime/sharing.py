"""Threads that share the rows of one Block."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.block import Block, Column, concatenated
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.thread_pool import ThreadPool
from evenfeed.core.waiting import Pending

# The results for some rows, and which of them failed; None where they cannot be had this way.
Done: TypeAlias = tuple[Block, Array | None] | None

# So many pieces for each thread: with few, all wait for the one that is last.
_PIECES: Final = 4


def cores() -> int:
    """Return how many threads can run at a time."""
    return os.cpu_count() or 1


@final
class Room:
    """The columns of the results for a whole Block: each thread writes those of its piece to their place."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._columns: dict[int, Array] = {}
        self._lock = Lock()

    def place(
        self, number: int, start: int, count: int, shape: tuple[int, ...], dtype: DType
    ) -> Array:
        """Return where `count` rows of a column go; somewhere else if the column's are not like these."""
        with self._lock:
            column = self._columns.get(number)
            if column is None:
                column = self._columns[number] = np.empty((self._length, *shape), dtype)
        if column.shape[1:] != shape or column.dtype != dtype:
            return np.empty((count, *shape), dtype)
        return column[start : start + count]

    def holds(self, number: int, part: Column) -> bool:
        """Tell whether rows of a column are in their place."""
        column = self._columns.get(number)
        return column is not None and isinstance(part, np.ndarray) and part.base is column

    def whole(self, blocks: Sequence[Block]) -> Block:
        """Return all rows as one Block, as they are if all columns are in their places."""
        if not all(
            self._has(number, part) for b in blocks for number, part in enumerate(b.columns)
        ):
            return concatenated(blocks)
        columns = tuple(self._columns.get(number) for number in range(len(blocks[0].columns)))
        return Block(columns, self._length)

    def _has(self, number: int, part: Column) -> bool:
        return part is None or self.holds(number, part)


@final
class Piece:
    """Some rows of a Block, and the places of their results."""

    def __init__(self, block: Block, start: int, room: Room) -> None:
        self.block = block
        self._start = start
        self._room = room

    def place(self, number: int, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return where the results for a column go."""
        return self._room.place(number, self._start, self.block.length, shape, dtype)

    def put(self, block: Block) -> Block:
        """Write results to their places, here where they are still near."""
        columns = (self._written(number, column) for number, column in enumerate(block.columns))
        return Block(tuple(columns), block.length)

    def _written(self, number: int, column: Column) -> Column:
        if not isinstance(column, np.ndarray) or self._room.holds(number, column):
            return column
        place = self.place(number, column.shape[1:], column.dtype)
        place[...] = column
        return place


def in_threads(call: Callable[[Piece], Done], block: Block, threads: int) -> Done:
    """Return what `call` returns for a Block, each piece of which a thread takes as it is free."""
    if threads == 1 or block.length == 1:
        return call(Piece(block, 0, Room(block.length)))
    size = -(-block.length // (threads * _PIECES))
    starts = range(0, block.length, size)
    work = _Shared(call, block, deque(starts), size)
    work.run(min(threads, len(starts)))
    return work.joined()


@final
class _Shared:
    """The pieces of a Block, and what became of them."""

    def __init__(
        self, call: Callable[[Piece], Done], block: Block, left: deque[int], size: int
    ) -> None:
        self._call = call
        self._block = block
        self._left = left
        self._size = size
        self._room = Room(block.length)
        self._done: dict[int, Done] = {}

    def run(self, threads: int) -> None:
        """Work on all pieces, in this thread and in others."""
        others: list[Pending[None]] = [_pool().submit(self._work) for _ in range(threads - 1)]
        try:
            self._work()
        finally:
            self._left.clear()  # where it was interrupted, the others stop as well
            errors = [_waited(other) for other in others]
        for error in errors:
            if error is not None:
                raise error

    def joined(self) -> Done:
        """Return all results in their order."""
        done = [self._done[start] for start in sorted(self._done)]
        found = [one for one in done if one is not None]
        if len(found) < len(done):
            return None
        flags = [one[1] for one in found if one[1] is not None]
        whole = self._room.whole([one[0] for one in found])
        return whole, np.concatenate(flags) if flags else None

    def _work(self) -> None:
        while self._left:
            try:
                start = self._left.popleft()
            except IndexError:  # another was quicker
                return
            piece = Piece(self._block.cut(start, start + self._size), start, self._room)
            found = self._call(piece)
            self._done[start] = None if found is None else (piece.put(found[0]), found[1])


def _waited(other: Pending[Any]) -> BaseException | None:
    """Wait for a thread; one that never began is not waited for."""
    return None if other.cancel() else other.exception()


@cache
def _pool() -> ThreadPool:
    return ThreadPool(max(2, 4 * cores()), "evenfeed-rows")
