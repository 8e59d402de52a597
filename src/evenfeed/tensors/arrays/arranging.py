"""Functions that move, repeat and count values: `expand_dims`, `tile`, `transpose`, `size` and so on."""

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients import followed_values
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged import ragged_arranging
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.traced.index_checks import checked_index
from evenfeed.tensors.axes import axes_of, axis_of
from evenfeed.tensors.creation import (
    DTypeLike,
    Tensor,
    convert_to_tensor,
    static_shape,
    whole_numbers,
)
from evenfeed.tensors.device_arrays import (
    computed,
    held_dtype,
    is_traced,
    is_tracing,
    same_memory,
)
from evenfeed.tensors.operands import COMPUTABLE, apply, elementwise, rearrange, shaped_by
from evenfeed.tensors.ragged_dispatch import for_flat_values, for_ragged
from evenfeed.tensors.shaping import shape


@for_ragged(ragged_arranging.expand_dims)
def expand_dims(input: object, axis: object, name: str | None = None) -> Tensor:
    """Add an axis of length 1.

    Examples:
        >>> import evenfeed as tf
        >>> tf.expand_dims([1, 2], 0).tolist()
        [[1, 2]]
    """

    def formula(xp: Any, tensor: Any) -> Any:
        return xp.expand_dims(tensor, axis_of(tensor.ndim + 1, axis))

    return rearrange("expand_dims", formula, input)


@for_ragged(ragged_arranging.squeeze)
def squeeze(input: object, axis: object = None, name: str | None = None) -> Tensor:
    """Remove axes of length 1: all of them, or those in `axis`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.squeeze([[[1], [2]]]).tolist()
        [1, 2]
    """

    def formula(xp: Any, tensor: Any) -> Any:
        named = axis is not None and np.size(axis) > 0  # pyright: ignore
        axes = axes_of(tensor, axis) if named else _axes_of_length_1(tensor)
        return xp.squeeze(tensor, axes)

    return rearrange("squeeze", formula, input)


@for_ragged(ragged_arranging.tile)
def tile(input: object, multiples: object, name: str | None = None) -> Tensor:
    """Repeat a tensor along each axis, as often as `multiples` says.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tile([[1, 2]], [2, 1]).tolist()
        [[1, 2], [1, 2]]
    """

    def formula(xp: Any, tensor: Any) -> Any:
        counts = static_shape(multiples)
        if len(counts) != tensor.ndim:
            raise InvalidArgumentError(
                f"multiples must have one number for each of the {tensor.ndim} axes, but got {shortened(multiples)}.",
                fix="pass 1 for each axis that is not repeated.",
            )
        return xp.tile(tensor, counts)

    return rearrange("tile", formula, input)


def repeat(input: object, repeats: object, axis: object = None, name: str | None = None) -> Tensor:
    """Repeat each value along `axis`. Without an axis, the tensor is flattened.

    Examples:
        >>> import evenfeed as tf
        >>> tf.repeat([1, 2], 2).tolist()
        [1, 1, 2, 2]
        >>> tf.repeat([[1, 2]], [2, 1], axis=1).tolist()
        [[1, 1, 2]]
    """

    def formula(xp: Any, tensor: Any) -> Any:
        flat = tensor.reshape(-1) if axis is None else tensor
        along = axis_of(flat.ndim, 0 if axis is None else axis)
        counts = whole_numbers(repeats)
        assert counts is not None
        return xp.repeat(flat, counts, axis=along)

    return rearrange("repeat", formula, input)


def roll(input: object, shift: object, axis: object, name: str | None = None) -> Tensor:
    """Move the values along `axis`; those that leave at one end come back at the other.

    Examples:
        >>> import evenfeed as tf
        >>> tf.roll([1, 2, 3], 1, axis=0).tolist()
        [3, 1, 2]
    """

    def formula(xp: Any, tensor: Any) -> Any:
        moves, along = whole_numbers(shift), np.asarray(axis)
        assert moves is not None
        if moves.shape != along.shape or moves.ndim > 1:
            raise InvalidArgumentError(
                f"shift and axis must have one shape, but got {shortened(shift)} and {shortened(axis)}.",
                fix="pass two ints, or two lists with one shift for each axis.",
            )
        axes = [axis_of(tensor.ndim, one) for one in along.reshape(-1)]
        return xp.roll(tensor, moves.reshape(-1).tolist(), axes)

    return rearrange("roll", formula, input)


@for_ragged(ragged_arranging.reverse)
def reverse(tensor: object, axis: object, name: str | None = None) -> Tensor:
    """Reverse the order along each of the axes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reverse([1, 2, 3], [0]).tolist()
        [3, 2, 1]
    """

    def formula(xp: Any, values: Any) -> Any:
        return xp.flip(values, axes_of(values, axis))

    return rearrange("reverse", formula, tensor)


def transpose(
    a: object, perm: object = None, conjugate: object = False, name: str | None = None
) -> Tensor:
    """Reorder the axes: reverse them, or as `perm` says.

    Examples:
        >>> import evenfeed as tf
        >>> tf.transpose([[1, 2], [3, 4]]).tolist()
        [[1, 3], [2, 4]]
    """

    def formula(xp: Any, tensor: Any) -> Any:
        order = None if perm is None else axes_of(tensor, perm)
        if order is not None and len(order) != tensor.ndim:
            raise InvalidArgumentError(
                f"perm must name each of the {tensor.ndim} axes once, but got {shortened(perm)}.",
                fix="pass a permutation of the axes.",
            )
        found = xp.transpose(tensor, order)
        return xp.conj(found) if conjugate else found

    return rearrange("transpose", formula, a)


@for_flat_values
def identity(input: object, name: str | None = None) -> Tensor:
    """Return the values as a tensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.identity([1, 2]).tolist()
        [1, 2]
    """
    if isinstance(input, SparseTensor):
        return cast("Any", input)
    return shaped_by(rearrange("identity", _itself, input), input)


def identity_n(input: object, name: str | None = None) -> list[Tensor]:
    """Return a list of values as tensors.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.identity_n([1, 2.5])]
        [1, 2.5]
    """
    return [identity(one) for one in cast("Iterable[object]", input)]


def stop_gradient(input: object, name: str | None = None) -> Tensor:
    """Return the values as constants for gradients.

    Examples:
        >>> import evenfeed as tf
        >>> tf.stop_gradient([1.0, 2.0]).tolist()
        [1.0, 2.0]
    """
    return elementwise("stop_gradient", jax.lax.stop_gradient, input, accepts=COMPUTABLE)


def broadcast_to(input: object, shape: object, name: str | None = None) -> Tensor:
    """Repeat the values to fill a shape, as arithmetic does.

    Examples:
        >>> import evenfeed as tf
        >>> tf.broadcast_to([1, 2], [2, 2]).tolist()
        [[1, 2], [1, 2]]
    """

    def formula(xp: Any, tensor: Any) -> Any:
        return xp.broadcast_to(tensor, static_shape(shape))

    return rearrange("broadcast_to", formula, input)


def size(input: object, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Return the number of values. In a trace it is a NumPy number, so that it can be a length.

    Examples:
        >>> import evenfeed as tf
        >>> tf.size([[1, 2], [3, 4]]).tolist()
        4
    """
    if isinstance(input, SparseTensor):
        return _as_known(
            math.prod(np.asarray(input.dense_shape).tolist()), out_type or dtypes.int32
        )
    return _as_known(_measured(input).size, out_type or dtypes.int32)


def rank(input: object, name: str | None = None) -> Tensor:
    """Return the number of axes. In a trace it is a NumPy number.

    Examples:
        >>> import evenfeed as tf
        >>> tf.rank([[1, 2], [3, 4]]).tolist()
        2
    """
    is_composite = isinstance(input, RaggedTensor | SparseTensor)
    count = len(input.shape) if is_composite else _measured(input).ndim
    return _as_known(count, dtypes.int32)


def _measured(input: object) -> Any:
    """Return a tensor with the shape of the input. An array is not copied to a device to be measured."""
    if isinstance(input, RaggedTensor):
        return input.flat_values
    is_array = isinstance(input, np.ndarray)
    return cast("Any", input) if is_array else convert_to_tensor(input)


def shape_n(
    input: object, out_type: DTypeLike = dtypes.int32, name: str | None = None
) -> list[Tensor]:
    """Return the shape of each tensor in a list.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.shape_n([[1, 2], 3])]
        [[2], []]
    """
    return [shape(one, out_type) for one in cast("Iterable[object]", input)]


def reverse_sequence(
    input: object,
    seq_lengths: object,
    seq_axis: object = None,
    batch_axis: object = None,
    name: str | None = None,
) -> Tensor:
    """Reverse the first `seq_lengths[i]` values of each row `i`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1).tolist()
        [[2, 1, 3], [6, 5, 4]]
    """

    def formula(tensor: Any, lengths: Any) -> Any:
        rows = axis_of(tensor.ndim, 0 if batch_axis is None else batch_axis)
        along = axis_of(tensor.ndim, 0 if seq_axis is None else seq_axis)
        _check_lengths(lengths, tensor.shape[rows], tensor.shape[along])
        turned = jnp.moveaxis(tensor, (rows, along), (0, 1))
        places = jnp.arange(turned.shape[1])
        mirrored = checked_index(lengths, turned.shape[1] + 1)[:, None] - 1 - places
        places = jnp.where(mirrored >= 0, mirrored, places)
        places = places.reshape(*places.shape, *(1,) * (turned.ndim - 2))
        return jnp.moveaxis(jnp.take_along_axis(turned, places, axis=1), (0, 1), (rows, along))

    lengths = convert_to_tensor(seq_lengths)
    return apply("reverse_sequence", formula, input, lengths, accepts=COMPUTABLE)


def meshgrid(*args: object, **kwargs: Any) -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each axis. `indexing` is "xy" or "ij".

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.meshgrid([1, 2], [3, 4])]
        [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    order = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs or order not in ("xy", "ij"):
        raise ValueError(
            described(
                f"meshgrid got {kwargs or order!r}.", fix='pass indexing="xy" or indexing="ij".'
            )
        )
    return list(
        apply(
            "meshgrid",
            lambda *axes: jnp.meshgrid(*(axis.reshape(-1) for axis in axes), indexing=order),
            *args,
            accepts=COMPUTABLE,
        )
    )


def broadcast_static_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> TensorShape:
    """Return the shape of arithmetic on tensors of two shapes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3]))
        TensorShape([2, 3])
    """
    shapes: list[Any] = [tuple(TensorShape(one)) for one in (shape_x, shape_y)]
    return TensorShape(np.broadcast_shapes(*shapes))


def broadcast_dynamic_shape(shape_x: object, shape_y: object) -> Tensor:
    """Return the shape of arithmetic on tensors of two shapes, as a vector.

    Examples:
        >>> import evenfeed as tf
        >>> tf.broadcast_dynamic_shape([2, 1], [3]).tolist()
        [2, 3]
    """
    lengths = np.broadcast_shapes(static_shape(shape_x), static_shape(shape_y))
    return _as_known(list(lengths), dtypes.int32)


def _check_lengths(lengths: Any, rows: int, most: int) -> None:
    """Raise unless there is a length for each row, and each that is known fits."""
    if tuple(lengths.shape) != (rows,):
        raise InvalidArgumentError(
            f"seq_lengths must have the shape ({rows},), but got {tuple(lengths.shape)}.",
            fix="pass one length for each entry along batch_axis.",
        )
    if is_traced(lengths) or not rows:
        return
    known = np.asarray(lengths)
    if not 0 <= known.min() <= known.max() <= most:
        raise InvalidArgumentError(
            f"seq_lengths must be from 0 to {most}, but got {shortened(known)}.",
            fix="pass lengths up to that of seq_axis.",
        )


def _itself(xp: Any, tensor: Any) -> Any:
    # An object of its own: a tape that watches it does not watch the argument.
    if xp is np:
        return tensor
    return (
        jnp.copy(tensor) if is_traced(tensor) or followed_values.here.tapes else same_memory(tensor)
    )


def _axes_of_length_1(tensor: Any) -> tuple[int, ...]:
    return tuple(axis for axis, length in enumerate(tensor.shape) if length == 1)


def _as_known(value: Any, out_type: DTypeLike) -> Tensor:
    """Return a fact about a shape. In a trace it is on the host, so that it can be a length of other tensors."""
    array = np.asarray(value, dtypes.as_dtype(out_type))
    if is_tracing():
        return computed_tensor(array.astype(held_dtype(array.dtype)))
    return computed(array, "the tensor")
