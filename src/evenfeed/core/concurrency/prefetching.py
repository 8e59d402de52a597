"""The machine behind every prefetch: a background thread that reads items before their consumer asks for them."""

import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from time import perf_counter
from typing import Final, Generic, TypeVar

from evenfeed.core.concurrency.threads import background, start_soon
from evenfeed.core.concurrency.waiting import Bell

# The longest single wait in seconds: whatever goes wrong, abandoned threads end and Ctrl-C is noticed.
WAIT_SECONDS: Final = 0.05

_Item = TypeVar("_Item")


class Prefetching(ABC, Generic[_Item]):
    """What a consumer and the thread that reads for it share: the items that are ready, and who may read.

    The thread refers to this object and to nothing else of the iterator. So the iterator can be garbage-collected,
    which stops the thread (`stop_with`). A subclass decides when the thread reads, and how the consumer takes items.

    Args:
        name: The name of the thread.
        add_room: Called with the seconds of each wait for room; None if nobody measures them.
    """

    def __init__(self, name: str, add_room: Callable[[float], object] | None = None) -> None:
        self._name = name
        self._add_room = add_room
        self._lock = threading.RLock()
        self._ready = Bell()  # for the consumer: there may be an item to take
        self._room = threading.Condition(self._lock)  # for the thread: it may read, or must end
        self._items: deque[_Item] = deque()
        self._thread: threading.Thread | None = None
        self._ended = False  # there is nothing more to read
        self._stopped = False
        self._leaving = False  # the interpreter exits: the consumer reads the rest itself

    @abstractmethod
    def _begins_read(self) -> bool:
        """Return True if the thread reads the next item now. It calls this with the lock."""

    @abstractmethod
    def _read_ahead(self) -> None:
        """Read an item and add it to the others. The thread calls this without the lock; it must not raise."""

    @property
    def _is_over(self) -> bool:
        """Whether the thread should end."""
        return self._stopped or self._leaving or self._ended

    def stop_with(self, owner: object) -> None:
        """Stop the thread when `owner` is garbage-collected."""
        weakref.finalize(owner, self.stop).atexit = False

    def stop(self) -> None:
        """Stop the thread after its current read. Takes no lock, because the garbage collector may call it."""
        self._stopped = True

    def stop_now(self) -> None:
        """Stop the thread, and wake it so that it notices at once."""
        self.stop()
        self._wake()

    def joined(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a stopped thread. Return True if it reads no more."""
        thread = self._thread
        if thread is None or not thread.is_alive():  # it may not have started yet
            return True
        if thread is not threading.current_thread():
            thread.join(timeout)
        return not thread.is_alive()

    def _start(self) -> None:
        """Start the thread, unless it runs or has nothing to do."""
        with self._lock:
            if self._thread is not None or self._is_over or background.are_ending:
                return
            work = partial(copy_context().run, self._work)
            self._thread = background.thread(work, self._name, self._leave)
            try:
                start_soon((self._thread,))
            except RuntimeError:  # too many threads: the consumer reads
                self._thread = None

    def _work(self) -> None:
        wait = self._wait_for_room if self._add_room is None else self._measured_wait
        try:
            while wait():
                self._read_ahead()
        finally:
            with self._lock:
                self._thread = None

    def _wait_for_room(self) -> bool:
        """Wait until the thread reads again. Return False if it should end."""
        with self._lock:
            while not self._is_over:
                if self._begins_read():
                    return True
                self._room.wait(WAIT_SECONDS)
        return False

    def _measured_wait(self) -> bool:
        assert self._add_room is not None
        began = perf_counter()
        goes_on = self._wait_for_room()
        self._add_room(perf_counter() - began)
        return goes_on

    def _leave(self) -> None:
        self._leaving = True
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            self._room.notify_all()
