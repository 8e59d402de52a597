"""Picks values of ragged tensors: gather, gather_nd and where."""

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError, shortened
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_operators import values_for
from evenfeed.core.ragged.ragged_tensors import RaggedTensor


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: str | None = None,
) -> Any:
    """Return the rows, or with `batch_dims=1` the values of each row, at some indices."""
    del validate_indices, name
    batches, place = int(batch_dims), int(batch_dims) if axis is None else int(axis)
    if batches not in (0, 1) or place != batches:
        raise UnimplementedError(
            f"gather of ragged tensors supports axis 0, and axis 1 with batch_dims=1, but got axis={place} and "
            f"batch_dims={batches}.",
            fix="call x.to_tensor() first, or evenfeed.map_fn.",
        )
    where = indices if isinstance(indices, RaggedTensor) else host_array(indices)
    values = params if isinstance(params, RaggedTensor) else host_array(params)
    return _inside(values, where) if batches else _rows(values, where)


def gather_nd(params: Any, indices: Any, batch_dims: Any = 0, name: str | None = None) -> Any:
    """Return the values or rows at some positions; the last axis of `indices` is a position."""
    del name
    if int(batch_dims):
        raise UnimplementedError(
            "gather_nd of ragged tensors has no batch_dims.", fix="call x.to_tensor() first."
        )
    if isinstance(indices, RaggedTensor):
        return indices.with_values(gather_nd(params, indices.values))
    places = host_array(indices)
    found: Any = params
    rows = places.reshape(-1, places.shape[-1])
    at = _checked(rows[:, 0], found.row_count)
    for column in range(1, rows.shape[1]):
        if not isinstance(found, RaggedTensor):
            found = found[(at, *rows[:, column:].T)]
            return computed_tensor(np.asarray(found).reshape(*places.shape[:-1], *found.shape[1:]))
        starts, lengths = found.splits[:-1][at], np.diff(found.splits)[at]
        at = starts + _checked(rows[:, column], lengths)
        found = found.values
    if isinstance(found, RaggedTensor):
        return _shaped(found.rows(at), places.shape[:-1])
    picked = np.asarray(found)[at]
    return computed_tensor(picked.reshape(*places.shape[:-1], *picked.shape[1:]))


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Choose between values; without `x` and `y`, return the positions where the condition is True."""
    del name
    rows = next(one for one in (condition, x, y) if isinstance(one, RaggedTensor))
    if x is None and y is None:
        sparse = rows.to_sparse()
        return computed_tensor(np.asarray(sparse.indices)[np.asarray(sparse.values, np.bool_)])
    given = [_operand(rows, one) for one in (condition, x, y)]
    kinds: set[DType] = {one.dtype for one in given[1:] if is_tensor(one)}
    dtype = kinds.pop() if len(kinds) == 1 else None
    return rows.with_flat_values(np.where(given[0], *(host_array(one, dtype) for one in given[1:])))


def _operand(rows: RaggedTensor, operand: Any) -> Any:
    values: Any = values_for(rows, operand)
    return np.asarray(values) if is_tensor(values) else values


def _rows(values: Any, where: Any) -> Any:
    if isinstance(where, RaggedTensor):
        return where.with_flat_values(_rows(values, np.asarray(where.flat_values)))
    count = values.row_count if isinstance(values, RaggedTensor) else len(values)
    at = _checked(where, count)
    if not isinstance(values, RaggedTensor):
        return computed_tensor(values[at])
    if not at.ndim:
        return values.row(int(at))
    return _shaped(values.rows(at.reshape(-1)), at.shape)


def _shaped(rows: RaggedTensor, shape: tuple[int, ...]) -> RaggedTensor:
    for length in reversed(shape[1:]):
        rows = RaggedTensor.from_uniform_row_length(rows, length, nrows=None if length else 0)
    return rows


def _inside(values: Any, where: Any) -> Any:
    rows = values if isinstance(values, RaggedTensor) else RaggedTensor.from_tensor(values)
    asked = where if isinstance(where, RaggedTensor) else RaggedTensor.from_tensor(where)
    if rows.row_count != asked.row_count or isinstance(asked.values, RaggedTensor):
        raise InvalidArgumentError(
            f"With batch_dims=1, params and indices need as many rows, but have {rows.row_count} and {asked.row_count}.",
            fix="pass one row of indices for each row of params.",
        )
    ids = np.asarray(asked.value_rowids())
    at = rows.splits[:-1][ids] + _checked(np.asarray(asked.values), np.diff(rows.splits)[ids])
    inner = rows.values
    found = inner.rows(at) if isinstance(inner, RaggedTensor) else np.asarray(inner)[at]
    return asked.with_values(found)


def _checked(places: Array, counts: Any) -> Array:
    """Return positions, which must be inside of rows of some length."""
    if dtypes.as_dtype(places.dtype).kind not in "iu":
        raise TypeError(f"Indices must be integers, but got {shortened(places)}.")
    wrong = (places < 0) | (places >= counts)
    if np.any(wrong):
        first = np.asarray(places)[np.asarray(wrong)].flat[0]
        raise InvalidArgumentError(
            f"Index {first} is out of range: a row has fewer values.",
            fix="pass indices from 0 to the length of the row minus 1.",
        )
    return places
