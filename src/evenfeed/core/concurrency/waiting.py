"""Futures and wakeups that Ctrl-C can interrupt at any instruction.

Python's Condition, Future and Event are Python code. If Ctrl-C comes between two of their lines, a lock stays
locked and a thread hangs, or a lock is released twice and a RuntimeError replaces KeyboardInterrupt. The main thread,
which receives Ctrl-C, waits with these classes instead. They hold no lock and wait in a single C call.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from enum import Enum, auto
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Generic, TypeVar, final

# The longest wait, so that nothing hangs if a ring went to a thread that Ctrl-C interrupted.
_WAIT: Final = 0.05

_T = TypeVar("_T")


@final
class Bell:
    """Wakes one waiting thread per ring.

    A waiting thread checks its condition first, and again when `wait` returns. The thread that changes the
    condition rings after the change. A ring without a waiting thread is kept for the next one.
    """

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake a waiting thread."""
        if self._rings.empty():
            self._rings.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most `seconds`. Returns False if there was none."""
        with suppress(Empty):
            self._rings.get(timeout=seconds)
            return True
        return False


class _Fate(Enum):
    STARTED = auto()
    CANCELLED = auto()


@final
class Pending(Generic[_T]):
    """The result of a call in another thread: a `concurrent.futures.Future` that Ctrl-C cannot break."""

    __slots__ = ("_callbacks", "_error", "_fate", "_is_set", "_value")

    def __init__(self) -> None:
        self._fate: dict[None, _Fate] = {}  # set once, by a single C call
        self._is_set = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: deque[Callable[[], object]] = deque()

    def begin(self) -> bool:
        """Mark the call as started. Returns False if it was cancelled; afterwards it cannot be cancelled."""
        return self._fate.setdefault(None, _Fate.STARTED) is _Fate.STARTED

    def cancel(self) -> bool:
        """Cancel the call. Returns False if a thread has already started it."""
        cancelled = self._fate.setdefault(None, _Fate.CANCELLED) is _Fate.CANCELLED
        if cancelled:
            self._call_back()
        return cancelled

    def set_result(self, value: _T) -> None:
        """Set the return value of the call."""
        self._value, self._is_set = value, True
        self._call_back()

    def set_exception(self, error: BaseException) -> None:
        """Set the exception that the call raised."""
        self._error, self._is_set = error, True
        self._call_back()

    def done(self) -> bool:
        """Return True if the call has finished or was cancelled."""
        return self._is_set or self.cancelled()

    def cancelled(self) -> bool:
        """Return True if the call was cancelled."""
        return self._fate.get(None) is _Fate.CANCELLED

    def result(self, timeout: float | None = None) -> _T:
        """Wait for the call, and return its result or raise its exception.

        Raises:
            CancelledError: The call was cancelled. The class is that of `concurrent.futures`.
            TimeoutError: The call did not finish within `timeout` seconds.
        """
        error = self.exception(timeout)
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del self, error  # the error refers to this frame; a reference back would be a cycle

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the call, and return its exception, or None. Raises like `result`."""
        if not self.done():
            self._wait(timeout)
        if self.cancelled():
            raise CancelledError
        return self._error

    def when_done(self, call: Callable[[], object]) -> None:
        """Run `call` when this call is done, in the thread that finishes it; immediately if it is done already."""
        self._callbacks.append(call)
        if self.done():
            self._call_back()

    def _wait(self, timeout: float | None) -> None:
        end = None if timeout is None else monotonic() + timeout
        bell = Bell()
        self.when_done(bell.ring)
        while not self.done():
            if end is not None and monotonic() > end:
                raise TimeoutError
            bell.wait(_WAIT)

    def _call_back(self) -> None:
        while self._callbacks:
            try:
                call = self._callbacks.pop()
            except IndexError:  # another thread took the last one
                return
            call()
