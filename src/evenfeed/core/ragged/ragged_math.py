"""Functions of ragged tensors that TensorFlow computes by other functions: cumulative sums, variances, counts, products."""

# The arguments are those of TensorFlow's functions.

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_reductions import reduce_max, reduce_mean, reduce_sum
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.row_partitions import known_axis


def cumsum(
    x: RaggedTensor,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> RaggedTensor:
    """Return the sums of all values up to each place along an axis. Rows are filled with zeros to add them."""
    del name
    along = known_axis(axis, len(x.shape))
    dense = np.asarray(x.to_tensor())
    dense = np.flip(dense, along) if reverse else dense
    sums = np.cumsum(dense, along, dtype=dense.dtype)
    sums = sums - dense if exclusive else sums
    held = np.asarray(x.flat_values)
    kept = np.asarray(x.with_flat_values(np.ones(held.shape, np.bool_)).to_tensor())
    return x.with_flat_values((np.flip(sums, along) if reverse else sums)[kept].reshape(held.shape))


def reduce_variance(
    input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return the mean of the squares minus the square of the mean, as TensorFlow does."""
    del name
    squares = reduce_mean(input_tensor * input_tensor, axis, keepdims)
    mean = reduce_mean(input_tensor, axis, keepdims)
    return squares - mean * mean


def reduce_std(
    input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return the square root of the variance."""
    return _of_values(np.sqrt, reduce_variance(input_tensor, axis, keepdims, name))


def reduce_logsumexp(
    input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """Return the logarithm of the sum of exponentials, relative to the largest value of each row."""
    del name
    highest = reduce_max(input_tensor, axis, keepdims=True)
    highest = _of_values(lambda values: np.where(np.isfinite(values), values, 0), highest)
    powers = _of_values(np.exp, input_tensor - highest)
    with np.errstate(divide="ignore"):
        found = _of_values(np.log, reduce_sum(powers, axis, keepdims))
    shift = highest if keepdims or axis is None else reduce_max(highest, axis)
    return found + (shift if keepdims or axis is not None else np.reshape(shift, ()))


def bincount(
    arr: RaggedTensor,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    axis: Any = None,
    binary_output: bool = False,
    name: str | None = None,
) -> Any:
    """Count how often each integer from 0 on appears: in all rows, or with axis=-1 in each row."""
    del name
    values = np.asarray(arr.flat_values)
    by_row = counts_by_row(axis)
    if values.dtype.kind not in "iu" or values.min(initial=0) < 0:
        raise InvalidArgumentError(
            "bincount needs integers from 0 on.", fix="leave out negative ones."
        )
    length = max(int(values.max(initial=-1)) + 1, 0 if minlength is None else int(minlength))
    length = length if maxlength is None else min(length, int(maxlength))
    rows, ids = (arr.row_count, np.asarray(arr.value_rowids())) if by_row else (1, 0 * values)
    kept = values < length
    places = (ids * length + values)[kept]
    heavy = None if weights is None else np.asarray(_values_of(weights))
    each = np.ones(len(values), dtypes.as_dtype(dtype)) if heavy is None else heavy
    counts = np.zeros(rows * length, each.dtype)
    np.add.at(counts, places, each[kept])
    counts = (counts > 0).astype(counts.dtype) if binary_output else counts
    return computed_tensor(counts.reshape(rows, length) if by_row else counts)


def counts_by_row(axis: Any) -> bool:
    """Return whether `bincount` counts in each row."""
    if axis not in (None, 0, -1):
        raise ValueError(
            described(f"axis must be None, 0 or -1, but got {axis}.", fix="pass -1 to count rows.")
        )
    return axis == -1


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Any:
    """Multiply the matrices of two batches, whose lengths may differ from pair to pair."""
    del a_is_sparse, b_is_sparse, grad_a, grad_b, name
    a, b = (one if isinstance(one, RaggedTensor) else host_array(one) for one in (a, b))
    if transpose_a or transpose_b or adjoint_a or adjoint_b or output_type is not None:
        raise UnimplementedError(
            "matmul of ragged tensors multiplies matrices as they are.",
            fix="call evenfeed.transpose on each matrix, or x.to_tensor() first.",
        )
    if len(a.shape) != len(b.shape):
        raise ValueError(
            described(
                f"matmul needs tensors of one rank, but got shapes {a.shape} and {b.shape}.",
                fix="call expand_dims on the tensor of lower rank.",
            )
        )
    if len(a.shape) == 2:
        return computed_tensor(_product(_matrix(a), _matrix(b)))
    if len(a.shape) > 3:
        outer, inner = (
            one if isinstance(one, RaggedTensor) else RaggedTensor.from_tensor(one)
            for one in (a, b)
        )
        if not np.array_equal(outer.row_splits, inner.row_splits):
            raise InvalidArgumentError(
                "matmul needs batches with rows of the same lengths.",
                fix="pass as many matrices on both sides.",
            )
        return outer.with_values(matmul(outer.values, inner.values))
    left, right = [_matrix(one) for one in a], [_matrix(one) for one in b]
    if len(left) != len(right):
        raise InvalidArgumentError(
            f"matmul needs batches of one length, but got {len(left)} and {len(right)} matrices.",
            fix="pass as many matrices on both sides.",
        )
    found = [_product(one, two) for one, two in zip(left, right, strict=True)]
    values, lengths = _values_of(b), np.array([len(one) for one in found], np.int64)
    if isinstance(b, RaggedTensor) and b.ragged_rank > 1:
        widths = np.array([one.shape[1] for one in found], np.int64)
        flat = np.concatenate([values[:0], *(one.reshape(-1) for one in found)])
        rows: Any = RaggedTensor.from_row_lengths(flat, np.repeat(widths, lengths))
    else:
        rows = np.concatenate([values[:0].reshape(0, values.shape[-1]), *found])
    if isinstance(a, RaggedTensor):
        return RaggedTensor.from_row_lengths(rows, lengths)
    return RaggedTensor.from_uniform_row_length(rows, a.shape[1], nrows=len(found))


def split(
    value: RaggedTensor,
    num_or_size_splits: Any,
    axis: Any = 0,
    num: Any = None,
    name: str | None = None,
) -> list[Any]:
    """Cut a ragged tensor into parts with equally many rows, or with so many rows each."""
    del num, name
    if known_axis(axis, len(value.shape)) != 0:
        raise ValueError(
            described(
                "A ragged tensor can be split along its first axis only: rows differ in length.",
                fix="split x.to_tensor(), or slice rows as in x[:, :2].",
            )
        )
    sizes = host_array(num_or_size_splits)
    parts = int(sizes) if not sizes.ndim else len(sizes)
    each = np.full(parts, value.row_count // max(parts, 1)) if not sizes.ndim else sizes
    if int(each.sum()) != value.row_count:
        raise InvalidArgumentError(
            f"{value.row_count} rows cannot be split into {num_or_size_splits}.",
            fix="pass sizes that add up to the number of rows.",
        )
    ends = np.append(0, np.cumsum(each)).tolist()
    return [value[start:stop] for start, stop in pairwise(ends)]


def reshape(tensor: RaggedTensor, shape: Any, name: str | None = None) -> Any:
    """Return the values of all rows in a dense shape."""
    del name
    values = np.asarray(tensor.flat_values)
    lengths = tuple(np.atleast_1d(host_array(shape)).tolist())
    try:
        return computed_tensor(values.reshape(lengths))
    except ValueError:
        raise InvalidArgumentError(
            f"{values.size} values cannot have the shape {list(lengths)}.",
            fix="pass lengths whose product is the number of values.",
        ) from None


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Any]:
    """Put each row into the part that its number names."""
    del name
    numbers = host_array(partitions)
    if isinstance(partitions, RaggedTensor) or numbers.ndim != 1 or len(numbers) != data.row_count:
        raise InvalidArgumentError(
            "partitions must have one number for each row.", fix="pass a vector of ints."
        )
    return [data.rows(np.flatnonzero(numbers == number)) for number in range(int(num_partitions))]


def _matrix(value: Any) -> Array:
    """Return a matrix whose rows may be stored as ragged ones of one length."""
    if isinstance(value, RaggedTensor) and len(np.unique(value.row_lengths())) > 1:
        raise InvalidArgumentError(
            "The matrices in a and b may not be ragged in their innermost dimension.",
            fix="call to_tensor() first to fill the rows with zeros.",
        )
    return np.asarray(value.to_tensor() if isinstance(value, RaggedTensor) else value)


def _product(left: Array, right: Array) -> Array:
    if left.shape[-1] != right.shape[0]:
        raise InvalidArgumentError(
            f"Matrices of shapes {list(left.shape)} and {list(right.shape)} cannot be multiplied.",
            fix="pass as many columns in a as rows in b.",
        )
    return np.matmul(left, right)


def _values_of(value: Any) -> Any:
    return value.flat_values if isinstance(value, RaggedTensor) else host_array(value)


def _of_values(compute: Callable[[Any], Any], value: Any) -> Any:
    """Compute on the values of a tensor, which may be ragged."""
    if isinstance(value, RaggedTensor):
        return value.with_flat_values(compute(np.asarray(value.flat_values)))
    return computed_tensor(compute(np.asarray(value)))
