"""Rows of a batch that may be an array, or a ragged or sparse tensor, which stays on the host."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_functions import joined as joined_rows
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TypeSpec

CompositeRows: TypeAlias = RaggedTensor | SparseTensor
CompositeRowsSpec: TypeAlias = RaggedTensorSpec | SparseTensorSpec


def stays_on_host(part: Any) -> bool:
    """Return True if a part of a step does not go to the devices: text, and ragged and sparse tensors."""
    return isinstance(part, CompositeRows) or part.dtype == dtypes.string


def row_count(part: Any) -> int:
    """Return the number of rows of a batch."""
    if isinstance(part, RaggedTensor):
        return part.row_count
    return int(part.dense_shape[0]) if isinstance(part, SparseTensor) else len(part)


def shape_of(part: Any) -> tuple[int, ...]:
    """Return the shape of an array. Of a ragged or sparse tensor, only the number of rows matters to other workers."""
    return (row_count(part),) if isinstance(part, CompositeRows) else tuple(part.shape)


def rows_between(part: Any, start: int, stop: int) -> Any:
    """Return the rows from `start` up to `stop` or the end."""
    if isinstance(part, RaggedTensor):
        return ragged_columns.cut(part, min(start, part.row_count), stop)
    if not isinstance(part, SparseTensor):
        return part[start:stop]
    rows = np.asarray(part.indices)[:, 0]
    inside = (rows >= start) & (rows < stop)
    indices, shape = np.array(part.indices[inside]), np.array(part.dense_shape)
    indices[:, 0] -= start
    shape[0] = max(0, min(stop, int(shape[0])) - start)
    return SparseTensor(indices, part.values[inside], shape)


def joined(parts: Sequence[CompositeRows], spec: TypeSpec) -> CompositeRows:
    """Return the rows of several batches with one spec as one batch."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(spec, SparseTensorSpec):
        rows = [row for part in parts for row in spec.rows_of(part)]
        return spec.unbatched().stacked(rows)
    return joined_rows(parts)


def without_rows(spec: CompositeRowsSpec) -> CompositeRows:
    """Return a batch without rows, given the spec of a batch."""
    inner = spec.unbatched()
    assert isinstance(inner, CompositeRowsSpec)
    return inner.stacked([])
