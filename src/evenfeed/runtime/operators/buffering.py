"""The operator for prefetch: reads ahead in a thread."""

import threading
import weakref
from collections import deque
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Final, final

from evenfeed.core.block import Block
from evenfeed.core.concurrency.threads import background, start_soon
from evenfeed.core.concurrency.waiting import Bell
from evenfeed.core.errors import CancelledError
from evenfeed.plan.buffering import AUTOTUNE
from evenfeed.runtime.operator import Operator, State, read_full
from evenfeed.runtime.read_size import Stretch

# The longest wait in seconds: whatever goes wrong, abandoned threads end and Ctrl-C is noticed.
_WAIT: Final = 0.05
_JOIN: Final = 1.0


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


@final
class ReadAhead(Operator):
    """Reads the child in a background thread while the consumer works.

    The thread reads what was asked for plus `buffer` elements. It reads long stretches where that is unobservable, so
    that the two threads seldom wait for each other. It starts with the first read, and ends when the operator is
    closed or garbage-collected, or the interpreter exits.

    The state is the position before a read of the child, and how many elements of that read were taken.
    """

    def __init__(self, child: Operator, buffer: int) -> None:
        self._child = child
        self._buffer = buffer
        self._shared: _Shared | None = None

    def read(self, most: int) -> Block | None:
        if self._shared is None:
            self._shared = _Shared(self._child, self._buffer)
            # The thread refers to _Shared only, so that the operator itself can be garbage-collected.
            weakref.finalize(self, self._shared.stop).atexit = False
            self._shared.start(most)
        return self._shared.take(most)

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

    def close(self) -> None:
        self._stop()
        self._child.close()

    def _stop(self) -> None:
        if self._shared is not None:
            self._shared.stop()
            self._shared.wake()
            if not self._shared.joined(_WAIT):
                self._child.close()  # it may be waiting for a thread of an operator below
                self._shared.joined(_JOIN)
            self._shared = None

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@final
class _Shared:
    """The data that the consumer and the thread share."""

    def __init__(self, child: Operator, buffer: int) -> None:
        self._child = child
        self._buffer = buffer
        self._lock = threading.RLock()
        # Notifies the thread: there is room, or it must end.
        self._changed = threading.Condition(self._lock)
        self._ready = Bell()  # notifies the consumer: there is something to take
        self._items: deque[_Item] = deque()
        self._reading: State = child.state()  # the position before the current read
        self._asked = 0  # elements requested and not yet returned
        self._last_ask = 1
        self._stretch = Stretch() if child.reads_freely else None
        self._ended = False
        self._stopped = False
        self._leaving = (
            False  # at exit: once the thread has ended, the consumer reads the child itself
        )
        work = partial(copy_context().run, self._work)
        self._thread = background.thread(work, "evenfeed-prefetch", self._leave)

    def start(self, most: int) -> None:
        """Start the thread, for a first read of `most` elements."""
        self._asked = self._last_ask = most
        self._leaving = background.are_ending
        if not self._leaving:
            start_soon((self._thread,))

    def stop(self) -> None:
        """Let the thread end after its current read. Takes no lock: the garbage collector may call this."""
        self._stopped = True

    def wake(self) -> None:
        """Wake the thread, so that it notices at once that it must end."""
        with self._lock:
            self._changed.notify_all()

    def joined(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the thread; return True if it has ended."""
        if self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def take(self, most: int) -> Block | None:
        """Return the next elements, or None at the end; raise an error when it is reached."""
        while True:
            with self._lock:
                self._asked = self._last_ask = most
                if self._items:
                    return self._taken(self._items[0], most)
                if self._ended:
                    return None
                if self._stopped:
                    raise CancelledError("The iterator was closed while it was read.")
                if self._has_no_thread:
                    self._add(self._read(most))
                    continue
                self._changed.notify_all()
            self._ready.wait(_WAIT)

    def _taken(self, item: _Item, most: int) -> Block | None:
        if item.block is None:
            if item.error is not None:
                self._items.popleft()
                self._asked = 0
                self._changed.notify_all()
                raise item.error
            return None  # keep the end for the next read
        block = item.block.cut(item.used, item.used + most)
        item.used += block.length
        self._asked = most - block.length
        if item.left == 0:
            self._items.popleft()
        self._changed.notify_all()
        return block

    def position(self) -> State:
        """Return the position of the next element to be taken."""
        with self._lock:
            if self._items:
                return [self._items[0].before, self._items[0].used]
            return [self._reading, 0]

    def _work(self) -> None:
        while not self._ended:
            count = self._wait_for_room()
            if count == 0:
                return
            self._add(self._read(count))

    def _leave(self) -> None:
        self._leaving = True
        self.wake()

    @property
    def _has_no_thread(self) -> bool:
        return self._leaving and not self._thread.is_alive()

    def _add(self, item: _Item) -> None:
        with self._lock:
            self._items.append(item)
            self._ended = item.block is None and not isinstance(item.error, Exception)
            self._reading = item.before if self._ended else self._child.state()
            self._ready.ring()

    def _wait_for_room(self) -> int:
        """Return how many elements to read; 0 if the thread must end."""
        with self._lock:
            while not (self._stopped or self._leaving):
                room = self._asked + self._limit() - sum(item.left for item in self._items)
                if room > 0:
                    return min(room, max(1, self._last_ask))
                self._changed.wait(_WAIT)
        return 0

    def _limit(self) -> int:
        # AUTOTUNE: two reads ahead, each as long as the consumer's last.
        ahead = 2 * self._last_ask if self._buffer == AUTOTUNE else self._buffer
        return ahead if self._stretch is None else max(ahead, self._stretch.rows)

    def _read(self, count: int) -> _Item:
        item = _Item(self._reading)
        try:
            if self._stretch is None:
                item.block = self._child.read(count)
            else:
                item.block = self._stretch.read(self._child.read, count)
        except BaseException as error:  # noqa: BLE001 - raised when the consumer reaches it
            item.error = error
        return item
