"""Reductions of ragged tensors: sums, means, extremes and bools along their axes, as TensorFlow computes them."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import UnimplementedError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_arranging import expand_dims
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.row_partitions import from_lengths
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError

# Combines values, and the result for no values, given their dtype.
Reduction: TypeAlias = tuple[np.ufunc, Callable[[DType], Any]]


def _lowest(dtype: DType) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.finfo(dtype).min


def _highest(dtype: DType) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.finfo(dtype).max


_SUM: Reduction = np.add, lambda _: 0
_PRODUCT: Reduction = np.multiply, lambda _: 1
_LARGEST: Reduction = np.maximum, _lowest
_SMALLEST: Reduction = np.minimum, _highest
_ANY: Reduction = np.logical_or, lambda _: False
_ALL: Reduction = np.logical_and, lambda _: True


def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Add the values along axes."""
    del name
    return _reduced(_SUM, input_tensor, axis, keepdims)


def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Multiply the values along axes."""
    del name
    return _reduced(_PRODUCT, input_tensor, axis, keepdims)


def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return the largest values along axes; the lowest value of the dtype for an empty row."""
    del name
    return _reduced(_LARGEST, input_tensor, axis, keepdims)


def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return the smallest values along axes; the highest value of the dtype for an empty row."""
    del name
    return _reduced(_SMALLEST, input_tensor, axis, keepdims)


def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return True where any value along axes is."""
    del name
    return _reduced(_ANY, _bools(input_tensor), axis, keepdims)


def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return True where all values along axes are."""
    del name
    return _reduced(_ALL, _bools(input_tensor), axis, keepdims)


def _bools(rows: RaggedTensor) -> RaggedTensor:
    """Return which values are not 0, as TensorFlow converts them; it cannot convert text."""
    if rows.dtype == dtypes.string:
        raise UnimplementedError(
            "Text cannot be converted to bools.", fix="compare it first, for example x != ''."
        )
    return rows.with_flat_values(np.asarray(rows.flat_values).astype(np.bool_))


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return the means along axes; NaN for an empty row. Means of integers are floats, as in TensorFlow."""
    del name
    total = _reduced(_SUM, input_tensor, axis, keepdims)
    ones = np.ones(np.shape(input_tensor.flat_values), input_tensor.dtype)
    count = _reduced(_SUM, input_tensor.with_flat_values(ones), axis, keepdims)
    if isinstance(total, RaggedTensor):
        # As in TensorFlow, the means do not know that a kept axis has length 1.
        rows = RaggedTensor(total.values, total.splits)
        return rows.with_flat_values(_divided(total.flat_values, count.flat_values))
    return computed_tensor(_divided(total, count))


def _divided(total: Any, count: Any) -> Array:
    above, below = np.asarray(total), np.asarray(count)
    wide = above.dtype if above.dtype.kind not in "iub" else np.result_type(above, np.float16)
    wide = np.float32 if wide == np.float16 and above.dtype.kind in "iub" else wide
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.divide(above.astype(wide), below.astype(wide))


def _reduced(reduction: Reduction, rows: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    if rows.dtype.kind in ("O" if reduction in (_ANY, _ALL) else "bO"):
        raise WrongDtypeError(
            f"A sum, mean, product or extreme needs numbers, but got a RaggedTensor of {dtypes.name_of(rows.dtype)}.",
            fix="convert the values first: evenfeed.cast(x, evenfeed.int32).",
        )
    rank = len(rows.shape)
    if axis is None:
        found = _all(reduction, np.asarray(rows.flat_values))
        return found.reshape((1,) * rank) if keepdims else found
    given = np.atleast_1d(host_array(axis)).tolist()
    for one in given:
        if not -rank <= one < rank:
            raise ValueError(
                described(
                    f"axis={one} out of bounds: expected -{rank}<=axis<{rank}.",
                    fix="pass an axis of the tensor's shape.",
                )
            )
    places = sorted({one % rank for one in given}, reverse=True)
    found: Any = rows
    for place in places:
        found = _along(reduction, found, place)
    for place in reversed(places) if keepdims else ():
        found = (
            expand_dims(found, place)
            if isinstance(found, RaggedTensor)
            else computed_tensor(np.expand_dims(found, place))
        )
    return found


def _all(reduction: Reduction, values: Array) -> Any:
    combine, empty = reduction
    whole = combine.reduce(values.reshape(-1), initial=empty(values.dtype), dtype=values.dtype)
    return computed_tensor(np.asarray(whole, values.dtype))


def _along(reduction: Reduction, rows: Any, axis: int) -> Any:
    if not isinstance(rows, RaggedTensor):
        values = np.asarray(rows)
        first = empty_of(reduction, values.dtype)
        return computed_tensor(
            reduction[0].reduce(values, axis=axis, initial=first, dtype=values.dtype)
        )
    if axis > 1:
        return rows.with_values(_along(reduction, rows.values, axis - 1))
    if axis == 1:
        ids = np.asarray(rows.value_rowids())
        return _in_segments(reduction, rows.values, ids, rows.row_count)
    within = np.arange(int(rows.splits[-1])) - np.repeat(rows.splits[:-1], np.diff(rows.splits))
    widest = int(np.diff(rows.splits).max(initial=0))
    return _in_segments(reduction, rows.values, within, widest)


def empty_of(reduction: Reduction, dtype: DType) -> Any:
    """Return the result for no values."""
    return reduction[1](dtype)


def _in_segments(reduction: Reduction, values: Any, ids: Array, count: int) -> Any:
    """Combine the values with each id. Rows of values are combined place by place; the result is as long as the longest."""
    if not isinstance(values, RaggedTensor):
        array = np.asarray(values)
        shape = (count, *array.shape[1:])
        found = np.full(shape, empty_of(reduction, array.dtype), array.dtype)
        reduction[0].at(found, ids, array)
        return computed_tensor(found)
    lengths = np.diff(values.splits)
    longest = np.zeros(count, lengths.dtype)
    np.maximum.at(longest, ids, lengths)
    splits = from_lengths(longest, 0, check=False)
    within = np.arange(int(values.splits[-1])) - np.repeat(values.splits[:-1], lengths)
    places = np.repeat(splits[:-1][ids], lengths) + within
    inner = _in_segments(reduction, values.values, places, int(splits[-1]))
    return RaggedTensor(inner, splits)
