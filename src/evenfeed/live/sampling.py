"""Looks at all measured iterators once a second, and reports what happened lately."""

from collections import deque
from itertools import pairwise
from time import perf_counter
from typing import Any, Final, NamedTuple, final

from evenfeed.live.watching import IteratorStats, Watched, Watching

# In seconds: the time that recent figures are about, between two looks, and that the curves show.
_RECENT: Final = 5.0
_BETWEEN: Final = 1.0
_SHOWN: Final = 120


class _Look(NamedTuple):
    """The figures of an iterator at a time."""

    time: float
    stats: IteratorStats


@final
class Sampler:
    """Keeps the figures of the last two minutes.

    Args:
        watching: The measured iterators.
    """

    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._looks: dict[int, deque[_Look]] = {}
        self._looked = 0.0

    def look(self) -> None:
        """Look at all iterators, if the last look was a second ago."""
        now = perf_counter()
        if now - self._looked < _BETWEEN:
            return
        self._looked = now
        found = self._watching.all()
        alive = {one.number for one in found}
        self._looks = {number: looks for number, looks in self._looks.items() if number in alive}
        for one in found:
            looks = self._looks.setdefault(one.number, deque(maxlen=_SHOWN))
            if one.is_alive or not looks:
                looks.append(_Look(now, one.stats))

    def report(self) -> dict[str, Any]:
        """Return the figures of all iterators, up to now and lately, as JSON data."""
        self.look()
        return {"iterators": [self._told(one) for one in self._watching.all()]}

    def _told(self, one: Watched) -> dict[str, Any]:
        looks = list(self._looks.get(one.number, ()))
        return {
            "number": one.number,
            "name": one.name,
            "is_alive": one.is_alive,
            "total": one.stats.as_dict(),
            "recent": _recent(one, looks).as_dict(),
            "history": _history(looks),
        }


def _recent(one: Watched, looks: list[_Look]) -> IteratorStats:
    """Return the figures of the last seconds; of the whole pass if it has ended, or has only begun."""
    before = [look for look in looks if look.time < perf_counter() - _RECENT]
    if not one.is_alive or not before:
        return one.stats
    recent = one.stats.since(before[-1].stats)
    return recent if recent.taken else one.stats


def _history(looks: list[_Look]) -> list[list[float]]:
    """Return the age of each second, what was taken in it, and the part of it that the program waited."""
    now = perf_counter()
    found: list[list[float]] = []
    for before, after in pairwise(looks):
        seconds = after.time - before.time
        taken = after.stats.taken - before.stats.taken
        waited = after.stats.waited_seconds - before.stats.waited_seconds
        found.append([now - after.time, taken / seconds, min(1.0, waited / seconds)])
    return found
