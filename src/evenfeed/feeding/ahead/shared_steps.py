"""The steps that consumers and the prefetch thread share: which steps are ready, and which thread reads next."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import get_ident
from time import perf_counter
from typing import Any, Final, final

from evenfeed.core.concurrency.prefetching import WAIT_SECONDS, Prefetching
from evenfeed.core.errors import CancelledError, InvalidArgumentError
from evenfeed.core.iteration import StepRun
from evenfeed.feeding.ahead.agreed_runs import AgreedRuns
from evenfeed.feeding.ahead.read_step import ReadStep
from evenfeed.feeding.host_steps import Column, HostSteps
from evenfeed.feeding.placing import StepPlacing, fitting_steps, step_count
from evenfeed.feeding.step_meters import StepMeter
from evenfeed.replicas.mesh import X64Setting

# A consumer that returns sooner reads the step itself: the thread would take the interpreter from it for longer than
# the read, at most by `_MOST_GAIN` seconds, and the devices work in the meantime anyway.
_WAKING: Final = 5e-5
_MOST_GAIN: Final = 1e-4
_FORGETTING: Final = 1.1  # how quickly a single short absence of the consumer stops to count

# How a worker stands if it is asked for several steps: nothing is read ahead, steps are, or the next one is an error.
_FREE, _AHEAD, _ALONE = 0, 1, 2


class SharedSteps(Prefetching[ReadStep]):
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
        runs: AgreedRuns | None = None,
    ) -> None:
        super().__init__("evenfeed-feed", meter and meter.add_room)
        self.steps = steps
        self._runs = runs
        self._are_free = False  # no worker has read steps ahead
        self._place = place
        self._copy = place if meter is None else meter.measured_copy(place)
        self._depth = depth
        self._claimed: dict[int, ReadStep] = {}  # by the thread that is about to return it
        self._position = steps.state()  # of the step that is being read, or is read next
        self._reader: int | None = None  # the thread that is reading
        self._torn = False  # a read was interrupted, so the position must be restored
        self._failed = False  # the last step that was read is an error
        self._taken: Any = None  # by `take_run`: the positions before and after
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
        self._rests = self._are_free = False
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

        From now on the thread rests: it would read single steps. `take` wakes it again. All workers call it at the same step.
        """
        place = self._place
        if most < 2 or not isinstance(place, StepPlacing) or not place.has_runs:
            return None
        self._rests = True
        me = get_ident()
        while self._reader not in (None, me) and not self._stopped:  # the thread reads its last
            self._ready.wait(WAIT_SECONDS)
        with self._lock:
            standing = self._standing()
            if self._runs is None and standing != _FREE:
                return self._again(place, most) if standing == _AHEAD else None
            self._width = self._width or X64Setting()
            self._reader = me if standing == _FREE else self._reader
        try:
            worst = self._worst(standing)
            if worst == _FREE:
                return self._peeked(place, most, fills=fills)
            return self._first_of_all(place, standing, most) if worst == _AHEAD else None
        finally:
            with self._lock:
                self._reader = None if self._reader == me else self._reader

    def _standing(self) -> int:
        """Return whether nothing is read ahead, a step is, or the next step must be taken by itself."""
        if self._claimed or self._torn or self._stopped or self._reader is not None:
            return _ALONE
        if self._items:
            return _ALONE if self._items[0].failed else _AHEAD
        return _ALONE if self._ended or self._failed else _FREE

    def _again(self, place: StepPlacing, most: int) -> StepRun | None:
        """Return a step that was read before as a run."""
        first = self._items[0]
        run = place.again(first.value, most)
        return run and replace(run, before=first.before, read=first)

    def _worst(self, standing: int) -> int:
        """Return what all workers can do. If none has read ahead, all stand at the same step until they take one."""
        if self._runs is None or self._are_free:
            return standing
        worst = self._runs.worst(standing)
        self._are_free = worst == _FREE
        return worst

    def _first_of_all(self, place: StepPlacing, standing: int, most: int) -> StepRun | None:
        """Return the next step as a run of one, which some workers have read before."""
        if standing == _FREE:
            return self._peeked(place, most, fills=True, reads=1)
        first = self._items[0]
        columns = place.columns_again(first.columns or ())
        columns, most = self._common(place, columns, most)
        run = None if columns is None else place.run_of(columns, 1, most)
        return run and replace(run, before=first.before, read=first)

    def _common(
        self, place: StepPlacing, columns: list[Any] | None, most: int
    ) -> tuple[list[Any] | None, int]:
        """Return the steps that all workers have, and their least limit."""
        if self._runs is None:
            return columns, most
        kind = None if columns is None else place.kind(columns)
        count, most = self._runs.common(step_count(columns), most, kind)
        return [c if c is None else c[:count] for c in columns or ()] if count else None, most

    def _peeked(
        self, place: StepPlacing, most: int, *, fills: bool, reads: int | None = None
    ) -> StepRun | None:
        """Read up to `reads` next steps, and copy them to the devices. An error of the data is the next item."""
        assert self._width is not None
        columns = error = found = None
        self._torn = True  # if it is interrupted
        with self._width.kept():
            try:
                columns = fitting_steps(self.steps.peek(reads or most))
            except Exception as raised:  # noqa: BLE001 - raised when the consumer takes the step
                error = raised
            self._torn = False
            columns, most = self._common(place, columns, most)
            try:
                found = None if columns is None else place.together(columns, most, fills=fills)
            except Exception as raised:  # noqa: BLE001 - as above
                error = raised
        if error is not None:
            failed = ReadStep(self._position, error=error, failed=True)
            failed.ended = isinstance(error, StopIteration)
            self._put(failed)
        return found and replace(found, before=self._position)

    def _put(self, failed: ReadStep) -> None:
        """Make an error that a look at the next steps has met the next item."""
        with self._lock:
            self._position = self.steps.state()
            self._ended, self._failed = failed.ended, True
            if not failed.ended:
                self._items += (failed,)

    def take_run(self, run: StepRun) -> bool:
        """Count steps that `peek` returned as taken. Return False if another thread took some of them."""
        with self._lock:
            first = self._items[0] if self._items else None
            if self._stopped or self._reader is not None or first is not run.read:
                return False
            if first is not None:
                after = self._items[1].before if len(self._items) > 1 else self._position
                self._taken = run.before, after
                del self._items[0]
                return True
            if self._position is not run.before:
                return False
            self._torn = True
            self.steps.advance(run.count)
            after = self.steps.state()
            self._taken, self._position, self._torn = (run.before, after), after, False
            return True

    def return_run(self, run: StepRun) -> bool:
        """Undo `take_run`, and return True, unless another thread has read on since."""
        with self._lock:
            before, after = self._taken or (run, None)
            self._taken = None
            following = self._items[0].before if self._items else self._position
            if before is not run.before or following is not after:
                return False
            if run.read is not None:
                self._items.insert(0, run.read)
                return True
            if (
                self._items or self._reader is not None
            ):  # the thread reads, or has read, what follows
                return False
            self._position, self._torn = run.before, True
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

    def _claim(self, me: int) -> ReadStep:
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

    def _step(self) -> ReadStep:
        item = ReadStep(self._position)
        assert self._width is not None
        with self._width.kept():
            if self._torn:
                self.steps.restore(self._position)
            try:
                columns = self.steps.read()
                item.columns = columns if self._runs is not None else None
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
                self._items.append(ReadStep(self._position, error=error, failed=True))
                self._failed = True
                self._ready.ring()


@final
class MeasuredSteps(SharedSteps):
    """Also measures how long the consumers wait.

    It counts a step when it is claimed: if Ctrl-C came after it was taken, the step would be lost.
    """

    def __init__(
        self,
        steps: HostSteps,
        place: Callable[[Sequence[Column]], Any],
        depth: int,
        meter: StepMeter,
        runs: AgreedRuns | None = None,
    ) -> None:
        super().__init__(steps, place, depth, meter, runs)
        self._meter = meter

    def _claim(self, me: int) -> ReadStep:
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

    def return_run(self, run: StepRun) -> bool:
        returned = super().return_run(run)
        self._meter.add_steps(-run.count if returned else 0)
        return returned
