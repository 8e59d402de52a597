"""Batches of elements: as rows with positions, and as an operator for elements without positions."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.block import Block, Column, Positions, concatenated, items, stacked
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import INFINITE, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, paths
from evenfeed.plan.grouping import Batch
from evenfeed.runtime.operator import (
    FailedRow,
    Operator,
    ProvenanceReader,
    State,
    read_before_error,
)
from evenfeed.runtime.positions.indexing import Indexed, Lookup, addresses, forward
from evenfeed.runtime.positions.rows import Rows
from evenfeed.runtime.provenance import Provenance, RowOrigin
from evenfeed.runtime.step import Step, runs


@addresses(Batch)
def _batched(lookup: Lookup[Batch]) -> Indexed:
    (rows,) = lookup.rows()
    return forward(BatchedRows(rows, lookup.node))


@final
class BatchedRows(Rows):
    """Batches of consecutive rows, which all have one shape. A short last batch is a Block of its own."""

    def __init__(self, rows: Rows, node: Batch) -> None:
        self._rows = rows
        self._node = node
        self._batch = node.batch_size
        self._specs: list[TypeSpec] = flatten(node.row_spec, DATA)
        full, rest = divmod(rows.size, self._batch)
        self._short = 0 if node.drop_remainder or rows.size == INFINITE else rest
        self._last = full  # the position of a short batch
        self.size = INFINITE if rows.size == INFINITE else full + (self._short > 0)

    def fetch(self, positions: Positions) -> Block:
        if self._short:
            full = np.append(positions != self._last, False).argmin()
            if full == 0 and len(positions):
                return self.run(self._last, 1)
            positions = positions[:full]
        rows = positions[:, None] * self._batch + np.arange(self._batch)
        return self._stacked(lambda: self._rows.fetch(rows.ravel()), len(positions))

    def run(self, start: int, count: int) -> Block:
        first = start * self._batch
        if self._short and start == self._last:
            return self._stacked(lambda: self._rows.run(first, self._short), 1)
        full = min(count, self._last - start) if self._short else count
        return self._stacked(lambda: self._rows.run(first, full * self._batch), full)

    def _stacked(self, fetch: Callable[[], Block], count: int) -> Block:
        try:
            return folded(_joined([fetch()], self._specs, self._node), count, self._specs)
        except FailedRow as failed:
            error, damaged = failed.error, min(1, failed.damaged)
        except InvalidArgumentError as unlike:
            error, damaged = unlike, 0
        # One of the batches fails, and keeps its place.
        raise FailedRow(0, None, error, damaged=damaged)

    def partly(self, parts: Collection[int]) -> Rows | None:
        rows = self._rows.partly(parts)
        return None if rows is None else BatchedRows(rows, self._node)

    def provenance(self, position: int) -> RowOrigin | None:
        return of_batch(self._rows.provenance(position * self._batch))


@runs(Batch)
def _stack_batches(step: Step[Batch]) -> Operator:
    return StackBatches(step.child, step.node)


@final
class StackBatches(Operator):
    """Stacks consecutive elements into batches. A batch of another shape is a Block of its own.

    An error of the child takes the place of the batch it falls into. The state is the position before the last read,
    how many elements that read asked for, and how many of them were returned.
    """

    calls_nothing = True

    def __init__(self, child: Operator, node: Batch) -> None:
        self._child = child
        self._node = node
        self._specs: list[TypeSpec] = flatten(node.row_spec, DATA)
        self._runs: list[list[Block] | Exception] = []
        self._before: State = child.state()
        self._asked = 0
        self._done = 0
        self._source = ProvenanceReader(child)
        # The batches returned last: the index of their first element, and how many they are.
        self._last = (0, 0)

    @property
    def reads_freely(self) -> bool:
        return self._child.reads_freely

    def read(self, most: int) -> Block | None:
        """Return as many full batches as have one shape, then the short one."""
        if not self._runs:
            self._before, self._done = self._child.state(), 0
            self._asked = most * self._node.batch_size
            self._source.forget()
            block = self._source.read(self._asked)
            if block is None:
                return None
            # The usual case: full batches of one shape.
            if block.length == self._asked and None not in self._shapes(block):
                self._last = 0, most
                return folded(block, most, self._specs)
            self._runs = self._read_runs(block)
        while self._runs:
            run = self._runs.pop(0)
            if isinstance(run, Exception):
                raise run
            first, self._done = self._done, self._done + _length(run)
            count = _length(run) // self._node.batch_size
            self._last = first, max(1, count)
            if count or not self._node.drop_remainder:
                rows = _joined(run, self._specs, self._node)
                return folded(rows, max(1, count), self._specs)
        return None

    def _read_runs(self, *first: Block) -> list[list[Block] | Exception]:
        """Read elements after the `first`; return those not yet returned, in runs that stack together."""
        size = self._node.batch_size
        read, errors = read_before_error(self._source, self._asked - _length(first))
        blocks = list(_without([*first, *read], self._done))
        # Elements of different shapes: stack one batch at a time, because two batches may not fit together.
        rows = _length(blocks) if self._have_one_shape(blocks) else size
        runs = list(_runs(blocks, max(1, rows // size) * size))
        if errors and runs and _length(runs[-1]) % size:
            runs.pop()
        return [*runs, *errors]

    def _have_one_shape(self, blocks: Sequence[Block]) -> bool:
        shapes = [self._shapes(block) for block in blocks]
        return all(shape == shapes[0] and None not in shape for shape in shapes)

    def _shapes(self, block: Block) -> list[tuple[int, ...] | None]:
        return list(map(_row_shape, block.columns, self._specs))

    def provenance(self, count: int) -> Provenance:
        """Look up the first element of each batch."""
        first, batches = self._last
        size, elements = self._node.batch_size, self._source.provenance()

        def found(index: int) -> RowOrigin | None:
            return of_batch(elements(first + (batches - count + index) * size))

        return found

    def state(self) -> State:
        if not self._runs:
            return [self._child.state(), 0, 0]
        return [self._before, self._asked, self._done]

    def restore(self, state: State) -> None:
        self._before, self._asked, self._done = state
        self._child.restore(self._before)
        self._source.forget()
        self._runs = self._read_runs()

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


def of_batch(first: RowOrigin | None) -> RowOrigin | None:
    """Return the origin of a batch, given that of its first row."""
    return None if first is None else replace(first, row=f"the batch from {first.row} on")


def _joined(run: Sequence[Block], specs: Sequence[TypeSpec], node: Batch) -> Block:
    """Return the rows of batches as one Block of columns that can be stacked."""
    rows = concatenated(run)
    columns = tuple(
        [
            column if type(column) is np.ndarray else stackable(column, spec)
            for column, spec in zip(rows.columns, specs, strict=True)
        ]
    )
    for part, column in enumerate(columns):
        if isinstance(column, list) and not isinstance(specs[part], BatchableSpec):
            path = paths(node.element_spec, DATA)[part]
            raise InvalidArgumentError(
                f"All elements of a batch must have the same shape, but got {_shapes(column)}"
                + (f" in part {path}." if path else "."),
                fix="give all elements the same shape, or call padded_batch or ragged_batch; "
                "to batch batches, pass drop_remainder=True to the first batch().",
                origin=node.origin,
            )
    return Block(columns, rows.length)


def _runs(blocks: Sequence[Block], size: int) -> Iterator[list[Block]]:
    """Yield the rows in runs of `size`; the last may be short."""
    run: list[Block] = []
    room = size
    for block in blocks:
        start = 0
        while start < block.length:
            piece = block.cut(start, start + room)
            run.append(piece)
            start += piece.length
            room -= piece.length
            if room == 0:
                yield run
                run, room = [], size
    if run:
        yield run


def _without(blocks: Sequence[Block], count: int) -> Iterator[Block]:
    """Yield the rows after the first `count`."""
    for block in blocks:
        if count < block.length:
            yield block.cut(count, block.length)
        count = max(0, count - block.length)


def _length(blocks: Sequence[Block]) -> int:
    return sum(block.length for block in blocks)


def _row_shape(column: Column, spec: TypeSpec) -> tuple[int, ...] | None:
    """Return the shape of all rows; None if they differ and make no ragged batch."""
    if type(column) is np.ndarray:
        return column.shape[1:]
    if isinstance(column, list):
        return None
    if isinstance(column, RaggedTensor):
        return () if isinstance(spec, RaggedTensorSpec) else None
    return () if column is None else column.shape[1:]


def _shapes(column: list[Any]) -> str:
    return " and ".join(map(str, dict.fromkeys(part.shape for part in column)))


def stackable(column: Column, spec: TypeSpec) -> Column:
    """Return rows with a spec as one array if they are arrays of one shape."""
    if type(column) is np.ndarray or isinstance(spec, BatchableSpec):
        return column
    if isinstance(column, RaggedTensor):
        whole = ragged_columns.dense(column)
        return ragged_columns.elements(column) if whole is None else whole
    return stacked(column) if isinstance(column, list) else column


def folded(rows: Block, count: int, specs: Sequence[TypeSpec]) -> Block:
    """Return the rows, which have these specs, as `count` batches."""
    size = rows.length // count

    def fold(column: Column, spec: TypeSpec) -> Column:
        if isinstance(spec, BatchableSpec):
            if isinstance(spec, RaggedTensorSpec) and not isinstance(column, list):
                rows_of_spec = spec.column(column)
                if rows_of_spec is not None:
                    return ragged_columns.in_batches(rows_of_spec, count)
            values = items(column)
            return [spec.stacked(values[at : at + size]) for at in range(0, rows.length, size)]
        if isinstance(column, RaggedTensor):  # its rows have one length
            column = ragged_columns.dense(column)
        if column is None or isinstance(column, list):
            return None
        if count == 1:
            return column[np.newaxis]
        return column.reshape(count, size, *column.shape[1:])

    # There may be hundreds of columns, and a call takes as long as the work itself.
    columns = [
        column.reshape(count, size, *column.shape[1:])
        if type(column) is np.ndarray and type(spec) is TensorSpec
        else fold(column, spec)
        for column, spec in zip(rows.columns, specs, strict=True)
    ]
    return Block(tuple(columns), count)
