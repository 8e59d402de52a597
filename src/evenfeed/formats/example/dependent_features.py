"""Parses features of many examples at once whose values depend on other features: where rows end, or places.

If a record does not fit, all go through code that reads record by record: it finds the record, and raises.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.example.example_lists import Lists, at_once
from evenfeed.formats.example.example_protos import parsed
from evenfeed.formats.example.features import (
    Partition,
    Placed,
    Ragged,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    UniformRowLength,
    Varying,
)
from evenfeed.formats.example.ragged_rows import ragged_column
from evenfeed.formats.example.sparse_places import placed_column

# Row numbers may skip rows, but so many are left to the code that goes record by record.
_MOST_EMPTY_ROWS: Final = 1 << 16


def dependent_columns(records: Texts, wanted: Sequence[Ragged | Placed]) -> list[Any]:
    """Return the features of all records whose values depend on other features."""
    columns: list[Any] = [None] * len(wanted)
    if wanted and is_worth_it(len(records)):
        asked = list({one: None for feature in wanted for one in _features_needed(feature)})
        lists = at_once(records, asked)
        if lists is not None:
            by_key = {one.key: held for one, held in zip(asked, lists, strict=True)}
            columns = [
                placed_at_once(by_key, one)
                if isinstance(one, Placed)
                else ragged_at_once(by_key, one)
                for one in wanted
            ]
    if any(column is None for column in columns):
        examples = [parsed("Example", record, row).features for row, record in enumerate(records)]
        columns = [
            placed_column(examples, one)
            if isinstance(one, Placed)
            else ragged_column(examples, one)
            for one in wanted
        ]
    return columns


def _features_needed(wanted: Ragged | Placed) -> list[Varying]:
    if isinstance(wanted, Placed):
        return [wanted.values, *wanted.places]
    others = [one.key for one in wanted.partitions if not isinstance(one, UniformRowLength)]
    return [wanted.values, *(Varying(key, dtypes.int64) for key in others)]


def placed_at_once(lists: Mapping[str, Lists], wanted: Placed) -> SparseTensor | None:
    """Return a sparse feature of all records; None if one does not fit."""
    held = lists[wanted.values.key]
    axes = [lists[axis.key] for axis in wanted.places]
    if any((axis.splits != held.splits).any() for axis in axes):
        return None
    rows = np.repeat(np.arange(len(held.lengths)), held.lengths)
    indices = np.stack([rows, *(np.asarray(axis.values) for axis in axes)], axis=1)
    values = np.asarray(held.values)
    if not wanted.already_sorted:
        order = np.lexsort(indices.T[::-1])
        indices, values = indices[order], values[order]
    return SparseTensor(indices, values, np.array([len(held.lengths), *wanted.size], np.int64))


def ragged_at_once(lists: Mapping[str, Lists], wanted: Ragged) -> RaggedTensor | None:
    """Return a ragged feature of all records; None if one does not fit."""
    held = lists[wanted.values.key]
    values: Any = np.asarray(held.values)
    counts = held.lengths
    for partition in reversed(wanted.partitions):
        if isinstance(partition, UniformRowLength):
            length = partition.length
            if isinstance(values, RaggedTensor) or length < 1 or (counts % length).any():
                return None
            values = values.reshape(len(values) // length, length, *values.shape[1:])
            counts //= length
        else:
            lengths = _row_lengths(partition, lists[partition.key], counts)
            if lengths is None or (_sums(lengths) != counts).any():
                return None
            values = RaggedTensor(values, _splits_of(np.asarray(lengths.values)))
            counts = lengths.lengths
    return RaggedTensor(values, _splits_of(counts)).with_row_splits_dtype(wanted.splits_dtype)


def _row_lengths(partition: Partition, given: Lists, counts: Positions) -> Lists | None:
    """Return the lengths of all rows, given what a partition says and how many values each record has."""
    numbers, splits = np.asarray(given.values), given.splits
    # Within these limits no sum overflows.
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= _most(counts):
        return None
    match partition:
        case RowLengths():
            lengths = numbers
        case RowLimits():
            lengths = _steps(numbers, splits[:-1], 0)
        case RowStarts():
            lengths = -_steps(numbers[::-1], len(numbers) - splits[:0:-1], counts[::-1])[::-1]
        case RowSplits():
            if not given.lengths.all() or numbers[splits[:-1]].any():
                return None
            lengths = np.delete(_steps(numbers, splits[:-1], 0), splits[:-1])
            splits = splits - np.arange(len(splits))
        case _:
            if (given.lengths != counts).any() or (_steps(numbers, splits[:-1], 0) < 0).any():
                return None
            has_values = counts > 0
            rows = np.zeros(len(counts), np.int64)
            rows[has_values] = numbers[splits[1:][has_values] - 1] + 1
            splits = _splits_of(rows)
            firsts = np.repeat(splits[:-1], counts)
            lengths = np.bincount(numbers + firsts, minlength=int(splits[-1]))
    return None if (lengths < 0).any() else Lists(lengths, splits)


def _most(counts: Positions) -> int:
    return int(counts.sum()) + _MOST_EMPTY_ROWS


def _steps(numbers: Array, firsts: Positions, before: int | Array) -> Array:
    """Return the differences of neighbours; before the first number of each record is `before`."""
    steps = np.diff(numbers, prepend=0)
    is_held = firsts < np.append(firsts[1:], len(numbers))
    mine = firsts[is_held]
    steps[mine] = numbers[mine] - (before[is_held] if isinstance(before, np.ndarray) else before)
    return steps


def _sums(lists: Lists) -> Array:
    """Return the sum of the values of each record."""
    sums = _splits_of(np.asarray(lists.values))[lists.splits]
    return np.diff(sums)


def _splits_of(lengths: Array) -> Positions:
    return np.append(np.int64(0), np.cumsum(lengths))
