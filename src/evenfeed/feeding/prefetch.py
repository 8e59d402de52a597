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

from evenfeed.core.concurrency.threads import background, start_soon
from evenfeed.core.concurrency.waiting import Bell
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

    def take(self, form: Callable[[Any], Any] | None = None) -> Any:
        """Return the next step.

        Args:
            form: Makes of it what is returned.

        Raises:
            StopIteration: There is none.
        """
        return self._shared.take(form)

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

    `misplaced` is an error of bringing it to the devices. `failed` says that there is an error in place of a
    value, `ended` that it is the end of the data.
    """

    before: Any
    value: Any = None
    error: BaseException | None = None
    misplaced: InvalidArgumentError | None = None
    failed: bool = False
    ended: bool = False

    def raised(self) -> BaseException | None:
        """Return the error in place of a value; in the thread no line is a user's, so it is said again here."""
        if self.misplaced is not None:
            return InvalidArgumentError(self.misplaced.message, fix=self.misplaced.fix)
        if isinstance(self.error, _OF_WORKERS):
            again = type(self.error)(self.error.message, fix=self.error.fix)
            again.__cause__ = self.error
            return again
        return self.error


@final
class _Shared:
    """What the consumer and the thread have in common.

    One of them reads at a time. A consumer that finds nothing, and nobody reading, reads for itself: to
    wake the thread and wait for it would cost more than many a step.

    Ctrl-C loses no step: one that a consumer has claimed stays claimed until the last statement before it
    is returned, and is the first that the consumer then gets (`ElementIterator` says why that suffices).
    """

    def __init__(
        self, steps: HostSteps, place: Callable[[Sequence[Column]], Any], depth: int
    ) -> None:
        self.steps = steps
        self._place = place
        self._depth = depth
        self._lock = threading.RLock()
        self._ready = Bell()  # for consumers: there is a step, or nobody reads
        self._room = threading.Condition(self._lock)  # for the thread
        self._items: deque[_Item] = deque()
        self._claimed: dict[int, _Item] = {}  # by the thread that is about to return it
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

    def take(self, form: Callable[[Any], Any] | None) -> Any:
        """Return the next step, wait for it where it is being read; raise an error in its place."""
        self._is_quick = perf_counter() - self._given < _WAKING
        me = threading.get_ident()
        item = self._claimed.get(me) or self._claim(me)
        if self._thread is None and self._depth > 0 and not self._failed:
            self._start()
        value, error = item.value, item.raised()
        if form is not None and error is None:
            try:
                value = form(value)
            except Exception as raised:  # noqa: BLE001 - the step is passed, as others that fail are
                error = raised
        self._given = perf_counter()
        del self._claimed[me]
        if error is not None:
            raise error
        return value

    def position(self) -> Any:
        """Return the position of the next step that is taken."""
        with self._lock:
            waiting = self._claimed.get(threading.get_ident())
            first = waiting or (self._items[0] if self._items else None)
            return self._position if first is None else first.before

    def stop(self) -> None:
        """Let the thread end after its present step. Takes no lock: a garbage collector may call this."""
        self._stopped = True

    def ended_by(self, timeout: float) -> bool:
        """Stop, and wait for the thread, not for long; tell whether nobody reads any more."""
        self.stop()
        thread = self._thread
        if thread not in (None, threading.current_thread()) and thread.is_alive():
            thread.join(timeout)
        with self._lock:
            self._items.clear()
            self._claimed.clear()
            return self._reader is None

    def _claim(self, me: int) -> _Item:
        """Claim the next step for a thread: one that was read ahead, or else it reads."""
        reads = False
        while True:
            with self._lock:
                if self._reader == me:  # Ctrl-C fell where the last read was being finished
                    self._reader, self._torn = None, True
                if self._stopped:
                    raise CancelledError(
                        "The iterator is closed.", fix="begin a new one: iter(distributed_dataset)."
                    )
                if self._items:
                    item = self._items[0]
                    self._claimed[me] = item
                    del self._items[0]
                    if not reads:
                        self._room.notify()
                    return item
                if self._ended:
                    self._ready.ring()  # for another thread that waits
                    raise StopIteration
                reads = self._reader is None
                if reads:
                    self._width = self._width or Width()
                    self._reader = me
            if reads:
                self._read()
            else:
                self._ready.wait(_WAIT)

    def _read(self) -> None:
        """Read the step at the position, and go behind it.

        Only the one who is the reader calls this. An interruption (Ctrl-C) leaves the position as it is.
        """
        item = following = None
        try:
            item = self._step()
            following = self.steps.state()
        finally:
            with self._lock:
                self._torn = True
                if item is not None and following is not None:
                    # Nothing is called between these, so that no Ctrl-C comes between.
                    self._position, self._torn = following, False
                    self._ended, self._failed = item.ended, item.failed
                    if not item.ended:
                        self._items += (item,)
                self._reader = None
                self._ready.ring()
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
                item.error, item.ended = error, isinstance(error, StopIteration)
        item.failed = item.error is not None or item.misplaced is not None
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
            thread = background.thread(work, "evenfeed-feed", self._leave)
            self._thread = thread
            start_soon((thread,))

    def _work(self) -> None:
        try:
            while self._wait_for_turn():
                self._read()
        except BaseException as error:  # noqa: BLE001 - a SystemExit, raised where the consumer reaches it
            with self._lock:
                self._items.append(_Item(self._position, error=error))
                self._failed = True
                self._ready.ring()
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
