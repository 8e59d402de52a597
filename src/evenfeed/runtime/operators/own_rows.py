"""Reads one worker's share of each global batch."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions, concatenated, in_one_piece, without_rows
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import INFINITE, TensorSpec, TypeSpec, is_of_one_shape
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.checking import IgnoreErrors
from evenfeed.plan.own_rows import OwnBatches, OwnRows, length_of
from evenfeed.runtime.measuring.stage_meters import MeasuredOperator
from evenfeed.runtime.operator import FailedRow, Operator, State, read_before_error
from evenfeed.runtime.operators.elementwise import MapRows
from evenfeed.runtime.operators.grouping import folded, of_batch
from evenfeed.runtime.positions.indexing import Indexed, Lookup, addresses, forward, indexed
from evenfeed.runtime.positions.orders import Order
from evenfeed.runtime.positions.rows import Reordered, Rows
from evenfeed.runtime.provenance import RowOrigin
from evenfeed.runtime.step import Step, runs

_FIX: Final = "give all elements the same shape, or call padded_batch."


@final
class Owned(Order):
    """The rows of one worker, from each batch of another order.

    Attributes:
        whole: How many rows all workers have together.
    """

    def __init__(self, inner: Order, node: OwnRows) -> None:
        self._inner = inner
        self._node = node
        self._batch = node.batch_size
        self.size = node.size_of(inner.size)
        self.whole = inner.size
        self._full = node.share.offsets(self._batch)
        whole = 0 if inner.size == INFINITE else inner.size // self._batch
        self._short_from = INFINITE if inner.size == INFINITE else whole * len(self._full)
        self._short = whole * self._batch + (
            node.share.offsets(0 if inner.size == INFINITE else inner.size % self._batch)
        )

    def at(self, steps: Positions) -> Positions:
        return self._inner.at(self._own(steps))

    def _own(self, steps: Positions) -> Positions:
        batches, within = np.divmod(steps, len(self._full))
        own = batches * self._batch + self._full[within]
        if self._short_from != INFINITE and len(steps) and steps.max() >= self._short_from:
            late = steps >= self._short_from
            own[late] = self._short[steps[late] - self._short_from]
        return own

    def of_epoch(self, epoch: int) -> Order:
        return Owned(self._inner.of_epoch(epoch), self._node)


@addresses(OwnRows)
def _owned(lookup: Lookup[OwnRows]) -> Indexed:
    return lookup.reordered(lambda order: Owned(order, lookup.node))


@runs(OwnRows)
def _read_own_rows(step: Step[OwnRows]) -> Operator:
    return ReadOwnRows(step.child, step.node)


@final
class ReadOwnRows(Operator):
    """Reads whole batches of elements without positions, and returns the rows of one worker.

    The state is the position before a batch, how many batches were read, how many rows of this one were returned, and
    the short last batch. All workers read the same batches, so the position before a batch suits any of them.

    Attributes:
        last: The index of the short last batch and its number of rows; None if there is none, or it was not read.
        together: How many batches to read at a time. With more than one, all rows must be this worker's.
        raised: The last error from below. All workers lose the batch it falls into.
    """

    def __init__(self, child: Operator, node: OwnRows) -> None:
        self._child = child
        self._node = node
        self._own: Block | None = None
        self._used = 0
        self._before: State = child.state()
        self._read = 0  # how many batches were read
        # The positions before batches that an operator above has not yet returned, by their indices.
        self._starts: dict[int, State] = {0: self._before}
        self.last: tuple[int, int] | None = None
        self.raised: Exception | None = None
        self.together = 1

    def read(self, most: int) -> Block | None:
        while self._own is None or self._used == self._own.length:
            if not self._next_batch():
                return None
        rows = self._own.cut(self._used, self._used + most)
        self._used += rows.length
        return rows

    def length(self, number: int) -> int:
        """Return how many rows a batch has; 0 if it does not exist or was not read yet."""
        if self.last is not None and number == self.last[0]:
            return self.last[1]
        return self._node.batch_size if number < self._read else 0

    def _next_batch(self) -> bool:
        size = self._node.batch_size * self.together
        self._before, self._used, self._own = self._child.state(), 0, None
        blocks, errors = read_before_error(self._child, size)
        for error in errors:
            self.raised = error
            self._starts[self._read] = self._child.state()
            raise error
        rows = sum(block.length for block in blocks)
        if rows == 0 or (rows < size and self._node.drop_remainder):
            return False
        if rows < size:
            self.last = self._read, rows
        self._read += self.together
        self._starts[self._read] = self._child.state()
        whole = concatenated(blocks)
        self._own = whole if self.together > 1 else whole.gather(self._node.share.offsets(rows))
        return True

    def start_of(self, number: int) -> State:
        """Return the position before a batch that was not yet returned. Drops those of the batches before it."""
        for earlier in [index for index in list(self._starts) if index < number]:
            del self._starts[earlier]
        return self._starts[number]

    def begin(self, number: int, before: State, last: tuple[int, int] | None) -> None:
        """Continue with a batch, given the position before it. The operators above call `seek` next."""
        self.restore([before, number, 0, last])

    def seek(self, count: int) -> None:
        del count  # `begin` has moved it

    def state(self) -> State:
        if self._own is None or self._used == self._own.length:
            return [self._child.state(), self._read, 0, self.last]
        return [self._before, self._read - 1, self._used, None]

    def restore(self, state: State) -> None:
        self._before, self._read, used, last = state
        self.last = None if last is None else (last[0], last[1])
        self._child.restore(self._before)
        self._starts = {self._read: self._before}
        self._own, self._used = None, 0
        if used:
            self._next_batch()
            self._used = used

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@addresses(OwnBatches)
def _own_batches(lookup: Lookup[OwnBatches]) -> Indexed:
    rows, order = lookup.indexed(lookup.node.child, lookup.epoch)
    assert isinstance(order, Owned)
    return forward(OwnBatchedRows(Reordered(rows, order), lookup.node, order.whole))


@final
class OwnBatchedRows(Rows):
    """A worker's parts of batches of rows with positions, each with the length of its batch."""

    def __init__(self, rows: Rows, node: OwnBatches, whole: int) -> None:
        self._rows = rows
        self._node = node.rows
        self._whole = whole
        self._each = self._node.share.own(self._node.batch_size)
        self._specs = flatten(node.child.element_spec, DATA)
        self._parts = flatten(node.element_spec[1], DATA)
        self._short = 0 if whole == INFINITE else whole % self._node.batch_size
        full = INFINITE if whole == INFINITE else whole // self._node.batch_size
        self._short = 0 if self._node.drop_remainder else self._short
        self._last = full  # the position of a short batch
        self.size = full if whole == INFINITE else full + (self._short > 0)

    def fetch(self, positions: Positions) -> Block:
        if self._short:
            full = np.append(positions != self._last, False).argmin()
            if full == 0 and len(positions):
                return self._short_batch()
            positions = positions[:full]
        rows = positions[:, None] * self._each + np.arange(self._each)
        return self._stacked(lambda: self._rows.fetch(rows.ravel()), len(positions))

    def run(self, start: int, count: int) -> Block:
        if self._short and start == self._last:
            return self._short_batch()
        full = min(count, self._last - start) if self._short else count
        return self._stacked(lambda: self._rows.run(start * self._each, full * self._each), full)

    def _short_batch(self) -> Block:
        count = self._node.share.own(self._short)
        if count == 0:
            empty = [_no_rows(spec) for spec in self._parts]
            return Block((np.array([self._short], np.int64), *empty), 1)
        first = self._last * self._each
        return self._stacked(lambda: self._rows.run(first, count), 1, self._short)

    def _stacked(self, fetch: Callable[[], Block], count: int, length: int | None = None) -> Block:
        try:
            rows = fetch()
        except FailedRow as failed:
            error, damaged = failed.error, min(1, failed.damaged)
        else:
            lengths = np.full(count, self._node.batch_size if length is None else length, np.int64)
            return Block((lengths, *folded(rows, count, self._specs).columns), count)
        # One of the batches fails, and keeps its place.
        raise FailedRow(0, None, error, damaged=damaged)

    def provenance(self, position: int) -> RowOrigin | None:
        return of_batch(self._rows.provenance(position * self._each))


@runs(OwnBatches)
def _stack_own_rows(step: Step[OwnBatches]) -> Operator:
    found = indexed(step.node.rows, step.run, step.epoch)
    size = found[1].whole if found is not None and isinstance(found[1], Owned) else None
    return StackOwnRows(step, size)


# Since this version, a state is a position in the batches of all workers.
_SHARED_SINCE: Final = 4


@final
class StackOwnRows(Operator):
    """Stacks the rows that a worker gets of each batch into one element, at a fixed place among the batches.

    An error of a function in between takes the place of the batch that its row belongs to. Other workers do not see the
    error, so the batches after it must keep their places.

    The state is the number of batches, the position before the next one in what all workers read, and the short last
    batch. So it is the same for all workers, and suits any number of them.
    """

    def __init__(self, step: Step[OwnBatches], size: int | None) -> None:
        node = step.node
        self._start = partial(step.build, node.child)
        self._child = self._start()
        self._rows = node.rows
        self._size = size
        self._source = _source(self._child)
        version = step.run.version
        self._is_shared = version is None or version >= _SHARED_SINCE
        self._specs = flatten(node.element_spec[1], DATA)
        self._origin = node.origin
        self._number = 0
        self._reads_several = self._is_shared and _reads_several(node, self._child)
        self._singly = 0  # how many batches to read one at a time

    def read(self, most: int) -> Block | None:
        may = most > 1 and self._reads_several and not self._singly
        self._singly = max(0, self._singly - 1)
        return (self._several(most) if may else None) or self._one()

    def _several(self, count: int) -> Block | None:
        """Return full batches, read together; None if one of them is short or fails: they are then read one by one."""
        assert self._source is not None
        before, size = self.state(), self._rows.batch_size
        self._source.together = count
        blocks, errors = read_before_error(self._child, count * size)
        self._source.together = 1
        if errors or sum(block.length for block in blocks) < count * size:
            self.restore(before)
            self._singly = count
            return None
        self._number += count
        self._source.start_of(self._number)
        columns: list[Any] = self._stacked(blocks)
        parts = [c if c is None else c.reshape(count, size, *c.shape[2:]) for c in columns]
        return Block((np.full(count, size, np.int64), *parts), count)

    def _one(self) -> Block | None:
        blocks, errors = read_before_error(self._child, self._asked())
        length = self._length(self._number)
        wanted, found = self._rows.share.own(length), sum(block.length for block in blocks)
        if found < wanted and not errors:
            more, errors = read_before_error(self._child, wanted - found)
            blocks, found = blocks + more, found + sum(block.length for block in more)
        for error in errors:
            self._leave(error, wanted - found)
        if length == 0:
            return None
        self._number += 1
        if self._source is not None:
            self._source.start_of(self._number)
        return Block((np.array([length], np.int64), *self._stacked(blocks)), 1)

    def _asked(self) -> int:
        """Return how many rows are known to belong to the next batch."""
        if self._source is None:
            return self._rows.share.own(self._length(self._number))
        return self._rows.share.own(self._rows.batch_size)

    def _length(self, number: int) -> int:
        if self._source is not None:
            return self._source.length(number)
        assert self._size is not None
        return length_of(self._rows, self._size, number)

    def _leave(self, error: Exception, left: int) -> None:
        """Raise an error in place of a batch, and skip the rest of its rows."""
        if self._source is None or error is not self._source.raised:
            left -= 1  # the row that failed
            while left > 0:
                blocks, errors = read_before_error(self._child, left)
                passed = sum(block.length for block in blocks) + len(errors)
                if not passed:
                    break
                left -= passed
            self._number += 1
        raise error

    def _stacked(self, blocks: list[Block]) -> list[Column]:
        if not blocks:
            return [_no_rows(spec) for spec in self._specs]
        return [self._column(column) for column in concatenated(blocks).columns]

    def _column(self, column: Column) -> Column:
        whole: Any = in_one_piece(column)
        if isinstance(whole, list | RaggedTensor):
            raise InvalidArgumentError(
                "All elements of a batch must have the same shape, but they differ.",
                fix=_FIX,
                origin=self._origin,
            )
        return None if whole is None else whole[None]

    def state(self) -> State:
        if not self._is_shared:
            return [self._number, self._child.state()]
        if self._source is None:
            return [self._number, None, None]
        last = self._source.last
        known = last is not None and last[0] < self._number
        return [self._number, self._source.start_of(self._number), last if known else None]

    def restore(self, state: State) -> None:
        if not self._is_shared:
            self._number, inner = state
            self._child.restore(inner)
            return
        self._number, before, last = state
        self._child.close()
        self._child = self._start()
        self._source = _source(self._child)
        if self._source is not None:
            self._source.begin(self._number, before, last)
        self._child.seek(self._rows_before(self._number))

    def _rows_before(self, number: int) -> int:
        """Return how many rows this worker gets of the first batches."""
        if number == 0:
            return 0
        share, last = self._rows.share, self._length(number - 1)
        return (number - 1) * share.own(self._rows.batch_size) + share.own(last)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


def _no_rows(spec: TypeSpec) -> Column:
    return without_rows(spec)[None] if isinstance(spec, TensorSpec) else None


def _reads_several(node: OwnBatches, operator: Operator) -> bool:
    """Return True if batches can be read together, and again one by one: all rows are the worker's, nothing counts reads."""
    while isinstance(operator, MapRows | MeasuredOperator):
        (operator,) = operator.children()
    alone = isinstance(operator, ReadOwnRows) and node.rows.share.workers == 1
    fixed = all(map(is_of_one_shape, flatten(node.child.element_spec, DATA)))
    facts = [part.facts for part in node.walk()]
    noted = any(one.keeps_passes or one.writes_files for one in facts)
    return (
        alone and fixed and not noted and not any(isinstance(n, IgnoreErrors) for n in node.walk())
    )


def _source(operator: Operator) -> ReadOwnRows | None:
    """Return the operator below that reads this worker's rows; None if they are found by position."""
    while not isinstance(operator, ReadOwnRows):
        below = operator.children()
        if not below:
            return None
        operator = below[0]
    return operator
