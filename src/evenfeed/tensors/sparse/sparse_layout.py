"""Functions that move, keep or drop the entries of sparse tensors: TensorFlow's `tf.sparse.reorder`, `concat` and so on."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.sparse.sparse_tensors import SparseTensor, empty_value
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import static_shape, whole_numbers


def checked(function: str, value: object) -> SparseTensor:
    """Return the argument of a function, which must be a sparse tensor."""
    if isinstance(value, SparseTensor):
        return value
    raise TypeError(
        described(
            f"{function} needs a SparseTensor, but got {type(value).__name__}.",
            fix="convert a dense tensor with evenfeed.sparse.from_dense(x).",
        )
    )


def ordered(tensor: SparseTensor) -> SparseTensor:
    """Return a sparse tensor with its entries in the order of their indices."""
    keys = tensor.indices.T[::-1]
    order = np.lexsort(keys) if len(keys) else np.arange(len(tensor.values))
    return SparseTensor(tensor.indices[order], tensor.values[order], tensor.dense_shape)


def shape_of(tensor: SparseTensor) -> tuple[int, ...]:
    """Return the dense shape, as plain integers."""
    return tuple(tensor.dense_shape.tolist())


def grouped(indices: Array) -> tuple[Array, Array]:
    """Return the different rows of a table of indices, in order, and which of them each row is."""
    if not indices.shape[1]:  # which np.unique refuses
        return indices[:1], np.zeros(len(indices), np.int64)
    places, groups = np.unique(indices, axis=0, return_inverse=True)
    return places, groups.reshape(-1)


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Sort the entries by their indices, row by row.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.reorder(tf.SparseTensor([[2], [0]], [5, 7], [3])).values.tolist()
        [7, 5]
    """
    return ordered(checked("reorder", sp_input))


def reshape(sp_input: Any, shape: object, name: str | None = None) -> SparseTensor:
    """Change the shape, as `evenfeed.reshape` does for dense tensors.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.reshape(tf.SparseTensor([[0, 1], [1, 0]], [5, 7], [2, 2]), [-1]).indices.tolist()
        [[1], [2]]
    """
    tensor = checked("reshape", sp_input)
    own = shape_of(tensor)
    asked = cast("Array", whole_numbers(shape)).reshape(-1).tolist()
    known = math.prod(length for length in asked if length >= 0)
    rest = math.prod(own) // known if known else 0
    lengths = [rest if length < 0 else length for length in asked]
    if asked.count(-1) > 1 or math.prod(lengths) != math.prod(own):
        raise InvalidArgumentError(
            f"A sparse tensor of shape {own} cannot have the shape {tuple(asked)}.",
            fix="pass lengths with the same product; one of them may be -1.",
        )
    flat: Any = np.zeros(len(tensor.values), np.int64)
    if own:
        flat = np.ravel_multi_index(tuple(tensor.indices.T), own)
    indices = np.zeros((len(flat), len(lengths)), np.int64)
    if lengths:
        indices[:] = np.transpose(cast("Any", np.unravel_index(flat, lengths)))
    return SparseTensor(indices, tensor.values, np.array(lengths, np.int64))


def transpose(sp_input: Any, perm: object = None, name: str | None = None) -> SparseTensor:
    """Reorder the axes; by default reverse them.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.transpose(tf.SparseTensor([[0, 1], [1, 0]], [5, 7], [2, 3])).dense_shape.tolist()
        [3, 2]
    """
    tensor = checked("transpose", sp_input)
    rank = len(tensor.dense_shape)
    axes = list(range(rank))[::-1] if perm is None else list(static_shape(perm))
    if sorted(axes) != list(range(rank)):
        raise InvalidArgumentError(
            f"perm must contain each of the {rank} axes once, but got {axes}.",
            fix="pass the axes in their new order.",
        )
    return ordered(SparseTensor(tensor.indices[:, axes], tensor.values, tensor.dense_shape[axes]))


def expand_dims(sp_input: Any, axis: object = None, name: str | None = None) -> SparseTensor:
    """Add an axis of length 1; by default at the end.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.expand_dims(tf.SparseTensor([[1]], [5], [2]), 0).dense_shape.tolist()
        [1, 2]
    """
    tensor = checked("expand_dims", sp_input)
    at = axis_of(len(tensor.dense_shape) + 1, -1 if axis is None else axis)
    return SparseTensor(
        np.insert(tensor.indices, at, 0, axis=1),
        tensor.values,
        np.insert(tensor.dense_shape, at, 1),
    )


def retain(sp_input: Any, to_retain: object) -> SparseTensor:
    """Keep the entries for which a vector of bools is True.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.retain(tf.SparseTensor([[0], [2]], [5, 7], [3]), [False, True]).values.tolist()
        [7]
    """
    tensor, kept = checked("retain", sp_input), host_array(to_retain)
    if kept.dtype != np.bool_ or kept.shape != tensor.values.shape:
        raise ValueError(
            described(
                f"to_retain must be {len(tensor.values)} bools, but got {kept.dtype.name}{list(kept.shape)}.",
                fix="pass one bool for each entry.",
            )
        )
    return SparseTensor(tensor.indices[kept], tensor.values[kept], tensor.dense_shape)


def reset_shape(sp_input: Any, new_shape: object = None) -> SparseTensor:
    """Set a larger dense shape; by default, the smallest one that holds all entries.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.reset_shape(tf.SparseTensor([[0], [2]], [5, 7], [9])).dense_shape.tolist()
        [3]
    """
    tensor = checked("reset_shape", sp_input)
    if new_shape is None:
        none = np.zeros((1, len(tensor.dense_shape)), np.int64)
        tight = np.concatenate([tensor.indices + 1, none]).max(axis=0)
        return SparseTensor(tensor.indices, tensor.values, tight)
    lengths = np.array(static_shape(new_shape), np.int64)
    if len(lengths) != len(tensor.dense_shape) or (lengths < tensor.dense_shape).any():
        kind = InvalidArgumentError if len(lengths) == len(tensor.dense_shape) else ValueError
        raise kind(
            f"new_shape must be at least {shape_of(tensor)} along each axis, but got {tuple(lengths.tolist())}."
        )
    return SparseTensor(tensor.indices, tensor.values, lengths)


def fill_empty_rows(
    sp_input: Any, default_value: object, name: str | None = None
) -> tuple[SparseTensor, Array]:
    """Add an entry at the start of each row that has none.

    Returns:
        The sparse tensor, and a vector of bools: which rows were empty.

    Examples:
        >>> import evenfeed as tf
        >>> filled, empty = tf.sparse.fill_empty_rows(tf.SparseTensor([[1, 0]], [5], [2, 2]), 0)
        >>> filled.values.tolist(), empty.tolist()
        ([0, 5], [True, False])
    """
    tensor = checked("fill_empty_rows", sp_input)
    rows = tensor.indices[:, 0]
    empty = np.bincount(rows, minlength=int(tensor.dense_shape[0])) == 0
    added = np.zeros((int(empty.sum()), len(tensor.dense_shape)), np.int64)
    added[:, 0] = np.flatnonzero(empty)
    fill = np.full(len(added), host_array(default_value, tensor.dtype)[()], tensor.dtype)
    indices = np.concatenate([tensor.indices, added])
    order = np.argsort(indices[:, 0], kind="stable")
    values = np.concatenate([tensor.values, fill])
    return SparseTensor(indices[order], values[order], tensor.dense_shape), host_tensor(empty)


def slice(  # noqa: A001 - TensorFlow's name
    sp_input: Any, start: object, size: object, name: str | None = None
) -> SparseTensor:
    """Cut out a block. It may reach over the end, and is shorter then.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.slice(tf.SparseTensor([[0], [2]], [5, 7], [3]), [1], [2]).indices.tolist()
        [[1]]
    """
    tensor = checked("slice", sp_input)
    first = np.array(static_shape(start), np.int64)
    return _block(tensor, first, first + np.array(static_shape(size), np.int64))


def _block(tensor: SparseTensor, first: Array, end: Array) -> SparseTensor:
    stop = np.maximum(np.minimum(end, tensor.dense_shape), first)
    inside = ((tensor.indices >= first) & (tensor.indices < stop)).all(axis=1)
    return SparseTensor(tensor.indices[inside] - first, tensor.values[inside], stop - first)


def split(
    sp_input: Any = None, num_split: object = None, axis: object = None, name: str | None = None
) -> list[SparseTensor]:
    """Split along an axis. If the length is not divisible, the first parts are longer by one.

    Examples:
        >>> import evenfeed as tf
        >>> parts = tf.sparse.split(tf.SparseTensor([[0], [2]], [5, 7], [3]), num_split=2, axis=0)
        >>> [part.dense_shape.tolist() for part in parts]
        [[2], [1]]
    """
    if num_split is None or axis is None:
        missing = "num_split" if num_split is None else "axis"
        raise ValueError(described(f"split needs {missing}.", fix=f"pass {missing}=."))
    tensor = checked("split", sp_input)
    along, count = (
        axis_of(len(tensor.dense_shape), axis),
        known_integer(num_split, "num_split"),
    )
    length = int(tensor.dense_shape[along])
    if not 0 < count <= length:
        raise InvalidArgumentError(
            f"num_split must be between 1 and {length}, but got {count}.",
            fix="pass at most the length of the axis.",
        )
    short, longer = divmod(length, count)
    ends = np.cumsum([short + (part < longer) for part in range(count)])
    parts: list[SparseTensor] = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        first, stop = np.zeros_like(tensor.dense_shape), tensor.dense_shape.copy()
        first[along], stop[along] = begin, end
        parts.append(_block(tensor, np.asarray(first), np.asarray(stop)))
    return parts


def concat(
    axis: object,
    sp_inputs: Sequence[Any],
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Join sparse tensors along an axis.

    Args:
        axis: The axis.
        sp_inputs: The sparse tensors.
        expand_nonconcat_dims: Whether the other lengths may differ. The result has the largest ones.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> row = tf.SparseTensor([[0, 1]], [5], [1, 2])
        >>> tf.sparse.concat(0, [row, row]).indices.tolist()
        [[0, 1], [1, 1]]
    """
    given = sp_inputs if isinstance(sp_inputs, (list, tuple)) else [sp_inputs]
    tensors = [checked("concat", each) for each in given]
    shapes = np.stack([tensor.dense_shape for tensor in tensors])
    along = axis_of(shapes.shape[1], axis)
    others = np.delete(shapes, along, axis=1)
    if not expand_nonconcat_dims and (others != others[0]).any():
        raise InvalidArgumentError(
            f"Sparse tensors of shapes {shapes.tolist()} cannot be joined along axis {along}.",
            fix="pass expand_nonconcat_dims=True, or tensors whose other lengths are equal.",
        )
    starts = np.cumsum([0, *shapes[:-1, along]])
    indices = [np.array(tensor.indices) for tensor in tensors]
    for places, start in zip(indices, starts, strict=True):
        places[:, along] += start
    lengths = shapes.max(axis=0)
    lengths[along] = shapes[:, along].sum()
    values = np.concatenate([tensor.values for tensor in tensors])
    return ordered(SparseTensor(np.concatenate(indices), values, lengths))


def from_dense(tensor: object, name: str | None = None) -> SparseTensor:
    """Keep the values that are not 0, or not empty for text.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.from_dense([[0, 5], [7, 0]]).indices.tolist()
        [[0, 1], [1, 0]]
    """
    array = host_array(tensor)
    there = array != np.array(empty_value(array.dtype), array.dtype)
    lengths = np.array(array.shape, np.int64)
    return SparseTensor(np.argwhere(there), array[there], lengths)


def eye(
    num_rows: object, num_columns: object = None, dtype: Any = np.float32, name: str | None = None
) -> SparseTensor:
    """Create a matrix with ones on its diagonal.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.eye(2, 3).indices.tolist()
        [[0, 0], [1, 1]]
    """
    rows = known_integer(num_rows, "num_rows")
    columns = rows if num_columns is None else known_integer(num_columns, "num_columns")
    places = np.arange(min(rows, columns))
    values = host_array([1] * len(places), np.dtype(dtype))
    return SparseTensor(np.stack([places, places], -1), values, np.array([rows, columns]))
