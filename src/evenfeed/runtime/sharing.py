"""Threads that share the rows of one Block."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.block import Block, Column, concatenated
from evenfeed.core.conversion import Array

# The results for some rows, and which of them failed; None where they cannot be had this way.
Done: TypeAlias = tuple[Block, Array | None] | None

# So many pieces for each thread: with few, all wait for the one that is last.
_PIECES: Final = 4


def cores() -> int:
    """Return how many threads can run at a time."""
    return os.cpu_count() or 1


def in_threads(call: Callable[[Block], Done], block: Block, threads: int) -> Done:
    """Return what `call` returns for a Block, each piece of which a thread takes as it is free."""
    if threads == 1 or block.length == 1:
        return call(block)
    size = -(-block.length // (threads * _PIECES))
    starts = range(0, block.length, size)
    work = _Shared(call, block, deque(starts), size)
    work.run(min(threads, len(starts)))
    return work.joined()


@final
class _Shared:
    """The pieces of a Block, and what became of them."""

    def __init__(
        self, call: Callable[[Block], Done], block: Block, left: deque[int], size: int
    ) -> None:
        self._call = call
        self._block = block
        self._left = left
        self._size = size
        self._room: list[Any] | None = None
        self._lock = Lock()
        self._done: dict[int, Done] = {}

    def run(self, threads: int) -> None:
        """Work on all pieces, in this thread and in others."""
        others: list[Future[None]] = [_pool().submit(self._work) for _ in range(threads - 1)]
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
        columns = zip(*(one[0].columns for one in found), strict=True)
        pairs = zip(columns, self._room or (), strict=True)
        if all(all(_is_in(part, room) for part in parts) for parts, room in pairs):
            whole = Block(tuple(self._room or ()), self._block.length)
        else:
            whole = concatenated([one[0] for one in found])
        return whole, np.concatenate(flags) if flags else None

    def _work(self) -> None:
        while self._left:
            try:
                start = self._left.popleft()
            except IndexError:  # another was quicker
                return
            found = self._call(self._block.cut(start, start + self._size))
            self._done[start] = None if found is None else (self._put(start, found[0]), found[1])

    def _put(self, start: int, block: Block) -> Block:
        """Write results to where those of the whole Block are, here where they are still near."""
        with self._lock:
            if self._room is None:
                self._room = [_room(column, self._block.length) for column in block.columns]
        columns = tuple(
            _written(column, room, start)
            for column, room in zip(block.columns, self._room, strict=True)
        )
        return Block(columns, block.length)


def _room(column: Column, length: int) -> Column:
    if not isinstance(column, np.ndarray):
        return None
    return np.empty((length, *column.shape[1:]), column.dtype)


def _written(column: Column, room: Any, start: int) -> Column:
    if not isinstance(column, np.ndarray) or room is None:
        return column
    if column.shape[1:] != room.shape[1:] or column.dtype != room.dtype:
        return column
    place = room[start : start + len(column)]
    place[...] = column
    return place


def _is_in(part: Column, room: Any) -> bool:
    return part is None if room is None else getattr(part, "base", None) is room


def _waited(other: "Future[Any]") -> BaseException | None:
    """Wait for a thread; one that never began is not waited for."""
    return None if other.cancel() else other.exception()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(2, 4 * cores()), "evenfeed-rows")
