"""Waits for other threads that Ctrl-C may end at any instruction.

Python's Condition, Future and Event are Python code. Where Ctrl-C comes between two of their lines, a lock stays taken, so
that a thread hangs, or is released twice, so that a RuntimeError takes the place of KeyboardInterrupt. Threads that hear
Ctrl-C wait by these instead, which hold no lock and wait in a single call of C code.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from enum import Enum, auto
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Generic, TypeVar, final

# No wait is longer, so that nothing hangs for good where a ring went to a thread that Ctrl-C took away.
_WAIT: Final = 0.05

_T = TypeVar("_T")


@final
class Bell:
    """Wakes threads that wait, one for each ring.

    Whoever waits looks first at what it waits for, and again when `wait` returns. Whoever changes that rings behind
    the change. A ring that nobody waits for is kept for the next one who does.
    """

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake a thread that waits."""
        if self._rings.empty():
            self._rings.put(None)

    def wait(self, seconds: float) -> None:
        """Wait for a ring, or until the time is over."""
        with suppress(Empty):
            self._rings.get(timeout=seconds)


class _Fate(Enum):
    BEGUN = auto()
    CANCELLED = auto()


@final
class Pending(Generic[_T]):
    """The result of a call in another thread: a `concurrent.futures.Future` that Ctrl-C cannot break."""

    __slots__ = ("_callbacks", "_error", "_fate", "_is_set", "_value")

    def __init__(self) -> None:
        self._fate: dict[None, _Fate] = {}  # decided once, by a single call of C code
        self._is_set = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: deque[Callable[[], object]] = deque()

    def begin(self) -> bool:
        """Return True if the call is to be made: it was not cancelled, and cannot be from now on."""
        return self._fate.setdefault(None, _Fate.BEGUN) is _Fate.BEGUN

    def cancel(self) -> bool:
        """Return True if the call is not made: no thread has begun with it."""
        cancelled = self._fate.setdefault(None, _Fate.CANCELLED) is _Fate.CANCELLED
        if cancelled:
            self._call_back()
        return cancelled

    def set_result(self, value: _T) -> None:
        """Say what the call returned."""
        self._value, self._is_set = value, True
        self._call_back()

    def set_exception(self, error: BaseException) -> None:
        """Say what the call raised."""
        self._error, self._is_set = error, True
        self._call_back()

    def done(self) -> bool:
        """Return True if there is a result, or will be none."""
        return self._is_set or self.cancelled()

    def cancelled(self) -> bool:
        """Return True if there will be no result."""
        return self._fate.get(None) is _Fate.CANCELLED

    def result(self, timeout: float | None = None) -> _T:
        """Wait for the call, and return what it returned, or raise what it raised.

        Raises:
            CancelledError: The call was cancelled. That of `concurrent.futures`.
            TimeoutError: The call is not done within `timeout` seconds.
        """
        error = self.exception(timeout)
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del self, error  # the error holds this frame, which must not hold it

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the call, and return what it raised, if it did. Raises as `result`."""
        if not self.done():
            self._wait(timeout)
        if self.cancelled():
            raise CancelledError
        return self._error

    def when_done(self, call: Callable[[], object]) -> None:
        """Have something called when the call is done, by the thread that made it; now if it is done already."""
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
            except IndexError:  # another thread was quicker
                return
            call()
