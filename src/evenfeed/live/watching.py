"""Whether new iterators are measured, and which ones are."""

import os
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final, NamedTuple, Protocol, final

from evenfeed.core.lazy import LazyModule

# The port on loopback at which a worker shows its figures. `evenfeed run --dashboard` sets it.
PORT: Final = "EVENFEED_DASHBOARD_PORT"

page_server: Any = LazyModule("evenfeed.live.page_server")

# Iterators that have ended, of which the last figures are kept.
_ENDED: Final = 8


@dataclass(frozen=True)
class Stats:
    """Figures of an iterator, or of a part of it."""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain dicts, lists, numbers and strings, for example for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class IteratorStats(Stats, ABC):
    """Figures of a whole iterator.

    Attributes:
        seconds: The time from the first read to now, or to the end of the data.
        waited_seconds: The time in which your program waited for data.
    """

    seconds: float
    waited_seconds: float

    @property
    @abstractmethod
    def taken(self) -> int:
        """How many elements or steps the program has taken."""

    @abstractmethod
    def since(self, before: Any) -> "IteratorStats":
        """Return the figures of the time since `before`, which the same iterator returned earlier."""


class TraceEvent(NamedTuple):
    """A stretch of time in a thread, for a trace. `began` is a time of `perf_counter`."""

    name: str
    line: str
    thread: int
    began: float
    seconds: float
    elements: int


class Measured(Protocol):
    """The figures of an iterator. It must not refer to the iterator, which would never be freed."""

    @property
    def name(self) -> str:
        """What is iterated over; the next pass over it has the same name."""
        ...

    def stats(self) -> IteratorStats:
        """Return the figures up to now. The garbage collector may ask for them, so it must not wait for locks."""
        ...

    def events(self) -> list[TraceEvent]:
        """Return the latest reads, for a trace."""
        ...


class Watched(NamedTuple):
    """The figures of an iterator that exists, or the last ones of one that has gone."""

    number: int
    name: str
    is_alive: bool
    stats: IteratorStats


@final
class Watching:
    """Whether new iterators are measured, and the figures of those that are.

    Attributes:
        is_on: Whether iterators that are created from now on are measured.
    """

    def __init__(self) -> None:
        self._port = os.environ.get(PORT)  # of a page for this process, until it is opened
        self.is_on = self._port is not None
        self._numbers = count(1)
        self._alive: dict[int, Measured] = {}
        self._gone: deque[Watched] = deque(maxlen=_ENDED)

    def watch(self, iterator: object, measured: Measured) -> None:
        """Show the figures of an iterator as long as it exists, and its last ones afterwards."""
        if self._port is not None:
            self._open_page(self._port)
        number = next(self._numbers)
        self._alive[number] = measured
        weakref.finalize(iterator, self._end, number).atexit = False

    def _open_page(self, port: str) -> None:
        """Show the figures where `evenfeed run --dashboard` asks for them. Processes that this one starts do not."""
        self._port = None
        os.environ.pop(PORT, None)
        page_server.open_page(port)

    def _end(self, number: int) -> None:
        """Keep the last figures. Takes no lock, because the garbage collector calls it."""
        measured = self._alive.pop(number)
        self._gone.append(Watched(number, measured.name, False, measured.stats()))

    def all(self) -> list[Watched]:
        """Return the figures of all iterators, and the last ones of passes that have ended and not begun again."""
        alive = [Watched(n, one.name, True, one.stats()) for n, one in list(self._alive.items())]
        known = {one.name for one in alive}
        gone: dict[str, Watched] = {
            one.name: one for one in list(self._gone) if one.name not in known
        }
        return sorted([*gone.values(), *alive])

    def events(self) -> Iterator[TraceEvent]:
        """Yield the latest reads of all iterators that exist."""
        for measured in list(self._alive.values()):
            yield from measured.events()

    def forget(self) -> None:
        """Forget the iterators that have ended."""
        self._gone.clear()


watching: Final = Watching()


def enable_stats(enabled: bool = True) -> None:
    """Measure the iterators that are created from now on: `stats()` and `explain()` of each show where time goes.

    Measuring takes some microseconds for each Block that a stage reads. Iterators that are not measured do not
    pay anything.

    Args:
        enabled: False to stop. Iterators that are measured stay so.

    Examples:
        >>> import evenfeed as tf
        >>> tf.experimental.enable_stats()
        >>> iterator = iter(tf.data.Dataset.range(6).batch(2))
        >>> tf.experimental.enable_stats(False)
        >>> [batch.tolist() for batch in iterator]
        [[0, 1], [2, 3], [4, 5]]
        >>> [(stage.name, stage.elements) for stage in iterator.stats().stages]
        [('range(0, 6)', 6), ('batch(2)', 3)]
    """
    watching.is_on = enabled
