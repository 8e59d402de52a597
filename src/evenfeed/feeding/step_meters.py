"""Measures the steps of a distributed iterator: how long they waited for data, and what each replica got."""

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import get_ident
from time import perf_counter
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.feeding.changed_steps import ChangedSteps
from evenfeed.feeding.composite_rows import row_count
from evenfeed.feeding.host_steps import Column, HostSteps
from evenfeed.feeding.placing import Placing
from evenfeed.live.watching import IteratorStats, Stats, TraceEvent
from evenfeed.replicas.mesh import Replicas
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.measuring.advice import advised
from evenfeed.runtime.measuring.pipeline_stats import PipelineMeasure, PipelineStats

# The latest steps that a trace shows.
_EVENTS: Final = 20_000


@final
@dataclass(frozen=True)
class ReplicaStats(Stats):
    """What one replica has got.

    Attributes:
        replica: Its number, over all workers.
        device: Its device.
        rows: How many rows it has got.
        waited_seconds: How long its steps waited for data. All replicas of a worker get their rows together.
    """

    replica: int
    device: str
    rows: int
    waited_seconds: float


@final
@dataclass(frozen=True)
class DistributedStats(IteratorStats):
    """What a distributed iterator has done on one worker.

    Attributes:
        worker, workers: The number of the worker, and how many there are.
        seconds: The time from the first step to now, or to the end of the data.
        steps: How many steps your program has taken.
        steps_per_second: The same, divided by the time.
        waited_seconds: The time in which your program waited for a step.
        bytes: How many bytes the rows of this worker have.
        read_seconds: The time in which steps were read from the pipeline, with all its waiting.
        copy_seconds: The time in which steps were copied to the devices.
        room_wait_seconds: The time in which the thread that reads ahead waited, because enough steps were ready.
        buffered: How many steps were ready on average, when your program asked for one.
        buffer_size: How many steps are prefetched.
        replicas: What each replica of this worker has got. Empty for global arrays, which have no replicas.
        pipelines: The pipelines that were read: one, or one for each replica or lane.
        bottleneck: The stage that everything waits for, by its number in each pipeline; None if there is none.
        advice: One sentence that says what to change.
    """

    worker: int
    workers: int
    steps: int
    steps_per_second: float
    bytes: int
    read_seconds: float
    copy_seconds: float
    room_wait_seconds: float
    buffered: float
    buffer_size: int
    replicas: tuple[ReplicaStats, ...]
    pipelines: tuple[PipelineStats, ...]
    bottleneck: int | None = None
    advice: str = ""

    @property
    def taken(self) -> int:
        return self.steps

    def since(self, before: "DistributedStats") -> "DistributedStats":
        """Return the figures of the time since `before`, which the same iterator returned earlier."""
        seconds, steps = self.seconds - before.seconds, self.steps - before.steps
        waited = self.waited_seconds - before.waited_seconds
        replicas = zip(self.replicas, before.replicas, strict=True)
        pipelines = zip(self.pipelines, before.pipelines, strict=False)
        changed = replace(
            self,
            seconds=seconds,
            steps=steps,
            steps_per_second=steps / seconds if seconds else 0.0,
            waited_seconds=waited,
            bytes=self.bytes - before.bytes,
            read_seconds=self.read_seconds - before.read_seconds,
            copy_seconds=self.copy_seconds - before.copy_seconds,
            room_wait_seconds=self.room_wait_seconds - before.room_wait_seconds,
            replicas=tuple(
                replace(now, rows=now.rows - old.rows, waited_seconds=waited)
                for now, old in replicas
            ),
            pipelines=tuple(now.since(old) for now, old in pipelines),
        )
        return changed.advised()

    def advised(self) -> "DistributedStats":
        """Return the figures with what to change. If there are several pipelines, the busiest one matters."""
        if not self.pipelines:
            return self
        busiest = max(self.pipelines, key=lambda one: one.waited_seconds)
        found = advised(
            busiest.stages,
            self.seconds,
            self.waited_seconds,
            copying=self.copy_seconds if self.buffer_size else None,
        )
        return replace(self, bottleneck=found.stage, advice=found.text)


@final
class StepMeter:
    """Counts the steps of a distributed iterator, and where their time goes.

    Attributes:
        worker: The number of the worker, and how many there are.

    Args:
        devices: The devices of this worker's replicas; none if steps are not for replicas.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self.worker: tuple[int, int] = (0, 1)
        self._devices = devices
        # Weak: the steps refer to threads, which end when the iterator is garbage-collected.
        self._reader: Callable[[], _MeasuredSteps | None] = lambda: None
        self._pipelines: list[PipelineMeasure] = []
        self._steps = 0
        self._waited = 0.0
        self._copying = 0.0
        self._reading = 0.0
        self._room = 0.0
        self._first = 0.0
        self._last = 0.0
        self._has_ended = False
        self._buffered = 0
        self._asked = 0
        self._depth = 0
        self._rows = [0] * len(devices)
        self._bytes = 0
        self._events: deque[TraceEvent] = deque(maxlen=_EVENTS)

    @property
    def name(self) -> str:
        """What is distributed."""
        return next((measure.name for measure in self._measures()), "steps")

    def stats(self) -> DistributedStats:
        """Return the figures up to now."""
        end = self._last if self._has_ended else perf_counter()
        seconds = end - self._first if self._first else 0.0
        worker, workers = self.worker
        first = worker * len(self._devices)
        pairs = zip(self._devices, self._rows, strict=True)
        return DistributedStats(
            worker=worker,
            workers=workers,
            seconds=seconds,
            steps=self._steps,
            steps_per_second=self._steps / seconds if seconds else 0.0,
            waited_seconds=self._waited,
            bytes=self._bytes,
            read_seconds=self._reading,
            copy_seconds=self._copying,
            room_wait_seconds=self._room,
            buffered=self._buffered / self._asked if self._asked else 0.0,
            buffer_size=self._depth,
            replicas=tuple(
                ReplicaStats(first + number, device, rows, self._waited)
                for number, (device, rows) in enumerate(pairs)
            ),
            pipelines=tuple(measure.stats() for measure in self._measures()),
        ).advised()

    def events(self) -> list[TraceEvent]:
        """Return the latest steps and reads."""
        found = list(self._events)
        for measure in self._measures():
            found += measure.events()
        return found

    def iterators(self) -> Sequence[ElementIterator]:
        """Return the iterators that are read."""
        reader = self._reader()
        return () if reader is None else reader.iterators()

    def _measures(self) -> list[PipelineMeasure]:
        """Return what measures the pipelines: other ones after a position was restored, and the last ones at the end."""
        found = [one.measure for one in self.iterators() if one.measure is not None]
        self._pipelines = found or self._pipelines
        return self._pipelines

    def measured_steps(self, make: Callable[[], HostSteps]) -> Callable[[], HostSteps]:
        """Return `make` with steps that are measured."""

        def made() -> HostSteps:
            steps = _MeasuredSteps(make(), self)
            self._reader = weakref.ref(steps)
            self._measures()
            return steps

        return made

    def begin(self) -> float:
        """Return the time at which the program begins to wait for a step."""
        began = perf_counter()
        self._first = self._first or began
        return began

    def end(self, began: float, *, has_ended: bool = False) -> None:
        """Count the time in which the program has waited. `has_ended` if there are no more steps."""
        self._has_ended = has_ended
        self._waited += self._noted("wait for a step", began)

    def add_fill(self, ready: int, depth: int) -> None:
        """Count how many steps are ready when the program asks for one."""
        self._buffered += ready
        self._asked += 1
        self._depth = depth

    def add_steps(self, count: int) -> None:
        """Count steps that the program takes."""
        self._steps += count

    def measured_copy(
        self, place: Callable[[Sequence[Column]], Any]
    ) -> Callable[[Sequence[Column]], Any]:
        """Return a function that copies a step to the devices, measured."""

        def measured(columns: Sequence[Column]) -> Any:
            began = perf_counter()
            try:
                return place(columns)
            finally:
                self._copying += self._noted("copy to the devices", began)

        return measured

    def add_room(self, seconds: float) -> None:
        """Count time in which the thread waited for room."""
        self._room += seconds

    def add_read(self, began: float) -> None:
        """Count time in which a step was read from the pipeline."""
        self._reading += self._noted("read a step", began)

    def add_rows(self, columns: Sequence[Any], steps: int = 1) -> None:
        """Count the rows of a step, as often as there are steps like it."""
        own = len(self._rows)
        for number, rows in enumerate(_rows_of_each(columns, own)):
            self._rows[number] += steps * rows
        self._bytes += steps * sum(map(_bytes, columns))

    def _noted(self, name: str, began: float) -> float:
        self._last = now = perf_counter()
        self._events.append(TraceEvent(name, "", get_ident(), began, now - began, 1))
        return now - began


@final
class _MeasuredSteps(ChangedSteps):
    """Measures the reads of steps, and is like them in everything else."""

    def __init__(self, steps: HostSteps, meter: StepMeter) -> None:
        super().__init__(steps)
        self._meter = meter
        self._peeked: Sequence[Any] = ()

    def read(self) -> list[Column]:
        began = perf_counter()
        try:
            columns = self._steps.read()
        finally:
            self._meter.add_read(began)
        self._meter.add_rows(columns)
        return columns

    def peek(self, most: int) -> list[Any] | None:
        began = perf_counter()
        try:
            found = self._steps.peek(most)
        finally:
            self._meter.add_read(began)
        self._peeked = (
            [] if found is None else [part if part is None else part[0] for part in found]
        )
        return found

    def advance(self, count: int) -> None:
        self._steps.advance(count)
        self._meter.add_rows(self._peeked, count)


def _rows_of_each(columns: Sequence[Any], replicas: int) -> list[int]:
    """Return how many rows of a step each replica gets."""
    column = next((part for part in columns if part is not None), None)
    if column is None or not replicas:
        return []
    if isinstance(column, list):
        return [_length(piece) for piece in cast("list[Any]", column)]
    return [_length(column) // replicas] * replicas


def _length(part: Any) -> int:
    return 1 if isinstance(part, np.ndarray) and part.ndim == 0 else row_count(part)


def _bytes(column: Any) -> int:
    if isinstance(column, list):
        return sum(map(_bytes, cast("list[Any]", column)))
    return getattr(column, "nbytes", 0)


def devices_fed_by(place: object) -> list[str]:
    """Return the devices of this worker's replicas, given what copies steps to them; none if it is not for replicas."""
    return device_names(place.replicas) if isinstance(place, Placing) else []


def device_names(replicas: Replicas) -> list[str]:
    """Return the names of the devices of this worker's replicas."""
    return [f"{device.platform.upper()}:{device.id}" for device in replicas.local_devices]
