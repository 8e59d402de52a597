"""Operators for padded_batch, unbatch and rebatch."""

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, final

import numpy as np

from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.block import Block, Column, concatenated
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.ragged.building import len_of
from evenfeed.core.ragged.ragged_tensors import RaggedTensor, slice_of
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.core.text.text_columns import Texts
from evenfeed.plan.batching import PaddedBatch, Rebatch, Unbatch
from evenfeed.runtime.functions.probing import zeros
from evenfeed.runtime.operator import Operator, PushbackReader, State, read_full
from evenfeed.runtime.operators.grouping import folded, stackable
from evenfeed.runtime.operators.padded_rows import Padding, distinct_shapes
from evenfeed.runtime.read_size import ReadWide
from evenfeed.runtime.step import Step, runs

# The version of iterator states since which padded batches are read with those after them.
_WIDE_SINCE: Final = 6
# So many batches show how their lengths vary.
_SAMPLE: Final = 16
# How many standard deviations the rows of some batches may be more than expected.
_MARGIN: Final = 3.0

_RANK: Final = attrgetter("ndim")
_DTYPE: Final = attrgetter("dtype")


@runs(PaddedBatch)
def _pad(step: Step[PaddedBatch]) -> Operator:
    return PadBatches(step.child, step.node, is_wide=step.is_of_version(_WIDE_SINCE))


@final
class PadBatches(Operator):
    """Pads elements of different shapes with a fill value and stacks them.

    If that is unobservable, it reads the elements of many batches at a time.
    """

    calls_nothing = True

    def __init__(self, child: Operator, node: PaddedBatch, *, is_wide: bool = True) -> None:
        self._child = ReadWide(child, only_if_hidden=True) if is_wide else child
        self._node = node
        self._padded = Padding(node)

    def read(self, most: int) -> Block | None:
        size = self._node.batch_size
        if most > 1 and isinstance(self._child, ReadWide) and self._child.hides_reads:
            first = self._child.read(most * size)
            if first is not None and first.length > size:
                return self._read_several(self._child, first)
        else:
            first = self._child.read(size)
        blocks = [] if first is None else [first, *read_full(self._child, size - first.length)]
        length = sum(block.length for block in blocks)
        if length == 0 or (length < size and self._node.drop_remainder):
            return None
        return self._padded(concatenated(blocks))

    def _read_several(self, child: ReadWide, rows: Block) -> Block:
        """Return the full batches of rows that were read; if one fails, those before it."""
        size, made = self._node.batch_size, list[Block]()
        count = rows.length // size
        child.give_back(rows.length - count * size)
        for number in range(count):
            try:
                made.append(self._padded(rows.cut(number * size, (number + 1) * size)))
            except Exception:
                # It is the next to be read, unless it is the first: then it has been.
                child.give_back((count - max(1, number)) * size)
                if not made:
                    raise
                break
        return concatenated(made)

    def state(self) -> State:
        return self._child.state()

    def restore(self, state: State) -> None:
        self._child.restore(state)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@runs(Unbatch)
def _split(step: Step[Unbatch]) -> Operator:
    return SplitBatches(step.child, step.node)


@final
class SplitBatches(Operator):
    """Splits elements along their first axis. Batches of numbers or text are split together.

    Its state is the position before the batches being split, and how many of their rows were returned.
    """

    calls_nothing = True

    def __init__(self, child: Operator, node: Unbatch | Rebatch) -> None:
        self._feed = PushbackReader(child)
        self._node = node
        self._specs: list[TypeSpec] = flatten(node.child.element_spec, DATA)
        self._rows: Block | None = None
        self._used = 0
        self._before: State = None
        self._lengths = BatchLengths()

    def read(self, most: int) -> Block | None:
        while self._rows is None or self._used == self._rows.length:
            self._before, self._rows, self._used = self._feed.state(), None, 0
            batches = self._feed.read(self._lengths.batches_for(most))
            if batches is None:
                return None
            self._rows = self._split(batches)
        rows = self._rows.cut(self._used, self._used + most)
        self._used += rows.length
        return rows

    def _split(self, batches: Block) -> Block:
        together = split_together(batches)
        if together is not None:
            self._lengths.learn(together[1])
            return together[0]
        # Parts of different lengths, or that are no arrays, are split one by one.
        self._feed.give_back(batches.length - 1)
        return self._split_one(batches.row(0))

    def _split_one(self, parts: Sequence[Any]) -> Block:
        lengths = {tuple(part.shape[:1]) for part in parts if part is not None}
        if len(lengths) != 1 or () in lengths:
            shapes = [None if part is None else tuple(part.shape) for part in parts]
            raise InvalidArgumentError(
                f"All parts of an element must have the same first dimension, but got the shapes {shapes}.",
                fix="give all parts of each element the same length before unbatch or rebatch.",
                origin=self._node.origin,
            )
        (length,) = lengths.pop()
        self._lengths.learn(np.array([length]))
        pairs = zip(parts, self._specs, strict=True)
        return Block(tuple(_rows_of(*pair) for pair in pairs), length)

    def state(self) -> State:
        if self._rows is None or self._used == self._rows.length:
            return [self._feed.state(), 0]
        return [self._before, self._used]

    def restore(self, state: State) -> None:
        before, used = state
        self._feed.restore(before)
        self._rows, self._used = None, 0
        for _ in read_full(self, used):
            pass

    def children(self) -> tuple[Operator, ...]:
        return (self._feed.child,)


@final
class BatchLengths:
    """How many batches to read for some rows, by the lengths of earlier batches.

    It guesses low: a batch that is read too early may be the result of a user function, or may be large.
    """

    def __init__(self) -> None:
        self._longest: int | None = None
        self._mean = 0.0
        self._deviation: float | None = None

    def learn(self, lengths: Positions) -> None:
        """Look at the batches that were read last."""
        self._longest = max(1, int(lengths.max()))
        if len(lengths) >= _SAMPLE:
            self._mean, self._deviation = float(lengths.mean()), float(lengths.std())

    def batches_for(self, rows: int) -> int:
        """Return how many batches to read for so many rows."""
        # One batch shows how long they are. If it read more, sizes would multiply with each unbatch of a plan.
        if self._longest is None:
            return 1
        if self._deviation is None or self._mean < 1:
            return max(1, rows // self._longest)
        # The most batches whose rows, with a margin for chance, are no more than asked for: a quadratic equation.
        margin = _MARGIN * self._deviation
        root = (math.sqrt(margin * margin + 4 * self._mean * rows) - margin) / (2 * self._mean)
        return max(1, min(rows, int(root * root)))


@runs(Rebatch)
def _recut(step: Step[Rebatch]) -> Operator:
    return RecutBatches(SplitBatches(step.child, step.node), step.node)


@final
class RecutBatches(Operator):
    """Regroups rows into batches of the given sizes; several at once if the rows are contiguous."""

    calls_nothing = True

    def __init__(self, rows: Operator, node: Rebatch) -> None:
        self._feed = PushbackReader(rows)
        self._node = node
        self._specs: list[TypeSpec] = flatten(node.row_spec, DATA)
        self._turn = 0

    def read(self, most: int) -> Block | None:
        sizes = self._node.batch_sizes
        size = sizes[self._turn]
        following = (self._turn + 1) % len(sizes)
        if size == 0:  # it reads nothing, so one is returned even at the end of the data
            self._turn = following
            return self._batch_of_nothing()
        rows = self._feed.read(size * most if len(sizes) == 1 else size)
        if rows is None:
            return None
        blocks = [rows, *read_full(self._feed, size - rows.length)]
        length = sum(block.length for block in blocks)
        if length < size and self._node.drop_remainder:
            return None  # even if the remaining rows have different shapes
        # A short batch is the last. Keep the turn, whose size is not 0, so that the next read finds the end.
        # A batch whose rows cannot be joined has had its turn too.
        self._turn = self._turn if length < size else following
        rows = self._joined(blocks) if rows.length < size else rows
        full = max(1, rows.length // size)
        self._feed.give_back(max(0, rows.length - full * size))
        return folded(rows.cut(0, full * size), full, self._specs)

    def _batch_of_nothing(self) -> Block:
        specs = zip(flatten(self._node.element_spec, DATA), self._specs, strict=True)
        return Block(tuple(_no_rows(*pair) for pair in specs), 1)

    def _joined(self, blocks: Sequence[Block]) -> Block:
        rows = concatenated(blocks)
        columns = tuple(stackable(*pair) for pair in zip(rows.columns, self._specs, strict=True))
        for column, spec in zip(columns, self._specs, strict=True):
            if isinstance(column, list) and not isinstance(spec, BatchableSpec):
                raise InvalidArgumentError(
                    "All rows of a batch must have the same shape, but got "
                    f"{distinct_shapes([row.shape for row in column])}.",
                    fix="give all rows the same shape, or call unbatch() and padded_batch().",
                    origin=self._node.origin,
                )
        return Block(columns, rows.length)

    def state(self) -> State:
        return [self._turn, self._feed.state()]

    def restore(self, state: State) -> None:
        self._turn, inner = state
        self._feed.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._feed.child,)


def split_together(batches: Block) -> tuple[Block, Positions] | None:
    """Return the rows of batches, and how many each has; None if their parts differ in length, or are no arrays."""
    lengths = [_lengths(column) for column in batches.columns if column is not None]
    first = lengths[0] if lengths else None
    if first is None or not all(n is not None and np.array_equal(first, n) for n in lengths):
        return None
    return _flattened(batches), first


def _lengths(column: Array | Texts | RaggedTensor | list[Any]) -> Positions | None:
    """Return the length of each batch in a column; None if they cannot be split together."""
    if isinstance(column, RaggedTensor):
        return np.diff(column.splits)
    if not isinstance(column, list):
        return None if column.ndim < 2 else np.full(column.shape[0], column.shape[1])
    # Rows of tokens are many and short, so there is no Python code for each.
    if not all(issubclass(kind, np.ndarray) for kind in set(map(type, column))):
        return None
    dtype, rank = column[0].dtype, column[0].ndim
    if not rank or not (_all_are(_RANK, rank, column) and _all_are(_DTYPE, dtype, column)):
        return None
    inner = column[0].shape[1:]
    if inner and any(part.shape[1:] != inner for part in column):
        return None
    return np.fromiter(map(len, column), np.int64, len(column))


def _all_are(attribute: Callable[[Any], Any], value: Any, parts: Sequence[Any]) -> bool:
    return list(map(attribute, parts)).count(value) == len(parts)


def _no_rows(batch_spec: TypeSpec, row_spec: TypeSpec) -> Column:
    """Return a column that holds one batch without rows."""
    if isinstance(row_spec, BatchableSpec):
        return [row_spec.stacked([])]
    batch = zeros(batch_spec, 0)
    return None if batch is None else batch[np.newaxis]


def _rows_of(batch: Any, spec: TypeSpec) -> Column:
    return spec.rows_of(batch) if isinstance(spec, BatchableSpec) else batch


def _flattened(batches: Block) -> Block:
    columns = tuple(None if column is None else _merged(column) for column in batches.columns)
    length = next(len_of(column) for column in columns if column is not None)
    return Block(columns, length)


def _merged(column: Array | Texts | RaggedTensor | list[Any]) -> Column:
    if isinstance(column, RaggedTensor):
        return slice_of(column.held, int(column.splits[0]), int(column.splits[-1]))
    if isinstance(column, list):
        return _in_one_array(column)
    return column.reshape(column.shape[0] * column.shape[1], *column.shape[2:])


def _in_one_array(parts: Sequence[Any]) -> Array:
    """Return arrays of one dtype one after another, in a quarter of the time of `np.concatenate` if they are short."""
    dtype: DType = parts[0].dtype
    if dtype.kind in "biuf" and dtype.isnative:
        try:
            joined = np.frombuffer(bytearray().join(parts), dtype)
            return joined.reshape(sum(map(len, parts)), *parts[0].shape[1:])
        except (TypeError, ValueError):  # not contiguous, or empty
            pass
    return np.asarray(np.concatenate(parts))
