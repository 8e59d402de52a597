"""Draws the order of the next round while the current one is read."""

from functools import cache, partial
from typing import Final, final

from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.randomness.random_bits import Permutation, is_stored

# Fewer numbers are permuted in less time than another thread takes to begin.
_WORTH_A_THREAD: Final = 1 << 14
# The most orders that are kept before they are used. If a repeat ends, nobody asks for its next round.
_MOST_KEPT: Final = 4


@final
class DrawnAhead:
    """Permutations that another thread draws before they are needed. They depend only on their keys."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, int], Pending[Permutation]] = {}

    def begin(self, key: int, size: int) -> None:
        """Begin to draw a permutation, if that takes long."""
        if not is_stored(size) or size < _WORTH_A_THREAD:
            return
        self._begun[key, size] = _pool().submit(partial(Permutation, key, size))
        for old in list(self._begun)[:-_MOST_KEPT]:
            self._begun.pop(old, None)

    def permutation(self, key: int, size: int) -> Permutation:
        """Return a permutation. Waits for the thread that draws it, if one has begun."""
        begun = self._begun.pop((key, size), None)
        if begun is None or begun.cancel():
            return Permutation(key, size)
        return begun.result()


@cache
def _pool() -> ThreadPool:
    return ThreadPool(1, "evenfeed-orders")
