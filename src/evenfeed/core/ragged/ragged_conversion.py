"""Converts ragged tensors to dense, sparse and NumPy values."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor, slice_of
from evenfeed.core.ragged.row_partitions import copy_rows, inside, is_copied, whole_vector
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError
from evenfeed.core.shapes import TensorShape
from evenfeed.core.sparse.sparse_tensors import SparseTensor, empty_value
from evenfeed.core.text.text_columns import Texts


def dense(rows: RaggedTensor, default: Any, shape: TensorShape) -> Any:
    """Return a dense tensor, with short rows filled and long ones cut."""
    dtype = rows.dtype
    empty = empty_value(dtype) if default is None else host_array(default, dtype)
    return computed_tensor(_filled(rows, empty, shape, dtype))


def dense_texts(rows: RaggedTensor, default: Any, shape: TensorShape) -> Texts:
    """Return the same for text in a buffer, which stays there."""
    texts = rows.flat_held
    empty = b"" if default is None else host_array(default, dtypes.string).item()
    data = np.concatenate([texts.data, np.frombuffer(empty, np.uint8)]) if empty else texts.data
    first, positions = len(texts.data), dtypes.int64
    starts = _filled(rows.with_flat_values(texts.starts), np.int64(first), shape, positions)
    ends = np.int64(first + len(empty))
    return Texts(data, starts, _filled(rows.with_flat_values(texts.stops), ends, shape, positions))


def _filled(rows: RaggedTensor, empty: Any, shape: TensorShape, dtype: DType) -> Array:
    bounds = rows.bounding_shape().tolist()
    wanted = [None] * len(bounds) if shape.rank is None else list(shape)
    pairs = zip(bounds, wanted, strict=True)
    array = np.full([most if asked is None else asked for most, asked in pairs], empty, dtype)
    _fill(array, rows)
    return array


def sparse(rows: RaggedTensor) -> SparseTensor:
    """Return a sparse tensor with the values of all rows."""
    indices = np.arange(int(rows.nrows()))[:, None]
    level: Any = rows
    while isinstance(level, RaggedTensor):
        splits = splits_of(level)
        lengths = np.diff(splits)
        within = np.arange(int(splits[-1])) - np.repeat(splits[:-1], lengths)
        indices = np.column_stack([np.repeat(indices, lengths, axis=0), within])
        level = level.values
    inner = np.argwhere(np.ones(level.shape[1:], np.bool_))
    outer = np.repeat(indices, len(inner), axis=0)
    indices = np.column_stack([outer, np.tile(inner, (len(indices), 1))])
    return SparseTensor(indices, np.asarray(level).reshape(-1), rows.bounding_shape())


def check_no_gaps(rows: RaggedTensor, numbers: Array, columns: Array) -> None:
    """Raise unless the values of a sparse matrix fill their rows from the left."""
    if not np.array_equal(columns, np.arange(len(numbers)) - splits_of(rows)[numbers]):
        raise InvalidArgumentError(
            "The SparseTensor is not right-ragged: a row has a gap before one of its values.",
            fix="call evenfeed.sparse.to_dense, then RaggedTensor.from_tensor.",
        )


def numpy_rows(rows: RaggedTensor) -> Array:
    """Return an array of rows: dense if all rows have one shape, otherwise an array of arrays."""
    each = [row.numpy() if isinstance(row, RaggedTensor) else np.asarray(row) for row in rows]
    if not each:
        return np.zeros((0, 0), rows.dtype)
    if len({row.shape for row in each}) == 1:
        return np.stack(each)
    found = np.empty(len(each), object)
    found[:] = each
    return found


def text_of(rows: RaggedTensor) -> str:
    """Return the values as nested lists, with the line breaks of NumPy."""
    with np.printoptions(formatter={"all": _value_text}):  # NumPy calls it for inner arrays, too
        return _value_text(numpy_rows(rows))


def _value_text(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    array = np.asarray(cast("Array", value))
    # NumPy shows rows without values as [].
    return np.array2string(array, separator=", ") if array.size else str(array.tolist())


def check_arguments(array: Array, lengths: Any, padding: Any, ragged_rank: int) -> None:
    """Raise if the arguments of `from_tensor` do not fit."""
    if not 1 <= ragged_rank < array.ndim:
        raise ValueError(
            described(
                f"A tensor of rank {array.ndim} cannot have ragged_rank {ragged_rank}.",
                fix="pass a tensor with more axes, and a ragged_rank of at least 1.",
            )
        )
    if lengths is not None and padding is not None:
        raise ValueError(
            described("from_tensor got both lengths and padding.", fix="pass one of the two.")
        )
    if padding is not None and np.shape(padding) != array.shape[2:]:
        raise ValueError(
            described(
                f"padding must have the shape {array.shape[2:]}, but got {shortened(padding)}.",
                fix="pass one value of a row.",
            )
        )


def own_and_inner(lengths: Any) -> tuple[Any, list[Any]]:
    """Return the lengths of the outermost rows, and a list of those of the rows inside of them."""
    each = cast("Sequence[Any]", lengths) if isinstance(lengths, list | tuple) else ()
    if each and all(np.ndim(one) == 1 for one in each):
        return each[0], list(each[1:])
    return cast("Any", lengths), []


def kept_values(array: Array, lengths: Any, padding: Any) -> Array:
    """Return which values of each row to keep: the first `lengths`, or those before trailing padding."""
    if padding is None:
        counts = np.clip(_lengths(lengths, len(array)), 0, array.shape[1])
    else:
        same = array == host_array(padding, dtypes.as_dtype(array.dtype))
        kept = ~same if array.ndim == 2 else ~same.all(axis=tuple(range(2, array.ndim)))
        counts = np.max(np.multiply(_numbers(array.shape[1]), kept), axis=1, initial=0)
    return inside(array.shape[1], counts)


def _lengths(lengths: Any, rows: int) -> Array:
    given = host_array(lengths)
    if given.size and given.dtype.kind not in "iu":
        raise WrongDtypeError(
            f"lengths must be integers, but got {shortened(lengths)}.", fix="pass a list of ints."
        )
    found = whole_vector(lengths, "lengths")
    if len(found) != rows:
        raise ValueError(
            described(f"There are {rows} rows, but {len(found)} lengths.", fix="pass one for each.")
        )
    return found


def _numbers(count: int) -> Array:
    return np.arange(1, count + 1)


def splits_of(rows: RaggedTensor) -> Array:
    """Return the row splits as a plain array."""
    return np.asarray(rows.row_splits)


def _fill(dense: Array, rows: RaggedTensor) -> None:
    """Write rows into a dense array, as far as they fit."""
    splits = splits_of(rows)[: len(dense) + 1]
    counts = np.minimum(np.diff(splits), dense.shape[1])
    starts = splits[:-1]
    inner = rows.values
    if isinstance(inner, RaggedTensor):
        for row, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
            _fill(dense[row], slice_of(inner, start, start + count))
        return
    if dense.flags.c_contiguous and is_copied(inner, len(counts)):
        places = np.arange(len(counts)) * dense.shape[1]
        copy_rows(inner, starts, counts, dense.reshape(-1), places)
        return
    filled = inside(dense.shape[1], counts)
    positions = np.repeat(starts, counts) + np.nonzero(filled)[1]
    sizes = [min(a, b) for a, b in zip(dense.shape[2:], inner.shape[1:], strict=True)]
    fits = tuple(slice(0, size) for size in sizes)
    dense[: len(counts)][(filled, *fits)] = np.asarray(inner)[(positions, *fits)]
