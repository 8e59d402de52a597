"""Threads that share the work of one call."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from typing import Any, Final, TypeVar, final

from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Pending

_T = TypeVar("_T")

# In seconds. Shorter work is done by one thread: waking another one, and waiting for it, takes as long.
_WORTH_SHARING: Final = 0.0005


@cache  # each Block asks for it, and the system call takes as long as the work on a short one
def cores() -> int:
    """Return the number of CPU cores."""
    return os.cpu_count() or 1


# Two threads must take less than this part of the time of one: they take more processor time in any case.
_GAIN: Final = 0.8
# How many Blocks are remembered, and after how many the way that is not chosen is tried again.
_RECENT, _RETRIED = 4, 64


@final
class RowTime:
    """The time of a function for a row, which decides whether threads share its work.

    Work on small pictures is mostly Python code, which only one thread can run at a time: threads that share it take
    several times as long as one. So both ways are tried, and the faster one is kept.
    """

    def __init__(self) -> None:
        self._seconds = inf  # processor time
        self._passed = {shared: deque[float](maxlen=_RECENT) for shared in (True, False)}
        self._blocks = 0

    def note(self, seconds: float, rows: int, *, shared: bool) -> None:
        """Note how long a Block took that was worth sharing, and whether threads shared it."""
        self._passed[shared].append(seconds / rows)
        self._blocks += 1

    @property
    def is_faster_shared(self) -> bool:
        """Whether threads should share the next Block that is worth it."""
        shared, alone = self._passed[True], self._passed[False]
        if min(len(shared), len(alone)) < _RECENT:
            return len(shared) <= len(alone)
        pays = min(shared) < _GAIN * min(alone)
        return pays != (self._blocks % _RETRIED == 0)

    def add(self, seconds: float, rows: int) -> None:
        """Note the processor time of some rows. A single slow call at most doubles the time: it may have compiled."""
        self._seconds = min(seconds / rows, 2 * self._seconds)

    @property
    def least_piece(self) -> int:
        """How many rows a thread should take at a time: kernels compute several images faster than each alone."""
        return max(1, round(_WORTH_SHARING / 2 / self._seconds)) if self._seconds else 1

    def is_worth_sharing(self, rows: int) -> bool:
        """Return True if this many rows take long enough, or if no row has been measured."""
        return rows * self._seconds >= _WORTH_SHARING


def done_by_threads(compute: Callable[[int], _T], starts: Sequence[int], threads: int) -> list[_T]:
    """Return what `compute` returns for each start. This thread and others take them as they become free."""
    left, done = deque(starts), dict[int, _T]()

    def work() -> None:
        while left:
            try:
                start = left.popleft()
            except IndexError:  # another thread was faster
                return
            done[start] = compute(start)

    others = [_pool().submit(work) for _ in range(min(threads, len(starts)) - 1)]
    try:
        work()
    finally:
        left.clear()  # after an error or an interrupt, the other threads stop too
        errors = [_joined_error(other) for other in others]
    for error in errors:
        if error is not None:
            raise error
    return [done[start] for start in starts]


def _joined_error(other: Pending[Any]) -> BaseException | None:
    """Wait for a thread and return its error. Cancel it if it has not started."""
    return None if other.cancel() else other.exception()


@cache
def _pool() -> ThreadPool:
    return ThreadPool(max(2, 4 * cores()), "evenfeed-rows")
