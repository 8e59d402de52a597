"""Prefetches steps: a thread reads them and copies them to the devices ahead of the training step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import get_ident
from time import perf_counter
from typing import Any, Final, final

from evenfeed.core.concurrency.prefetching import WAIT_SECONDS, Prefetching
from evenfeed.core.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
)
from evenfeed.core.iteration import StepRun
from evenfeed.feeding.host_steps import Column, HostSteps
from evenfeed.feeding.placing import Placing
from evenfeed.feeding.step_meters import StepMeter, devices_fed_by
from evenfeed.live.watching import watching
from evenfeed.replicas.mesh import X64Setting

_JOIN: Final = 1.0  # seconds to wait for a thread that may be inside a user function
# A consumer that returns sooner reads the step itself: the thread would take the interpreter from it for longer than
# the read, at most by `_MOST_GAIN` seconds, and the devices work in the meantime anyway.
_WAKING: Final = 5e-5
_MOST_GAIN: Final = 1e-4
_FORGETTING: Final = 1.1  # how quickly a single short absence of the consumer stops to count

_WORKER_ERRORS: Final = (DeadlineExceededError, UnavailableError)


@final
class StepsAhead:
    """The steps of a dataset on the devices, with up to `depth` steps prefetched.

    The thread starts when the first step is taken. It ends when this object is closed or garbage-collected,
    when the interpreter exits, or when a step fails. After a failure, taking the next step restarts it.

    Attributes:
        take: Returns the next step, or raises its error. Raises StopIteration if there are no more steps.
        peek: Returns up to some next steps together, or None; the position stays (see `Iterator.peek_run`).
        take_run: Counts steps that `peek` returned as taken. Returns False if another thread took some of them.
        meter: Measures the steps; None if nothing does.

    Args:
        make: Returns the reader of the rows.
        place: Copies them to the devices.
        depth: The number of steps to prefetch. With 0 there is no thread.
    """

    def __init__(
        self,
        make: Callable[[], HostSteps],
        place: Callable[[Sequence[Column]], Any],
        depth: int,
    ) -> None:
        self.meter = StepMeter(devices_fed_by(place)) if watching.is_on else None
        self._make = make if self.meter is None else self.meter.measured_steps(make)
        self._place = place
        self._depth = depth
        self._share(self._make())

    def _share(self, steps: HostSteps) -> None:
        if self.meter is None:
            shared = _Shared(steps, self._place, self._depth)
        else:
            shared = _MeasuredShared(steps, self._place, self._depth, self.meter)
        self._shared = shared
        shared.stop_with(self)
        # Bound here, because every step of a training loop calls them.
        self.take: Callable[[], Any] = shared.take
        self.peek: Callable[..., StepRun | None] = shared.peek
        self.take_run: Callable[[StepRun], bool] = shared.take_run

    def as_run(self, step: Any, most: int) -> StepRun | None:
        """Return a step that was taken as a run of one step with room for `most`; None if it is uneven."""
        return self._place.again(step, most) if isinstance(self._place, Placing) else None

    def state(self) -> Any:
        """Return the position after the last step that was taken."""
        return self._shared.position()

    def restore(self, state: Any) -> None:
        """Restore a position. The thread restarts with the next step.

        If restoring fails, the position stays the same.
        """
        before = self.state()
        # A thread that is still inside a user function keeps the old reader; nobody takes its steps.
        steps = self._shared.steps if self._shared.ended_by(_JOIN) else self._make()
        try:
            steps.restore(state)
        except BaseException:
            steps.restore(before)
            raise
        finally:
            self._share(steps)

    def close(self) -> None:
        """Stop the thread and those of the dataset, and free the prefetched steps."""
        ended = self._shared.ended_by(WAIT_SECONDS)
        self._shared.steps.close()  # the thread may be waiting for a thread of the dataset
        if not ended:
            self._shared.ended_by(_JOIN)


@final
@dataclass(slots=True)
class _Item:
    """The result of reading one step: its value or an error. `before` is the position of the step.

    `misplaced` is an error from copying to the devices. `failed` is True if there is an error instead of a
    value, and `ended` at the end of the data.
    """

    before: Any
    value: Any = None
    error: BaseException | None = None
    misplaced: InvalidArgumentError | None = None
    failed: bool = False
    ended: bool = False

    def raised(self) -> BaseException | None:
        """Return the error, if any. Recreates it in the consumer, so that it names the user's line."""
        if self.misplaced is not None:
            return InvalidArgumentError(self.misplaced.message, fix=self.misplaced.fix)
        if isinstance(self.error, _WORKER_ERRORS):
            again = type(self.error)(self.error.message, fix=self.error.fix)
            again.__cause__ = self.error
            return again
        return self.error


class _Shared(Prefetching[_Item]):
    """What the consumers and the thread share.

    One of them reads at a time. If no step is ready and nobody is reading, the consumer reads the step
    itself: waking the thread and waiting for it would take longer than many steps.

    Ctrl-C loses no step: a claimed step stays claimed until the last statement before it is returned, and
    the consumer's next call gets it first (`ElementIterator` explains why that suffices).
    """

    def __init__(
        self,
        steps: HostSteps,
        place: Callable[[Sequence[Column]], Any],
        depth: int,
        meter: StepMeter | None = None,
    ) -> None:
        super().__init__("evenfeed-feed", meter and meter.add_room)
        self.steps = steps
        self._place = place
        self._copy = place if meter is None else meter.measured_copy(place)
        self._depth = depth
        self._claimed: dict[int, _Item] = {}  # by the thread that is about to return it
        self._position = steps.state()  # of the step that is being read, or is read next
        self._reader: int | None = None  # the thread that is reading
        self._torn = False  # a read was interrupted, so the position must be restored
        self._failed = False  # the last step that was read is an error
        self._rests = False  # whether the thread reads nothing
        self._width: X64Setting | None = None
        self._returned_at = 0.0  # the time at which the last step was returned
        self._away = float("inf")  # how long the consumer is away between two steps
        self._reading_time = 0.0  # of the last read
        self._is_quick = False  # whether the consumer asks for the next step immediately

    def take(self) -> Any:
        """Return the next step or raise its error. Waits if the step is being read."""
        # By the shortest absence of late: while the thread reads, the consumer is slower than it would be alone.
        self._away = away = min(perf_counter() - self._returned_at, self._away * _FORGETTING)
        self._is_quick = away < _WAKING + min(self._reading_time, _MOST_GAIN)
        self._rests = False
        me = get_ident()
        item = self._claimed.get(me) or self._claim(me)
        if self._thread is None and self._depth > 0 and not self._failed:
            self._start()
        error = item.raised() if item.failed else None
        self._returned_at = perf_counter()
        del self._claimed[me]
        if error is not None:
            raise error
        return item.value

    def peek(self, most: int, *, fills: bool) -> StepRun | None:
        """Return up to `most` next steps together, or None if the next one must be taken by itself.

        From now on the thread rests: it would read single steps. `take` wakes it again.
        """
        place = self._place
        if most < 2 or not isinstance(place, Placing):
            return None
        self._rests = True
        me = get_ident()
        while self._reader not in (None, me) and not self._stopped:  # the thread reads its last
            self._ready.wait(WAIT_SECONDS)
        with self._lock:
            if self._items and not self._items[0].failed and not self._claimed:
                first = self._items[0]
                run = place.again(first.value, most)
                return run and replace(run, before=first.before)
            ready = self._items or self._claimed or self._ended or self._failed
            if ready or self._torn or self._stopped or self._reader is not None:
                return None
            self._width = self._width or X64Setting()
            self._reader = me
        failed: _Item | None = None
        self._torn = True  # if it is interrupted
        try:
            with self._width.kept():
                columns = self.steps.peek(most)
                found = None if columns is None else place.together(columns, most, fills=fills)
            self._torn = False
            return found and replace(found, before=self._position)
        except Exception as error:  # noqa: BLE001 - raised when the consumer takes the step
            failed = _Item(self._position, error=error, failed=True)
            failed.ended = isinstance(error, StopIteration)
            return None
        finally:
            self._put(failed)

    def _put(self, failed: _Item | None) -> None:
        """End a look at the next steps. An error that it met is the next item."""
        with self._lock:
            self._reader = None
            if failed is not None:
                self._torn = False
                self._position = self.steps.state()
                self._ended, self._failed = failed.ended, True
                if not failed.ended:
                    self._items += (failed,)

    def take_run(self, run: StepRun) -> bool:
        """Count steps that `peek` returned as taken. Return False if another thread took some of them."""
        with self._lock:
            if self._stopped or self._reader is not None:
                return False
            if self._items:
                is_first = self._items[0].before is run.before
                if is_first:
                    del self._items[0]
                return is_first
            if self._position is not run.before:
                return False
            self._torn = True
            self.steps.advance(run.count)
            self._position, self._torn = self.steps.state(), False
            return True

    def position(self) -> Any:
        """Return the position of the next step to be taken."""
        with self._lock:
            waiting = self._claimed.get(get_ident())
            first = waiting or (self._items[0] if self._items else None)
            return self._position if first is None else first.before

    def ended_by(self, timeout: float) -> bool:
        """Stop the thread and wait briefly for it. Return True if nobody is reading anymore."""
        self.stop_now()
        self.joined(timeout)
        with self._lock:
            self._items.clear()
            self._claimed.clear()
            return self._reader is None

    def _claim(self, me: int) -> _Item:
        """Claim the next step for a thread. Reads it if none is prefetched."""
        reads = False
        while True:
            with self._lock:
                if self._reader == me:  # Ctrl-C interrupted the end of the last read
                    self._reader, self._torn = None, True
                if self._stopped:
                    raise CancelledError(
                        "The iterator is closed.", fix="make a new one: iter(distributed_dataset)."
                    )
                if self._items:
                    item = self._items[0]
                    self._claimed[me] = item
                    del self._items[0]
                    if not reads:
                        self._room.notify()
                    return item
                if self._ended:
                    self._ready.ring()  # for another waiting thread
                    raise StopIteration
                reads = self._reader is None
                if reads:
                    self._width = self._width or X64Setting()
                    self._reader = me
            if reads:
                self._read()
            else:
                self._ready.wait(WAIT_SECONDS)

    def _read(self) -> None:
        """Read the step at the position, and advance the position.

        Only the current reader calls this. An interruption (Ctrl-C) leaves the position unchanged.
        """
        item = following = None
        began = perf_counter()
        try:
            item = self._step()
            following = self.steps.state()
        finally:
            self._reading_time = perf_counter() - began
            with self._lock:
                self._torn = True
                if item is not None and following is not None:
                    # No calls between these statements, so that Ctrl-C cannot interrupt them.
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
                columns = self.steps.read()
                try:
                    item.value = self._copy(columns)
                except InvalidArgumentError as error:
                    item.misplaced = error
            except Exception as error:  # noqa: BLE001 - raised when the consumer takes the step
                item.error, item.ended = error, isinstance(error, StopIteration)
        item.failed = item.error is not None or item.misplaced is not None
        return item

    @property
    def _is_over(self) -> bool:
        return self._stopped or self._leaving or self._ended or self._failed

    def _begins_read(self) -> bool:
        if self._rests or self._reader is not None or len(self._items) >= self._depth:
            return False
        self._reader = get_ident()
        return True

    def _read_ahead(self) -> None:
        try:
            self._read()
        except BaseException as error:  # noqa: BLE001 - a SystemExit, raised when the consumer takes the step
            with self._lock:
                self._items.append(_Item(self._position, error=error, failed=True))
                self._failed = True
                self._ready.ring()


@final
class _MeasuredShared(_Shared):
    """Also measures how long the consumers wait.

    It counts a step when it is claimed: if Ctrl-C came after it was taken, the step would be lost.
    """

    def __init__(
        self,
        steps: HostSteps,
        place: Callable[[Sequence[Column]], Any],
        depth: int,
        meter: StepMeter,
    ) -> None:
        super().__init__(steps, place, depth, meter)
        self._meter = meter

    def _claim(self, me: int) -> _Item:
        self._meter.add_fill(len(self._items), self._depth)
        began = self._meter.begin()
        try:
            item = super()._claim(me)
        except BaseException:
            self._meter.end(began, has_ended=self._ended)
            raise
        self._meter.end(began)
        self._meter.add_steps(0 if item.failed else 1)
        return item

    def peek(self, most: int, *, fills: bool) -> StepRun | None:
        began = self._meter.begin()
        try:
            return super().peek(most, fills=fills)
        finally:
            self._meter.end(began)

    def take_run(self, run: StepRun) -> bool:
        taken = super().take_run(run)
        self._meter.add_steps(run.count if taken else 0)
        return taken
