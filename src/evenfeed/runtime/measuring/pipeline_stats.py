"""`iterator.stats()`: the figures of each stage of a plan, and what to change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import final

from evenfeed.core.errors import FailedPreconditionError
from evenfeed.live.watching import IteratorStats, TraceEvent
from evenfeed.plan.buffering import Prefetch
from evenfeed.plan.elementwise import Map
from evenfeed.plan.node import Node
from evenfeed.runtime.explain_text import label_of, method_of
from evenfeed.runtime.functions.called_functions import functions_of
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.measuring.advice import advised
from evenfeed.runtime.measuring.stage_meters import MeasuredOperator, PlanMeter, StageMeter
from evenfeed.runtime.measuring.stage_stats import StageStats
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.operators.thread_map import threads_of
from evenfeed.runtime.plan_steps import PlanStep, steps_of
from evenfeed.runtime.processes.process_map import processes_of


@final
@dataclass(frozen=True)
class PipelineStats(IteratorStats):
    """What the pipeline of an iterator has done.

    Attributes:
        seconds: The time from the first read to now, or to the end of the data.
        waited_seconds: The time in which your program waited for elements.
        elements: How many elements your program has got.
        stages: The stages, from the sources to the end.
        bottleneck: The number of the stage that everything waits for; None if there is none.
        advice: One sentence that says what to change.
    """

    elements: int
    stages: tuple[StageStats, ...]
    bottleneck: int | None
    advice: str

    @property
    def taken(self) -> int:
        return self.elements

    def since(self, before: "PipelineStats") -> "PipelineStats":
        """Return the figures of the time since `before`, which the same iterator returned earlier.

        Examples:
            >>> import evenfeed as tf
            >>> tf.experimental.enable_stats()
            >>> iterator = iter(tf.data.Dataset.range(10).batch(2))
            >>> tf.experimental.enable_stats(False)
            >>> first, before = next(iterator), iterator.stats()
            >>> rest = list(iterator)
            >>> iterator.stats().since(before).stages[1].elements
            4
        """
        seconds = self.seconds - before.seconds
        known = {stage.number: stage for stage in before.stages}
        stages = [
            stage.since(known[stage.number], seconds) if stage.number in known else stage
            for stage in self.stages
        ]
        waited = self.waited_seconds - before.waited_seconds
        return pipeline_stats(seconds, waited, self.elements - before.elements, stages)


def pipeline_stats(
    seconds: float, waited: float, elements: int, stages: Sequence[StageStats]
) -> PipelineStats:
    """Return the figures of a pipeline, with what to change."""
    return PipelineStats(
        seconds, waited, elements, tuple(stages), *advised(stages, seconds, waited)
    )


@final
class PipelineMeasure:
    """Measures the pipeline of one iterator.

    Attributes:
        meter: The meters of its stages.
        held: Returns how many elements were read, but not delivered yet.
        dropped: How many elements were read, and will never be delivered.

    Args:
        plan: The plan that is read.
    """

    def __init__(self, plan: Node) -> None:
        self._plan = plan
        self.meter = PlanMeter()
        self._consumer = StageMeter(plan, self.meter.events)
        self._has_ended = False
        self.held: Callable[[], int] = int
        self.dropped = 0

    @property
    def name(self) -> str:
        """The last stage and its line, of which there is one for each pass."""
        last = self._steps[-1]
        return " at ".join(filter(None, [last.label, _line(last.node)]))

    def top(self, operator: Operator) -> Operator:
        """Return the operator that the consumer reads: that of the last stage, if it counts what it returns."""
        self._has_ended = False
        if isinstance(operator, MeasuredOperator) and operator.counts:
            self._consumer = operator.stage
            return operator
        return MeasuredOperator(operator, self._consumer)

    def end(self) -> None:
        """Stop the time, because there are no more elements."""
        self._has_ended = True

    def stats(self) -> PipelineStats:
        """Return the figures up to now."""
        taken = self._consumer
        end = taken.last if self._has_ended else perf_counter()
        seconds = end - taken.first if taken.first else 0.0
        waited = taken.own + taken.below
        early = min(self.held() + self.dropped, taken.elements)
        stages = list(self._stages(seconds))
        last = len(self._steps) - 1
        stages[last] = stages[last].without(early)
        return pipeline_stats(seconds, waited, taken.elements - early, stages)

    def events(self) -> list[TraceEvent]:
        """Return the latest reads."""
        found: list[TraceEvent] = []
        for stage, thread, began, seconds, elements in list(self.meter.events):
            is_stage = self.meter.known(stage.node) is stage or stage is not self._consumer
            name = label_of(stage.node, []) if is_stage else "next"
            found.append(TraceEvent(name, _line(stage.node), thread, began, seconds, elements))
        return found

    @cached_property
    def _steps(self) -> list[PlanStep]:
        return steps_of(self._plan)

    def _stages(self, seconds: float) -> Iterator[StageStats]:
        inner: list[tuple[int, StageMeter]] = []
        for step in self._steps:
            yield _stage_stats(step, self.meter, seconds)
            opened = self.meter.inner.get(id(step.node))
            if opened is not None:
                inner += [(step.number, stage) for stage in _every(opened)]
        for number, (opener, stage) in enumerate(inner, len(self._steps) + 1):
            step = PlanStep(number, label_of(stage.node, []), stage.node, [])
            yield _figures(step, [stage], seconds, opener)


def _every(meter: PlanMeter) -> Iterator[StageMeter]:
    """Yield the stages of datasets that were made while reading, also those made while these were read."""
    yield from meter.stages()
    for inner in list(meter.inner.values()):
        yield from _every(inner)


def _stage_stats(step: PlanStep, meter: PlanMeter, seconds: float) -> StageStats:
    meters = [found for node in step.nodes if (found := meter.known(node)) is not None]
    return _figures(step, meters, seconds, None)


def _figures(
    step: PlanStep, meters: list[StageMeter], seconds: float, inside: int | None
) -> StageStats:
    node = step.node
    elements = meters[-1].count if meters else 0
    buffer = next((one for one in reversed(meters) if one.fills), None)
    own, below = sum(one.own for one in meters), sum(one.below for one in meters[:1])
    workers, kind = workers_of(node)
    functions = functions_of(node)
    if isinstance(node, Prefetch) and node.buffer_size:
        own, below = 0.0, own + below  # a prefetch only waits for its thread
    elif workers > 1 or kind == "processes":
        own = sum(one.function.seconds for one in meters if one.function is not None)
    return StageStats(
        number=step.number,
        name=step.label,
        line=_line(node),
        inputs=tuple(step.inputs),
        elements=elements,
        elements_per_second=elements / seconds if seconds else 0.0,
        bytes=meters[-1].bytes if meters else 0,
        busy_seconds=own,
        cpu_seconds=_computing(own, meters),
        input_wait_seconds=below,
        room_wait_seconds=sum(one.room for one in meters),
        buffered=None if buffer is None else buffer.buffered / buffer.fills,
        buffer_size=None if buffer is None else buffer.buffer_size,
        workers=workers,
        kind=kind,
        method=method_of(node),
        way=next((function.way for function in functions), ""),
        is_tuned=any(bool(function.record.is_called_here) for function in functions),
        inside=inside,
    )


def _computing(busy: float, meters: list[StageMeter]) -> float | None:
    """Return the part of the busy time in which a processor ran the function; None if that is not measured."""
    waits = [one.function.waited for one in meters if one.function and one.function.splits]
    return max(0.0, busy - sum(waits)) if waits else None


def workers_of(node: Node) -> tuple[int, str]:
    """Return how many threads or processes work in a node, and which of the two."""
    if not isinstance(node, Map):
        return 1, "thread"
    if node.processes:
        return processes_of(node), "processes"
    function = node.function
    assert isinstance(function, RowFunction)
    threads = threads_of(function, node, in_order=True)
    threads = 1 if function.record.is_called_here else threads
    return threads, "threads" if threads > 1 else "thread"


def _line(node: Node) -> str:
    return "" if node.origin is None else str(node.origin)


def not_measured() -> FailedPreconditionError:
    """Return the error for the figures of an iterator that was not measured."""
    return FailedPreconditionError(
        "This iterator is not measured, so it has no figures.",
        fix="call tf.experimental.enable_stats() before the iterator is created.",
    )
