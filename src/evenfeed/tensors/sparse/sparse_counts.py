"""Sparse tensors of counts and of sets: `bincount` and `to_indicator`."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.sparse.sparse_layout import checked, grouped, ordered


def to_indicator(sp_input: Any, vocab_size: object, name: str | None = None) -> Array:
    """Return a dense tensor of bools: which values each row of a sparse tensor contains.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.to_indicator(tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1]), 3).tolist()
        [[False, False, True], [True, False, False]]
    """
    tensor = checked("to_indicator", sp_input)
    size = known_integer(vocab_size, "vocab_size")
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise InvalidArgumentError(
            f"to_indicator needs int32 or int64, but got {dtypes.name_of(tensor.dtype)}.",
            fix="convert the values with evenfeed.cast.",
        )
    values = tensor.values
    if len(values) and not (values.min() >= 0 and values.max() < size):
        raise InvalidArgumentError(
            f"The values must be at least 0 and below {size}, but reach from {values.min()} to {values.max()}.",
            fix="pass a larger vocab_size.",
        )
    found = np.zeros((*tensor.dense_shape[:-1].tolist(), size), np.bool_)
    found[(*tensor.indices[:, :-1].T, values)] = True
    return host_tensor(found)


def bincount(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    values: Any,
    weights: Any = None,
    axis: int | None = 0,
    minlength: object = None,
    maxlength: object = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Count how often each integer occurs, or add up weights.

    Args:
        values: The integers: a dense, sparse or ragged tensor.
        weights: What each value counts, instead of 1.
        axis: -1 to count in each row, 0 to count all values together.
        minlength: The least length of the result.
        maxlength: The length of the result, if given: greater values are not counted.
        binary_output: Whether to return 1 instead of counts.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> counts = tf.sparse.bincount([[3, 1, 3]], axis=-1)
        >>> counts.indices.tolist(), counts.values.tolist(), counts.dense_shape.tolist()
        ([[0, 1], [0, 3]], [1, 2], [1, 4])
    """
    rows, numbers, count = _rows_of(values)
    if axis not in {0, -1, None}:
        raise ValueError(f"axis must be 0 or -1, but got {axis}.")
    if numbers.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"bincount needs integers, but got {dtypes.name_of(numbers.dtype)}.",
            fix="convert them with evenfeed.cast.",
        )
    if len(numbers) and numbers.min() < 0:
        raise InvalidArgumentError("bincount needs values of at least 0.", fix="clip them.")
    amounts = np.ones(len(numbers), numbers.dtype) if weights is None else _rows_of(weights)[1]
    if len(amounts) != len(numbers):
        raise InvalidArgumentError(
            f"There are {len(numbers)} values, but {len(amounts)} weights.",
            fix="pass one weight for each value.",
        )
    if binary_output:
        amounts = np.ones(len(numbers), amounts.dtype)
    if maxlength is not None:
        size = known_integer(maxlength, "maxlength")
    else:
        least = 0 if minlength is None else known_integer(minlength, "minlength")
        size = max(int(numbers.max(initial=-1)) + 1, least)
    inside = numbers < size
    along = rows if axis == -1 and count is not None else np.zeros_like(numbers)
    places = np.stack([along[inside], numbers[inside]], -1).astype(np.int64)
    found, groups = grouped(places)
    totals = np.zeros(len(found), amounts.dtype)
    combine = np.maximum if binary_output else np.add
    combine.at(totals, groups, amounts[inside])
    if axis == -1 and count is not None:
        return SparseTensor(found, totals, np.array([count, size]))
    return SparseTensor(found[:, 1:], totals, np.array([size]))


def _rows_of(values: Any) -> tuple[Array, Array, int | None]:
    """Return the row of each value, the values, and the number of rows; None for a vector."""
    if isinstance(values, SparseTensor):
        tensor = ordered(values)
        if len(tensor.dense_shape) == 1:
            return tensor.indices[:, 0] * 0, tensor.values, None
        return tensor.indices[:, 0], tensor.values, int(tensor.dense_shape[0])
    if isinstance(values, RaggedTensor):
        lengths = host_array(values.row_lengths())
        numbers: Array = np.arange(len(lengths))
        return (
            np.repeat(numbers, lengths),
            np.asarray(values.flat_values),
            len(lengths),
        )
    array = host_array(values)
    flat = array.reshape(-1)
    if array.ndim <= 1:
        return np.zeros(len(flat), np.int64), flat, None
    rows: int = array.shape[0]
    return np.repeat(np.arange(rows), flat.size // rows if rows else 0), flat, rows
