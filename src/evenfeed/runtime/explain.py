"""Dataset.explain(): how a plan runs, step by step from the source to the end."""

import json
from dataclasses import dataclass
from time import perf_counter
from typing import Final, final

from evenfeed.core.side_effects import Effect
from evenfeed.core.specs import is_of_one_shape
from evenfeed.formats.json_values import to_json
from evenfeed.plan.addressing import Reason, reasons_in
from evenfeed.plan.elementwise import Map, Scan
from evenfeed.plan.node import Node
from evenfeed.plan.options import ExternalStatePolicy
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.packing import Pack
from evenfeed.runtime.build import build
from evenfeed.runtime.explain_text import (
    counted,
    method_of,
    rate_text,
    size_text,
    spec_text,
)
from evenfeed.runtime.functions.called_functions import (
    ExternalState,
    functions_of,
    is_spec_known,
    runs_on_blocks,
    what_it_does,
)
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.measuring.pipeline_stats import PipelineMeasure, PipelineStats
from evenfeed.runtime.measuring.stage_text import stage_text
from evenfeed.runtime.operator import Operator, rows_per_block
from evenfeed.runtime.operators.parallel import unordered_map, wants_no_order
from evenfeed.runtime.operators.thread_map import threads_of
from evenfeed.runtime.plan_steps import steps_of
from evenfeed.runtime.processes.process_map import processes_of
from evenfeed.runtime.run import Run, next_pass

# A carried state of fewer bytes is not mentioned.
_SMALL: Final = 4096

_IN_ORDER: Final = "results keep their order in spite of deterministic=False: a later step reads elements again to resume"


@final
class Explanation(str):
    """A string whose repr is its text, so that prompts and notebooks show it readably."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explained_plan(plan: Node, seconds: float) -> Explanation:
    """Return how a plan runs.

    Args:
        plan: The plan to explain.
        seconds: How long to read it first, to measure its speed; 0 reads nothing.
    """
    speed, stats = _measured(plan, seconds) if seconds > 0 else (None, None)
    lines = _text(plan, stats)
    return Explanation("\n".join([*lines, *([speed] if speed else [])]))


def explained_pass(plan: Node, stats: PipelineStats) -> Explanation:
    """Return how a plan runs, with the figures of an iterator over it."""
    waited = stats.waited_seconds / stats.seconds if stats.seconds else 0.0
    speed = f"measured: {counted(stats.elements, 'element')} in {stats.seconds:.3g} s, of which {waited:.0%} waiting"
    return Explanation("\n".join([*_text(plan, stats), speed, f"advice: {stats.advice}"]))


def _text(plan: Node, stats: PipelineStats | None) -> list[str]:
    steps = _steps(plan)
    figures = {} if stats is None else {one.number: stage_text(one, stats) for one in stats.stages}
    lines: list[str] = []
    for step in steps:
        lines += _lines(step, steps)
        lines += [f"      {figures[step.number]}"] if step.number in figures else []
    return [*lines, _resume(steps, ExternalState(plan))]


@final
@dataclass(frozen=True)
class _Step:
    """One line: a node and its description."""

    number: int
    label: str
    node: Node
    spec: str
    is_like_before: bool  # its spec equals that of the step before
    reason: Reason | None  # why it is read sequentially

    @property
    def origin(self) -> str:
        return "" if self.node.origin is None else str(self.node.origin)

    @property
    def size(self) -> str:
        return size_text(self.node.size)


def _steps(plan: Node) -> list[_Step]:
    """Return the steps with their specs."""
    found: dict[int, _Step] = {}
    reasons = reasons_in(plan)
    unknown: set[int] = set()  # nodes whose spec is known only after an element has been read
    for node in plan.bottom_up():
        if not is_spec_known(node) or any(id(child) in unknown for child in node.children):
            unknown.add(id(node))
    for number, label, node, inputs in steps_of(plan):
        spec = (
            "known after the first element" if id(node) in unknown else spec_text(node.element_spec)
        )
        alike = inputs == [number - 1] and found[number - 1].spec == spec
        found[number] = _Step(number, label, node, spec, alike, reasons[id(node)])
    return list(found.values())


def _lines(step: _Step, steps: list[_Step]) -> list[str]:
    labels, origins, sizes = (
        max(len(getattr(other, part)) for other in steps) for part in ("label", "origin", "size")
    )
    spec = "" if step.is_like_before else step.spec
    line = f"{step.number:>2}  {step.label:<{labels}}  {step.origin:<{origins}}  {step.size:<{sizes}}  {spec}"
    return [line.rstrip(), *(f"      {note}" for note in _notes(step, steps[-1].node))]


def _notes(step: _Step, plan: Node) -> list[str]:
    node, in_order = step.node, step.node is not unordered_map(plan)
    notes = [_how_it_runs(function, node, in_order=in_order) for function in functions_of(node)]
    if in_order and isinstance(node, Map) and wants_no_order(node, plan):
        notes.append(_IN_ORDER)
    if step.reason is not None and step.reason.node is step.node:
        notes.append(f"read sequentially from here on: {step.reason.text}")
    return notes


def _how_it_runs(function: RowFunction, node: Node, *, in_order: bool) -> str:
    if isinstance(node, Map) and node.processes:
        count = processes_of(node)
        where = "another process" if count == 1 else f"{count} processes"
        return f"{function.way} in {where}: processes=True; {_how_fast(function, count)}"
    threads = threads_of(function, node, in_order=in_order) if isinstance(node, Map) else 1
    if threads > 1 and function.record.is_called_here:
        found = "AUTOTUNE found threads no faster; processes=True may help"
        return f"{function.way} in the reading thread: {function.why}; {found}; {_how_fast(function, 1)}"
    where = f" in {threads} threads" if threads > 1 else ""
    if function.is_vectorised and not runs_on_blocks(function, node):
        return f"per element: elements are processed in order; {_how_fast(function, threads)}"
    return f"{function.way}{where}: {function.why}; {_how_fast(function, threads)}"


def _how_fast(function: RowFunction, threads: int) -> str:
    meter = function.meter
    if meter.rate is None:
        compiled = function.compilations > 0
        return "compiled but not run yet" if compiled else "not run yet"
    each = " in each" if threads > 1 else ""
    speed = f"{rate_text(meter.rate, 'rows')}{each}, over {counted(meter.rows, 'row')}"
    if function.is_vectorised and meter.singly:
        speed += f", {meter.singly:,} of them one by one because shapes differ"
    return speed


def _resume(steps: list[_Step], outside: ExternalState) -> str:
    """Return how an iterator resumes from a saved state, and whether it returns the same elements."""
    lost = "; ".join(f"{what_it_does(called)} ({called.origin})" for called in outside.lost)
    if lost and outside.policy is ExternalStatePolicy.FAIL:
        return f"resume: get_state raises, because the elements would differ: {lost}"
    resume = f"resume: {_how_to_resume(steps)}"
    if lost:
        return f"{resume}, but the elements will differ: {lost}"
    read = any(Effect.READS in called.effects for called in outside.called)
    return f"{resume}; the values of variables are not part of the state" if read else resume


def _how_to_resume(steps: list[_Step]) -> str:
    again = [f"{step.number} {method_of(step.node)}" for step in steps if _replays(step)]
    if steps[-1].reason is None:
        return "by position, at once"
    if again:
        return f"by re-reading earlier elements, because of step {', '.join(again)}"
    notes = [text for step in steps if (text := _carried(step) or _refilled(step)) is not None]
    return "; ".join(["by position", *notes])


def _carried(step: _Step) -> str | None:
    """Return a note if the state of a scan, which holds the carried values, is large."""
    if not isinstance(step.node, Scan):
        return None
    size = len(json.dumps([to_json(part) for part in step.node.initial]))
    grows = is_spec_known(step.node) and not all(map(is_of_one_shape, step.node.carried_specs))
    if size < _SMALL and not grows:
        return None
    return (
        f"the state includes what step {step.number} scan carries: {size:,} bytes"
        f"{' initially, and may grow' if grows else ''}"
    )


def _refilled(step: _Step) -> str | None:
    """Return a note if a step reads some elements again for its buffer."""
    if isinstance(step.node, Pack):
        return f"step {step.number} pack reads the rows of open sequences again"
    if not isinstance(step.node, Shuffle) or step.reason is None:
        return None
    return f"step {step.number} shuffle reads elements again to fill its buffer of {step.node.buffer_size:,}"


def _replays(step: _Step) -> bool:
    """Return True if a step cannot restore a position and re-reads up to it instead."""
    node = step.node
    if isinstance(node, Shuffle) and node.buffer_size > 0:
        return False
    return node.facts.replays and not (node.facts.by_position and step.reason is None)


def _measured(plan: Node, seconds: float) -> tuple[str, PipelineStats]:
    """Read for a while, without counting it as a pass; return how fast elements came after the first."""
    run, measure = Run(plan, next_pass), PipelineMeasure(plan)
    run.meter = measure.meter
    operator = measure.top(build(plan, run))
    try:
        first = operator.read(1)  # compiles functions, opens files, starts threads
        began = perf_counter()
        started = measure.stats()
        count = 0 if first is None else _count(operator, began + seconds)
        passed, stats = perf_counter() - began, measure.stats().since(started)
    finally:
        operator.close()
        run.close()
    if count == 0:
        few = "no" if first is None else "only one"
        return f"measured: nothing, because there is {few} element", stats
    rate = rate_text(count / passed, "elements")
    return f"measured: {rate}, {count:,} in {passed:.2g} s", stats


def _count(operator: Operator, end: float) -> int:
    """Read until a time; return how many elements came.

    Reads grow 1, 2, 4, …: the last takes about as long as all before it, so a slow function cannot exceed the given
    time by much.
    """
    count, most = 0, 1
    while perf_counter() < end and (block := operator.read(most)) is not None:
        count, most = count + block.length, min(2 * most, rows_per_block(block))
    return count
