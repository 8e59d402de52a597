"""Threads that share the work of one call."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Pending

_T = TypeVar("_T")


@cache  # each Block asks for it, and the system call takes as long as the work on a short one
def cores() -> int:
    """Return the number of CPU cores."""
    return os.cpu_count() or 1


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
