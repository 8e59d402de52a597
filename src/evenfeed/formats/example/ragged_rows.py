"""Parses `tf.io.RaggedFeature`: the values of a feature, and other features that split them into rows."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.formats.example.example_protos import Where, varying_value
from evenfeed.formats.example.features import (
    Partition,
    Ragged,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    UniformRowLength,
    Varying,
)


def ragged_column(features: Sequence[Any], wanted: Ragged) -> RaggedTensor:
    """Return a ragged feature of all records, given their Features messages."""
    return _stacked(
        [_row(one.feature, Where(row), wanted) for row, one in enumerate(features)], wanted
    )


def ragged_steps(feature_lists: Sequence[Mapping[str, Any]], wanted: Ragged) -> RaggedTensor:
    """Return a ragged feature list of all records as a RaggedTensor of (record, step, value).

    Args:
        feature_lists: The feature lists of each record, by name.
        wanted: The feature. The partitions of a step are the same step of other feature lists.
    """
    names = {wanted.values.key, *_partition_names(wanted)}
    steps: list[Any] = []
    counts: list[int] = []
    for row, held in enumerate(feature_lists):
        lists = {name: held[name].feature for name in names if name in held}
        counts.append(len(lists.get(wanted.values.key, ())))
        for step in range(counts[-1]):
            features = {name: one[step] for name, one in lists.items() if step < len(one)}
            steps.append(_row(features, Where(row, step), wanted))
    lengths = np.array(counts, wanted.splits_dtype)
    return RaggedTensor.from_row_lengths(_stacked(steps, wanted), lengths)


def _partition_names(wanted: Ragged) -> list[str]:
    return [one.key for one in wanted.partitions if not isinstance(one, UniformRowLength)]


def _stacked(rows: Sequence[Any], wanted: Ragged) -> RaggedTensor:
    axes = ragged_axes(wanted)
    lengths = [one.length for one in wanted.partitions[axes:] if isinstance(one, UniformRowLength)]
    shape = [None] * (axes + 1) + lengths
    return RaggedTensorSpec(shape, wanted.values.dtype, axes, wanted.splits_dtype).stacked(rows)


def ragged_axes(wanted: Ragged) -> int:
    """Return how many axes of one record are ragged. Innermost rows of one length are a dense axis."""
    return len(wanted.partitions) - len(list(takewhile(_is_uniform, reversed(wanted.partitions))))


def _is_uniform(partition: Partition) -> bool:
    return isinstance(partition, UniformRowLength)


def _row(feature: Any, where: Where, wanted: Ragged) -> Any:
    values: Any = varying_value(feature.get(wanted.values.key), where, wanted.values)
    for partition in reversed(wanted.partitions):
        values = _split(values, partition, feature, where)
    return values


def _split(values: Any, partition: Partition, feature: Any, where: Where) -> Any:
    if isinstance(partition, UniformRowLength):
        rows = RaggedTensor.from_uniform_row_length(values, partition.length)
        if isinstance(values, RaggedTensor):
            return rows
        # Innermost rows of one length are a dense axis, as in TensorFlow.
        return values.reshape(rows.row_count, partition.length, *values.shape[1:])
    of_rows = Varying(partition.key, dtypes.int64)
    numbers = varying_value(feature.get(partition.key), where, of_rows)
    match partition:
        case RowSplits():
            return RaggedTensor.from_row_splits(values, numbers)
        case RowLengths():
            return RaggedTensor.from_row_lengths(values, numbers)
        case RowStarts():
            return RaggedTensor.from_row_starts(values, numbers)
        case RowLimits():
            return RaggedTensor.from_row_limits(values, numbers)
        case _:
            return RaggedTensor.from_value_rowids(values, numbers)
