"""Reads steps, and brings them to the devices, in a thread ahead of the training step."""

import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Final, final

from evenfeed.core.background import background
from evenfeed.core.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
)
from evenfeed.feeding.host_steps import Column, HostSteps
from evenfeed.replicas.mesh import Width

# No wait is longer, so that an abandoned thread ends and Ctrl-C is heard, whatever goes wrong.
_WAIT: Final = 0.05
_JOIN: Final = 1.0
# To wake a thread takes about that long: a consumer that is back sooner reads for itself.
_WAKING: Final = 5e-5

_OF_WORKERS: Final = (DeadlineExceededError, UnavailableError)


@final
class StepsAhead:
    """The steps of a dataset on their devices, at most `depth` of them before they are asked for.

    The thread starts with the first step that is asked for. It ends when this is closed or forgotten, or
    the interpreter exits; where a step fails it ends too, until a step behind that one is asked for.

    Args:
        make: Returns what reads the rows.
        place: Brings them to the devices.
        depth: How many steps to be ahead; with 0 there is no thread.
    """

    def __init__(
        self,
        make: Callable[[], HostSteps],
        place: Callable[[Sequence[Column]], Any],
        depth: int,
    ) -> None:
        self._make = make
        self._place = place
        self._depth = depth
        self._shared = self._sharing(make())

    def _sharing(self, steps: HostSteps) -> "_Shared":
        shared = _Shared(steps, self._place, self._depth)
        # The thread knows only what is shared: that nobody holds this can be noticed.
        weakref.finalize(self, shared.stop).atexit = False
        return shared

    def take(self) -> Any:
        """Return the next step.

        Raises:
            StopIteration: There is none.
        """
        return self._shared.take()

    def state(self) -> Any:
        """Return the position behind the last step that was taken."""
        return self._shared.position()

    def restore(self, state: Any) -> None:
        """Take up a position; the thread starts anew with the next step.

        Where that fails, the position stays.
        """
        before = self.state()
        # A thread that is still inside of a user's function goes on with steps that nobody takes.
        steps = self._shared.steps if self._shared.ended_by(_JOIN) else self._make()
        try:
            steps.restore(state)
        except BaseException:
            steps.restore(before)
            raise
        finally:
            self._shared = self._sharing(steps)

    def close(self) -> None:
        """End the thread, and those below; free what was read."""
        ended = self._shared.ended_by(_WAIT)
        self._shared.steps.close()  # the thread may wait for one further down
        if not ended:
            self._shared.ended_by(_JOIN)


@final
@dataclass(slots=True)
class _Item:
    """What one step gave: its value or an error. `before` is the position of the step.

    `misplaced` is an error of bringing it to the devices.
    """

    before: Any
    value: Any = None
    error: BaseException | None = None
    misplaced: InvalidArgumentError | None = None

    @property
    def fails(self) -> bool:
        """Whether there is an error in place of a value."""
        return self.error is not None or self.misplaced is not None

    def given(self) -> Any:
        """Return the value, or raise the error."""
        if self.misplaced is not None:
            # Said again, by the line that asks for the step: in the thread no line is a user's.
            raise InvalidArgumentError(self.misplaced.message, fix=self.misplaced.fix)
        if isinstance(self.error, _OF_WORKERS):
            raise type(self.error)(self.error.message, fix=self.error.fix) from self.error
        if self.error is not None:
            raise self.error
        return self.value


@final
class _Shared:
    """What the consumer and the thread have in common.

    One of them reads at a time. A consumer that finds nothing, and nobody reading, reads for itself: to
    wake the thread and wait for it would cost more than many a step.
    """

    def __init__(
        self, steps: HostSteps, place: Callable[[Sequence[Column]], Any], depth: int
    ) -> None:
        self.steps = steps
        self._place = place
        self._depth = depth
        self._lock = threading.RLock()
        self._ready = threading.Condition(
            self._lock
        )  # for consumers: there is a step, or nobody reads
        self._room = threading.Condition(self._lock)  # for the thread
        self._items: deque[_Item] = deque()
        self._position = steps.state()  # of the step that is being read, or is read next
        self._reader: int | None = None  # the thread that is reading
        self._torn = False  # a read was interrupted: the steps must take up the position again
        self._ended = False
        self._failed = False  # the last step that was read is an error
        self._stopped = False
        self._leaving = False  # the program ends, and with it the thread
        self._width: Width | None = None
        self._thread: threading.Thread | None = None
        self._given = 0.0  # when the last step was handed over
        self._is_quick = False  # whether the consumer asked for the next one at once

    def take(self) -> Any:
        """Return the next step, wait for it where it is being read; raise an error in its place."""
        self._is_quick = perf_counter() - self._given < _WAKING
        item = self._next_ready() or self._read()
        if self._thread is None and self._depth > 0 and not self._failed:
            self._start()
        self._given = perf_counter()
        return item.given()

    def position(self) -> Any:
        """Return the position of the next step that is taken."""
        with self._lock:
            return self._items[0].before if self._items else self._position

    def stop(self) -> None:
        """Let the thread end after its present step. Takes no lock: a garbage collector may call this."""
        self._stopped = True

    def ended_by(self, timeout: float) -> bool:
        """Stop, and wait for the thread, not for long; tell whether nobody reads any more."""
        self.stop()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        with self._lock:
            self._items.clear()
            return self._reader is None

    def _next_ready(self) -> _Item | None:
        """Return a step that was read ahead; None where the caller is to read it, and may."""
        me = threading.get_ident()
        with self._lock:
            if self._reader == me:  # Ctrl-C fell where the last read was being finished
                self._reader, self._torn = None, True
            while self._reader is not None and not self._items and not self._stopped:
                self._ready.wait(_WAIT)
            if self._stopped:
                raise CancelledError(
                    "The iterator is closed.", fix="begin a new one: iter(distributed_dataset)."
                )
            if self._items:
                self._room.notify()
                return self._items.popleft()
            if self._ended:
                raise StopIteration
            self._width = self._width or Width()
            self._reader = me
        return None

    def _read(self, ahead: deque[_Item] | None = None) -> _Item:
        """Read the step at the position, and go behind it.

        Only the one who is the reader calls this. An interruption (Ctrl-C) leaves the position as it is.
        """
        item = following = None
        try:
            item = self._step()
            following = self.steps.state()
            return item
        finally:
            with self._lock:
                self._reader = None
                self._torn = following is None
                if item is not None and following is not None:
                    self._position = following
                    self._ended = isinstance(item.error, StopIteration)
                    self._failed = item.fails
                    if ahead is not None and not self._ended:
                        ahead.append(item)
                self._ready.notify_all()
                if self._ended or not self._is_quick:
                    self._room.notify()

    def _step(self) -> _Item:
        item = _Item(self._position)
        assert self._width is not None
        with self._width.kept():
            if self._torn:
                self.steps.restore(self._position)
            try:
                rows = self.steps.read()
                item.value = self._placed(item, rows)
            except Exception as error:  # noqa: BLE001 - raised where the consumer reaches it
                item.error = error
        return item

    def _placed(self, item: _Item, rows: Sequence[Column]) -> Any:
        try:
            return self._place(rows)
        except InvalidArgumentError as error:
            item.misplaced = error

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None or self._ended or background.are_ending:
                return
            work = partial(copy_context().run, self._work)
            self._thread = background.thread(work, "evenfeed-feed", self._leave)
            self._thread.start()

    def _work(self) -> None:
        try:
            while self._wait_for_turn():
                self._read(self._items)
        except BaseException as error:  # noqa: BLE001 - a SystemExit, raised where the consumer reaches it
            with self._lock:
                self._items.append(_Item(self._position, error=error))
                self._failed = True
                self._ready.notify_all()
        finally:
            with self._lock:
                self._thread = None

    def _wait_for_turn(self) -> bool:
        """Become the reader once there is room; tell whether there is anything left to read."""
        with self._lock:
            while not self._is_over and (
                self._reader is not None or len(self._items) >= self._depth
            ):
                self._room.wait(_WAIT)
            if self._is_over:
                return False
            self._reader = threading.get_ident()
        return True

    @property
    def _is_over(self) -> bool:
        """Whether the thread has nothing to do any more."""
        return self._stopped or self._leaving or self._ended or self._failed

    def _leave(self) -> None:
        self._leaving = True
        with self._lock:
            self._room.notify()
