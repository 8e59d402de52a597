"""Says how a plan runs: step by step, from the source to the end."""

import json
from dataclasses import dataclass
from time import perf_counter
from typing import Final, final

from evenfeed.core.json_values import to_json
from evenfeed.core.side_effects import Effect
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.plan.batching import PaddedBatch, Rebatch, Unbatch
from evenfeed.plan.buffering import Cache, Prefetch, Snapshot
from evenfeed.plan.checking import IgnoreErrors, Unique
from evenfeed.plan.combining import Choose, Counter, Random, Sample
from evenfeed.plan.elementwise import Filter, Map, Scan, TakeWhile
from evenfeed.plan.files import Files
from evenfeed.plan.flattening import FlatMap, GroupByWindow, Interleave
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.options import ExternalStatePolicy
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.sources import FromGenerator
from evenfeed.plan.windows import Window
from evenfeed.runtime.build import build
from evenfeed.runtime.explain_text import (
    counted,
    is_random_map,
    label_of,
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
from evenfeed.runtime.operator import Operator, rows_per_block
from evenfeed.runtime.operators.elementwise import threads_of
from evenfeed.runtime.positions.indexing import Search
from evenfeed.runtime.processes.process_map import processes_of
from evenfeed.runtime.run import Run, next_pass

# A state with so many bytes of one step is not worth a word.
_SMALL: Final = 4096


@final
class Explanation(str):
    """A text that is shown as it is, also where a prompt or a notebook shows a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explained_plan(plan: Node, seconds: float) -> Explanation:
    """Return how a plan runs.

    Args:
        plan: What to explain.
        seconds: How long to read it before, to measure how fast it is; 0 reads nothing.
    """
    speed = _measured(plan, seconds) if seconds > 0 else None
    steps = _steps(plan)
    lines = [line for step in steps for line in _lines(step, steps)]
    resume = _resume(steps, ExternalState(plan))
    return Explanation("\n".join([*lines, resume, *([speed] if speed else [])]))


@final
@dataclass(frozen=True)
class _Step:
    """One line: a node, and what there is to say about it."""

    number: int
    label: str
    node: Node
    spec: str
    is_like_before: bool  # its elements are of one kind with those of the step before
    is_addressed: bool
    is_first_unaddressed: bool  # though all that it reads is addressed

    @property
    def origin(self) -> str:
        return "" if self.node.origin is None else str(self.node.origin)

    @property
    def size(self) -> str:
        return size_text(self.node.size)


def _steps(plan: Node) -> list[_Step]:
    """Return the steps, each behind those that it reads; one that stands in two places comes once."""
    steps: dict[int, _Step] = {}
    run, search = Run(plan, next_pass), Search()
    hidden = {id(node.children[0]) for node in plan.walk() if is_random_map(node)}
    unknown: set[int] = set()  # nodes whose spec is known only when an element was read
    for node in plan.bottom_up():
        if not is_spec_known(node) or any(id(child) in unknown for child in node.children):
            unknown.add(id(node))
        if id(node) in hidden:
            continue
        children = [steps[id(child)] for child in _read_by(node)]
        number = len(steps) + 1
        before = [child.number for child in children]
        spec = (
            "known after the first element" if id(node) in unknown else spec_text(node.element_spec)
        )
        addressed = search.indexed(node, run) is not None
        steps[id(node)] = _Step(
            number,
            label_of(node, [] if before in ([], [number - 1]) else before),
            node,
            spec,
            before == [number - 1] and children[0].spec == spec,
            addressed,
            not addressed and all(child.is_addressed for child in children),
        )
    return list(steps.values())


def _read_by(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a step reads; random_map is one step of two nodes."""
    return node.children[0].children if is_random_map(node) else node.children


def _lines(step: _Step, steps: list[_Step]) -> list[str]:
    labels, origins, sizes = (
        max(len(getattr(other, part)) for other in steps) for part in ("label", "origin", "size")
    )
    spec = "" if step.is_like_before else step.spec
    line = f"{step.number:>2}  {step.label:<{labels}}  {step.origin:<{origins}}  {step.size:<{sizes}}  {spec}"
    return [line.rstrip(), *(f"      {note}" for note in _notes(step))]


def _notes(step: _Step) -> list[str]:
    notes = [_how_it_runs(function, step.node) for function in functions_of(step.node)]
    if step.is_first_unaddressed:
        notes.append(f"elements have no positions from here on: {_why_in_turn(step.node)}")
    return notes


def _how_it_runs(function: RowFunction, node: Node) -> str:
    if isinstance(node, Map) and node.processes:
        count = processes_of(node)
        where = "another process" if count == 1 else f"{count} processes"
        return f"{function.way} in {where}: processes=True; {_how_fast(function, count)}"
    in_order = isinstance(node, Map) and node.deterministic is not False
    threads = threads_of(function, node, in_order=in_order) if isinstance(node, Map) else 1
    where = f" in {threads} threads" if threads > 1 else ""
    if function.is_vectorised and not runs_on_blocks(function, node):
        return f"per element: in their order; {_how_fast(function, threads)}"
    return f"{function.way}{where}: {function.why}; {_how_fast(function, threads)}"


def _how_fast(function: RowFunction, threads: int) -> str:
    meter = function.meter
    if meter.rate is None:
        compiled = function.compilations > 0
        return "only compiled so far" if compiled else "not run so far"
    each = " in each" if threads > 1 else ""
    said = f"{rate_text(meter.rate, 'rows')}{each}, over {counted(meter.rows, 'row')}"
    if function.is_vectorised and meter.singly:
        said += f", {meter.singly:,} of them one by one because shapes differ"
    return said


def _why_in_turn(node: Node) -> str:
    """Return why a node reads its elements one after another."""
    match node:
        case FromGenerator():
            return "a generator only goes forward"
        case Files():
            return "how many rows there are is known only when the files are read"
        case Counter() | Random():
            return "it only counts forward"
        case Map(function=RowFunction() as function):
            return f"{function.name} {function.effects.text() or 'runs per element'}"
        case Filter() | TakeWhile() | Unique() | IgnoreErrors():
            return "which elements stay is known only when they are read"
        case FlatMap() | Interleave() | GroupByWindow() | Unbatch() | Rebatch():
            return "how many elements come is known only when they are read"
        case Batch() | PaddedBatch() | Window():
            return "each is made of several"
        case Scan():
            return "each needs the state that the one before left"
        case Cache() | Prefetch() | Snapshot():
            return "they are held in the order in which they come"
        case Choose() | Sample():
            return "who comes next is chosen on the way"
        case _:
            return "it reads one after another"


def _resume(steps: list[_Step], outside: ExternalState) -> str:
    """Return how an iterator goes on behind a saved state, and whether the same elements come."""
    lost = "; ".join(f"{what_it_does(called)} ({called.origin})" for called in outside.lost)
    if lost and outside.policy is ExternalStatePolicy.FAIL:
        return f"resume: get_state raises, for other elements would come: {lost}"
    said = f"resume: {_how_to_resume(steps)}"
    if lost:
        return f"{said}, but other elements come: {lost}"
    read = any(Effect.READS in called.effects for called in outside.called)
    return f"{said}; what variables hold is no part of a state" if read else said


def _how_to_resume(steps: list[_Step]) -> str:
    again = [f"{step.number} {method_of(step.node)}" for step in steps if _replays(step)]
    if steps[-1].is_addressed:
        return "by position, at once"
    if again:
        return f"by reading again what came before, because of step {', '.join(again)}"
    carried = [text for step in steps if (text := _carried(step)) is not None]
    return "; ".join(["by position", *carried])


def _carried(step: _Step) -> str | None:
    """Return what makes a state large: what a scan carries along is in it."""
    if not isinstance(step.node, Scan):
        return None
    size = len(json.dumps([to_json(part) for part in step.node.initial]))
    grows = is_spec_known(step.node) and not all(map(_is_of_one_size, step.node.carried_specs))
    if size < _SMALL and not grows:
        return None
    return (
        f"the state holds what step {step.number} scan carries: {size:,} bytes"
        f"{' at first, of any length' if grows else ''}"
    )


def _is_of_one_size(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined()


def _replays(step: _Step) -> bool:
    """Tell whether a step has no position to go back to, and reads again up to it instead."""
    match step.node:
        case FromGenerator() | Unique() | GroupByWindow() | Cache():
            return True
        case Shuffle():
            return not step.is_addressed
        case Files(files=files):
            return any(file.is_read_again for file in files)
        case _:
            return False


def _measured(plan: Node, seconds: float) -> str:
    """Read for a while, as no pass of the user's; return how fast elements came behind the first."""
    run = Run(plan, next_pass)
    operator = build(plan, run)
    try:
        first = operator.read(1)  # functions are compiled, files opened, threads started
        began = perf_counter()
        count = 0 if first is None else _count(operator, began + seconds)
        passed = perf_counter() - began
    finally:
        operator.close()
        run.close()
    if count == 0:
        return f"measured: nothing, for there is {'no element' if first is None else 'one element'}"
    return f"measured: {rate_text(count / passed, 'elements')}, {count:,} in {passed:.2g} s"


def _count(operator: Operator, end: float) -> int:
    """Read until a time; return how many elements came.

    Reads grow 1, 2, 4, …: the last takes about as long as all before it, so a slow function cannot
    make this much longer than it was asked to be.
    """
    count, most = 0, 1
    while perf_counter() < end and (block := operator.read(most)) is not None:
        count, most = count + block.length, min(2 * most, rows_per_block(block))
    return count
