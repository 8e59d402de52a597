"""Operators for map, filter, take_while, scan, enumerate and random_map, and the rows of those with positions."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions, of_rows
from evenfeed.core.conversion import Array
from evenfeed.core.randomness.random_bits import key_of, words_at
from evenfeed.formats.json_values import from_json, to_json
from evenfeed.plan.elementwise import (
    AUTOTUNE,
    Enumerate,
    Filter,
    Map,
    Scan,
    TakeWhile,
    WithKeys,
)
from evenfeed.plan.options import WithOptions
from evenfeed.runtime.functions.arithmetic.joined_functions import JoinedFunctions
from evenfeed.runtime.functions.called_functions import draws_in_turn
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.functions.single_steps import SingleStep, single_step
from evenfeed.runtime.operator import FailedRow, Operator, PushbackOperator, PushbackReader, State
from evenfeed.runtime.operators.filtering import KeepSome, StopAtFalse
from evenfeed.runtime.operators.parallel import keeps_order
from evenfeed.runtime.operators.thread_map import MapInThreads, threads_of
from evenfeed.runtime.positions.indexing import Indexed, Lookup, addresses, forward
from evenfeed.runtime.positions.mapped_rows import mapped_rows
from evenfeed.runtime.positions.rows import (
    LARGEST_NUMBER,
    Numbered,
    Rows,
    numbered,
    side_by_side,
    uncountable,
)
from evenfeed.runtime.processes.process_map import mapped_in_processes
from evenfeed.runtime.provenance import Provenance, RowOrigin
from evenfeed.runtime.read_size import ReadWide, goes_unnoticed, widened
from evenfeed.runtime.run import Run
from evenfeed.runtime.step import Step, runs

# The version of iterator states since which one operator runs several filters, and several maps.
_FILTERS_JOINED_SINCE: Final = 5
_MAPS_JOINED_SINCE: Final = 6


@addresses(WithOptions)
def _as_they_are(lookup: Lookup[WithOptions]) -> Indexed:
    return lookup.child()


@runs(WithOptions)
def _pass_on(step: Step[WithOptions]) -> Operator:
    return step.child


@addresses(Enumerate)
def _numbered(lookup: Lookup[Enumerate]) -> Indexed:
    (rows,) = lookup.rows()
    return forward(Numbered(rows, lookup.node.start))


@runs(Enumerate)
def _count_elements(step: Step[Enumerate]) -> Operator:
    return CountElements(step.child, step.node.start)


@final
class CountElements(Operator):
    """Prepends a running count to each element."""

    calls_nothing = True

    def __init__(self, child: Operator, start: int) -> None:
        self._child = child
        self._next = start

    def read(self, most: int) -> Block | None:
        room = max(1, LARGEST_NUMBER + 1 - self._next)
        try:
            block = self._child.read(min(most, room))
        except Exception:
            self._next += 1  # an element that fails is counted, too
            raise
        if block is None:
            return None
        first = self._next
        self._next += block.length
        if first > LARGEST_NUMBER:
            raise uncountable()
        return numbered(block, first + np.arange(block.length, dtype=np.int64))

    def provenance(self, count: int) -> Provenance:
        return self._child.provenance(count)

    def state(self) -> State:
        return [self._next, self._child.state()]

    def restore(self, state: State) -> None:
        self._next, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@addresses(WithKeys)
def _keyed_rows(lookup: Lookup[WithKeys]) -> Indexed:
    (rows,) = lookup.rows()
    return forward(KeyedRows(rows, lookup.run.seed_of_round(lookup.node, lookup.epoch)))


@runs(WithKeys)
def _draw_keys(step: Step[WithKeys]) -> Operator:
    return DrawKeys(step.child, step.seed)


@final
class DrawKeys(Operator):
    """Prepends random bits to each element; they depend only on the seed and the element's position."""

    calls_nothing = True

    def __init__(self, child: Operator, seed: tuple[int, ...]) -> None:
        self._elements = CountElements(child, 0)
        self._key = key_of(*seed)

    def read(self, most: int) -> Block | None:
        block = self._elements.read(most)
        if block is None:
            return None
        numbers, *columns = block.columns
        return keyed(Block(tuple(columns), block.length), self._key, np.asarray(numbers))

    def provenance(self, count: int) -> Provenance:
        return self._elements.provenance(count)

    def state(self) -> State:
        return self._elements.state()

    def restore(self, state: State) -> None:
        self._elements.restore(state)

    def children(self) -> tuple[Operator, ...]:
        return (self._elements,)


@final
class KeyedRows(Rows):
    """Rows with the random bits of their positions prepended."""

    def __init__(self, rows: Rows, seed: tuple[int, ...]) -> None:
        self._rows = rows
        self._key = key_of(*seed)
        self.size = rows.size

    def fetch(self, positions: Positions) -> Block:
        rows = self._rows.fetch(positions)
        return keyed(rows, self._key, positions[: rows.length])

    def run(self, start: int, count: int) -> Block:
        rows = self._rows.run(start, count)
        return keyed(rows, self._key, np.arange(start, start + rows.length, dtype=np.int64))

    def provenance(self, position: int) -> RowOrigin | None:
        return self._rows.provenance(position)


def keyed(block: Block, key: int, positions: Positions) -> Block:
    """Prepend a column of random bits to a Block."""
    return side_by_side([Block((words_at(key, positions),), block.length), block])


@addresses(Map)
def _mapped_rows(lookup: Lookup[Map]) -> Indexed:
    rows, order = lookup.child()
    function = lookup.node.function
    assert isinstance(function, RowFunction)
    return mapped_rows(rows, function), order


@runs(Map)
def _map(step: Step[Map]) -> Operator:
    function = step.node.function
    if step.node.processes and isinstance(function, RowFunction):
        return mapped_in_processes(step.child, function, step.node, step.run)
    functions = [step.function]
    while (below := _map_below(step)) is not None:
        functions.insert(0, below.function)
        step = below
    function = functions[0] if len(functions) == 1 else JoinedFunctions(functions)
    operator = mapped(step.child, function, step.node, step.run)
    return widened(operator, step.child, functions[0])


def _map_below(step: Step[Map]) -> Step[Map] | None:
    """Return the map below this one if one operator can run both on whole Blocks."""
    child = step.node.child
    if not isinstance(child, Map) or child.processes or not step.is_of_version(_MAPS_JOINED_SINCE):
        return None
    if step.is_early or not _joins(step.function):
        return None
    below = step.below(child)
    return below if _joins(below.function) else None


def mapped(
    child: Operator, function: RowFunction | JoinedFunctions, node: Map, run: Run
) -> Operator:
    """Return the operator that runs `function`: on Blocks, or on several elements in parallel."""
    if isinstance(function, JoinedFunctions):
        return MapRows(child, function)
    in_order = keeps_order(node, run)
    threads = threads_of(function, node, in_order=in_order)
    if threads == 1:
        return MapRows(child, function)
    tuned = node.num_parallel_calls == AUTOTUNE
    return MapInThreads(child, function, threads, in_order=in_order, tuned=tuned)


def _joins(function: RowFunction) -> bool:
    """Return True if a function can run with other maps in one operator.

    An error would be raised by the whole operator, so functions that may fail run alone.
    """
    return function.is_pure and function.is_vectorised and not function.can_fail


@final
class MapRows(PushbackOperator):
    """Runs a function on whole Blocks. Skips an element that fails."""

    def __init__(self, child: Operator, function: RowFunction | JoinedFunctions) -> None:
        super().__init__(child)
        self._function = function
        parts = [function] if isinstance(function, RowFunction) else function.functions
        self._parts: Sequence[RowFunction] = parts

    @property
    def hides_reads(self) -> bool:
        return self._feed.child.hides_reads and all(map(goes_unnoticed, self._parts))

    def read(self, most: int) -> Block | None:
        block = self._feed.read(most)
        if block is None:
            return None
        try:
            return self._function.rows(block, self._feed.number - block.length)
        except FailedRow as failed:
            self._feed.give_back_failed(block.length - failed.index, failed.error)
            before = failed.before
        return before or self.read(most)

    def seek(self, count: int) -> None:
        self._feed.seek(count)

    def rewound(self, count: int) -> State | None:
        return self._feed.rewound(count)

    def provenance(self, count: int) -> Provenance:
        return self._feed.provenance(count)


@runs(Filter)
def _keep_some(step: Step[Filter]) -> Operator:
    predicates = [step.function]
    while (below := _filter_below(step)) is not None:
        predicates.insert(0, below.function)
        step = below
    operator = KeepSome(step.child, *predicates)
    return ReadWide(operator) if operator.is_free else operator


def _filter_below(step: Step[Filter]) -> Step[Filter] | None:
    """Return the filter below this one if one operator can run both: this predicate may then see more elements."""
    child = step.node.child
    if not isinstance(child, Filter) or not step.is_of_version(_FILTERS_JOINED_SINCE):
        return None
    function = step.function
    if not (function.is_pure and function.is_vectorised) or function.can_fail or step.is_early:
        return None
    return step.below(child)


@runs(TakeWhile)
def _stop_at_false(step: Step[TakeWhile]) -> Operator:
    singly = step.run.may_restart and draws_in_turn(step.node.child)
    return StopAtFalse(step.child, step.function, singly=singly)


@runs(Scan)
def _carry_state(step: Step[Scan]) -> Operator:
    return CarryState(step.child, step.node, step.function)


@final
class CarryState(Operator):
    """Calls a function with the carried state and each element; it returns the next state and an output."""

    def __init__(self, child: Operator, node: Scan, function: RowFunction) -> None:
        self._feed = PushbackReader(child)
        self._function = function
        self._carried: list[Any] = list(node.initial)
        self._step = single_step(function.traced)

    def read(self, most: int) -> Block | None:
        block = self._feed.read(most)
        if block is None:
            return None
        columns = [column for column in block.columns if type(column) is np.ndarray]
        if self._step is not None and len(columns) == len(block.columns):
            return self._stepped(self._step, columns, block.length)
        outputs = self._outputs(block)
        return of_rows(outputs) if outputs else self.read(most)

    def _stepped(self, step: SingleStep, columns: Sequence[Array], length: int) -> Block:
        start, count = perf_counter(), len(self._carried)
        carried, outputs = [np.asarray(part)[None] for part in self._carried], list[list[Array]]()
        with np.errstate(all="ignore"):
            for row in range(length):
                found = step([*carried, *(column[row : row + 1] for column in columns)])
                carried = found[:count]
                outputs.append(found[count:])
        self._carried = [part[0, ...] for part in carried]
        self._function.meter.add(length, perf_counter() - start)
        joined = (np.concatenate(parts) for parts in zip(*outputs, strict=True))
        return Block(tuple(joined), length)

    def _outputs(self, block: Block) -> list[list[Any]]:
        outputs: list[list[Any]] = []
        count = len(self._carried)
        for index in range(block.length):
            rest = block.length - index
            parts = [*self._carried, *block.row(index)]
            try:
                result = self._function.one(parts, self._feed.number - rest)
            except Exception as error:  # noqa: BLE001 - raised after the elements before it
                self._feed.give_back_failed(rest, error)
                break
            self._carried = result[:count]
            outputs.append(result[count:])
        return outputs

    def state(self) -> State:
        return [[to_json(part) for part in self._carried], self._feed.state()]

    def restore(self, state: State) -> None:
        carried, position = state
        self._carried = [from_json(part) for part in carried]
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        return (self._feed.child,)
