"""The operators for prefetch, which reads ahead in a thread, and for cache and snapshot, which keep passes."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, final

from evenfeed.core.block import Block
from evenfeed.core.concurrency.prefetching import WAIT_SECONDS, Prefetching
from evenfeed.core.errors import CancelledError
from evenfeed.plan.buffering import AUTOTUNE, Cache, Prefetch, Snapshot
from evenfeed.plan.checking import AssertCardinality
from evenfeed.runtime.caches.cache import KeepElements
from evenfeed.runtime.caches.cache_files import store_of
from evenfeed.runtime.caches.saving import KeepSnapshot
from evenfeed.runtime.operator import Operator, State, read_full
from evenfeed.runtime.positions.indexing import Indexed, Lookup, addresses
from evenfeed.runtime.read_size import Stretch
from evenfeed.runtime.step import Step, runs

_JOIN: Final = 1.0  # seconds to wait for a thread that may be inside a user function
# The number of reads between two decisions on whether the thread or the consumer reads.
_TAKES: Final = 32
# The consumer reads if its own work takes less than the first fraction of the time of the reads: the thread would gain
# less than the hand-over takes. Above the second fraction, the thread reads again.
_IDLE: Final = 0.1
_BUSY: Final = 0.2


@final
@dataclass(slots=True)
class _Item:
    """The result of one read of the child: a Block, an error, or nothing at the end."""

    before: State
    block: Block | None = None
    error: BaseException | None = None
    used: int = 0

    @property
    def left(self) -> int:
        return 1 if self.block is None else self.block.length - self.used


@addresses(Prefetch)
def _at_once(lookup: Lookup[Prefetch]) -> Indexed:
    return lookup.child()


@runs(Prefetch)
def _read_ahead(step: Step[Prefetch]) -> Operator:
    size = step.node.buffer_size
    if not size:
        return step.child
    meter = step.run.meter
    return ReadAhead(step.child, size, meter and meter.stage(step.node).add_room)


@runs(Snapshot)
def _keep_snapshot(step: Step[Snapshot]) -> Operator:
    return KeepSnapshot(step.node, step.run, step.epoch, step.build)


@runs(Cache)
def _keep_elements(step: Step[Cache]) -> Operator:
    return KeepElements(_Below(step), store_of(step.node))


@final
class _Below:
    """The plan below a cache, in one round of a repeat above it."""

    def __init__(self, step: Step[Cache]) -> None:
        child = step.node.child
        self.size = child.size
        self.is_promised = any(isinstance(node, AssertCardinality) for node in child.walk())
        self._step = step
        # Decided before anything is read, as in TensorFlow; passes completed later do not change it.
        self._keeping = step.run.keeping(step.node, step.epoch)

    def kept(self) -> Any:
        """Return the pass that is read from the cache in this round."""
        return self._keeping.kept(self._step.epoch)

    def origin(self) -> Any:
        """Return the pass over the plan below that this round reads."""
        return self._step.run.below(self._step.node, self._step.epoch)

    def start(self, origin: Any) -> Operator:
        """Return the operator of a pass."""
        state, epoch = origin
        child = self._step.node.child
        return self._step.build(child, self._step.run.begun(child, state), epoch)

    def complete(self, origin: Any) -> None:
        """Record that a pass was read to its end."""
        self._step.run.complete(self._step.node, origin)


@final
class ReadAhead(Operator):
    """Reads the child in a background thread while the consumer works.

    The thread reads what was asked for plus `buffer` elements. It reads long stretches where that is unobservable, so
    that the two threads seldom wait for each other. It starts with the first read, and ends when the operator is
    closed or garbage-collected, or the interpreter exits. While the consumer does next to nothing between two such reads,
    it reads itself.

    The state is the position before a read of the child, and how many elements of that read were taken.
    """

    calls_nothing = True

    def __init__(
        self, child: Operator, buffer: int, add_room: Callable[[float], object] | None = None
    ) -> None:
        self._child = child
        self._buffer = buffer
        self._add_room = add_room
        self._shared: _Shared | None = None

    def read(self, most: int) -> Block | None:
        if self._shared is None:
            self._shared = _Shared(self._child, self._buffer, self._add_room)
            self._shared.stop_with(self)
            self._shared.start(most)
        return self._shared.take(most)

    def fill(self) -> tuple[int, int]:
        return (0, max(0, self._buffer)) if self._shared is None else self._shared.fill()

    def state(self) -> State:
        if self._shared is None:
            return [self._child.state(), 0]
        return self._shared.position()

    def restore(self, state: State) -> None:
        self._stop()
        before, used = state
        self._child.restore(before)
        for _ in read_full(self._child, used):
            pass

    def seek(self, count: int) -> None:
        self._stop()
        self._child.seek(count)

    def close(self) -> None:
        self._stop()
        self._child.close()

    def _stop(self) -> None:
        if self._shared is not None:
            self._shared.stop_now()
            if not self._shared.joined(WAIT_SECONDS):
                self._child.close()  # it may be waiting for a thread of an operator below
                self._shared.joined(_JOIN)
            self._shared = None

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@final
class _Shared(Prefetching[_Item]):
    """What the consumer and the thread share."""

    def __init__(
        self, child: Operator, buffer: int, add_room: Callable[[float], object] | None
    ) -> None:
        super().__init__("evenfeed-prefetch", add_room)
        self._child = child
        self._buffer = buffer
        self._reading: State = child.state()  # the position before the current read
        self._asked = 0  # elements requested and not yet returned
        self._last_ask = 1
        self._count = 0  # how many elements the thread reads next
        self._stretch = Stretch()
        self._is_reading = False  # the thread
        self._overlap = Overlap()

    def start(self, most: int) -> None:
        """Start the thread, for a first read of `most` elements."""
        self._asked = self._last_ask = most
        self._start()

    def take(self, most: int) -> Block | None:
        """Return the next elements, or None at the end; raise an error when it is reached."""
        self._overlap.begin()
        block = self._next(most)
        self._overlap.end()
        return block

    def _next(self, most: int) -> Block | None:
        while True:
            with self._lock:
                self._asked = self._last_ask = most
                if self._items:
                    return self._taken(self._items[0], most)
                if self._ended:
                    return None
                if self._stopped:
                    raise CancelledError("The iterator was closed while it was read.")
                if self._thread is None:  # the program is exiting
                    self._add(self._read(most))
                    continue
                if self._is_consumers_turn and not self._is_reading:
                    self._add(self._read_here(most))
                    continue
                self._room.notify_all()
            self._ready.wait(WAIT_SECONDS)

    def _taken(self, item: _Item, most: int) -> Block | None:
        if item.block is None:
            if item.error is not None:
                self._items.popleft()
                self._asked = 0
                self._room.notify_all()
                raise item.error
            return None  # keep the end for the next read
        block = item.block.cut(item.used, item.used + most)
        item.used += block.length
        self._asked = 0  # whoever wants more asks again
        if item.left == 0:
            self._items.popleft()
        self._room.notify_all()
        return block

    def fill(self) -> tuple[int, int]:
        """Return how many elements are ready, and how many may be."""
        with self._lock:
            return sum(item.left for item in self._items if item.block), self._limit()

    def position(self) -> State:
        """Return the position of the next element to be taken."""
        with self._lock:
            if self._items:
                return [self._items[0].before, self._items[0].used]
            return [self._reading, 0]

    def _add(self, item: _Item) -> None:
        with self._lock:
            self._items.append(item)
            self._ended = item.block is None and not isinstance(item.error, Exception)
            self._reading = item.before if self._ended else self._child.state()
            self._is_reading = False
            self._ready.ring()

    @property
    def _is_free(self) -> bool:
        return self._child.hides_reads

    @property
    def _is_consumers_turn(self) -> bool:
        return self._is_free and not self._overlap.pays

    def _begins_read(self) -> bool:
        if self._is_consumers_turn:
            return False
        room = self._asked + self._limit() - sum(item.left for item in self._items)
        self._count = min(room, self._most_at_once())
        self._is_reading = room > 0
        return self._is_reading

    def _read_ahead(self) -> None:
        self._add(self._read(self._count))

    def _most_at_once(self) -> int:
        """Return how many elements to read at a time.

        A consumer may ask for very many, if it found some ready. Slow elements come one by one: those that are ready must not
        wait for others.
        """
        most = self._last_ask if self._is_free else min(self._last_ask, self._stretch.rows)
        return max(1, most)

    def _limit(self) -> int:
        # AUTOTUNE: two reads ahead.
        ahead = 2 * self._most_at_once() if self._buffer == AUTOTUNE else self._buffer
        return max(ahead, self._stretch.rows) if self._is_free else ahead

    def _read(self, count: int) -> _Item:
        item = _Item(self._reading)
        try:
            if self._is_free:
                item.block = self._stretch.read(self._child.read, count)
            else:
                item.block = self._read_exactly(count)
        except BaseException as error:  # noqa: BLE001 - raised when the consumer reaches it
            item.error = error
        return item

    def _read_exactly(self, count: int) -> Block | None:
        start = perf_counter()
        block = self._child.read(count)
        if block is not None:
            self._stretch.learn(count, block, perf_counter() - start)
        return block

    def _read_here(self, count: int) -> _Item:
        """Read in the consumer's thread. Ctrl-C is no error of an element: the iterator reads again."""
        item = _Item(self._reading)
        try:
            item.block = self._stretch.read(self._child.read, count)
        except Exception as error:  # noqa: BLE001 - raised when the consumer reaches it
            item.error = error
        return item


@final
class Overlap:
    """Decides whether a thread that reads ahead gains anything, from what the consumer does between two reads.

    Attributes:
        pays: Whether the thread should read. Otherwise, the consumer does.
    """

    def __init__(self) -> None:
        self.pays = True
        self._takes = 0
        self._at = perf_counter()  # the last call
        self._worked = 0.0  # how long the consumer did other things
        self._took = 0.0  # how long it waited, or read

    def begin(self) -> None:
        """Record that the consumer asks for elements."""
        now = perf_counter()
        self._worked += now - self._at
        self._at = now

    def end(self) -> None:
        """Record that the consumer has them."""
        now = perf_counter()
        self._took += now - self._at
        self._at = now
        self._takes += 1
        if self._takes == _TAKES:
            self.pays = self._worked > (_IDLE if self.pays else _BUSY) * self._took
            self._takes, self._worked, self._took = 0, 0.0, 0.0
