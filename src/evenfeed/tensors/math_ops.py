"""Math on tensors: thin wrappers of jax.numpy that keep TensorFlow's dtypes."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from evenfeed.core import dtypes, promised_shapes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError
from evenfeed.core.handles import Handle
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.promised_shapes import promise_result
from evenfeed.core.text.text_values import compared, unlike_shapes
from evenfeed.tensors.creation import (
    DTypeLike,
    Tensor,
    convert_to_tensor,
    convert_together,
    holds_device_arrays,
    is_on_device,
    read,
)
from evenfeed.tensors.device_arrays import (
    asked_dtype,
    held_dtype,
    private,
    remembering,
    to_device_array,
)


def square(x: object, name: str | None = None) -> "jax.Array":
    """Square every value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.square([1, -2, 3]).tolist()
        [1, 4, 9]
    """
    return _shaped_by(_in_full_width("square", x, jnp.square), x)


def cast(x: object, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Convert every value to another dtype.

    Floats are truncated to integers, integers that do not fit wrap around, and complex numbers keep their
    real part. A float outside the integer range gives the same result as TensorFlow on a CPU.

    Examples:
        >>> import evenfeed as tf
        >>> tf.cast([1.8, -2.9], tf.int32).tolist()
        [1, -2]
        >>> tf.cast([0, 2], tf.bool).tolist()
        [False, True]
    """
    return _shaped_by(_converted(x, dtype), x)


def _shaped_by(found: Any, *operands: object) -> Any:
    """Return the result of an elementwise function, with the shapes that are promised for its operands."""
    if promised_shapes.here.promised:
        promise_result(found, operands)
    return found


def _converted(x: object, dtype: DTypeLike) -> Tensor:
    asked, held = dtypes.as_dtype(dtype), asked_dtype(dtype)
    if holds_device_arrays(x):
        tensor = _cast(convert_to_tensor(x), held)
        # A copy, because `remembering` must not mark a user tensor that has 32 bits.
        return tensor if held == asked else remembering(jnp.copy(tensor), asked)
    array = to_array(x)
    if held == asked:
        return _cast_known(array.copy(), held)
    # If JAX cannot hold the requested 64 bits, the values must still fit.
    return remembering(_cast_known(private(array, "the tensor"), held), asked)


def equal(x: object, y: object, name: str | None = None) -> "jax.Array":
    """Compare elementwise with `==`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.equal([1, 2], [1, 3]).tolist()
        [True, False]
        >>> tf.equal(["a", "b"], "b").tolist()
        [False, True]
    """
    return _shaped_by(_compared(x, y, equal=True), x, y)


def not_equal(x: object, y: object, name: str | None = None) -> "jax.Array":
    """Compare elementwise with `!=`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.not_equal(["a", "b"], "b").tolist()
        [True, False]
    """
    return _shaped_by(_compared(x, y, equal=False), x, y)


def reduce_sum(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> "jax.Array":
    """Sum along `axis`, or over all values. The dtype stays the same.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_sum([[1, 2], [3, 4]], axis=0).tolist()
        [4, 6]
    """

    def total(tensor: "jax.Array") -> "jax.Array":
        dtype = held_dtype(tensor.dtype)
        return jnp.sum(tensor, axis=_axes(tensor, axis), keepdims=keepdims, dtype=dtype)

    return _in_full_width("reduce_sum", input_tensor, total)


def reduce_mean(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> "jax.Array":
    """Average along `axis`, or over all values. The dtype stays the same, so a mean of integers is truncated.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_mean([[1.0, 2.0], [3.0, 5.0]], axis=1).tolist()
        [1.5, 4.0]
        >>> tf.reduce_mean([1, 2]).tolist()
        1
    """

    def mean(tensor: "jax.Array") -> "jax.Array":
        axes = _axes(tensor, axis)
        if tensor.dtype.kind in "iu":
            return _mean_of_integers(tensor, axes, keepdims)
        if _count(tensor, axes) == 0:
            return jnp.full_like(jnp.sum(tensor, axis=axes, keepdims=keepdims), np.nan)
        return jnp.mean(tensor, axis=axes, keepdims=keepdims)

    return _in_full_width("reduce_mean", input_tensor, mean)


def reduce_max(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> "jax.Array":
    """Return the largest value along `axis`, or of all values; without values, the lowest of the dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_max([[1, 5], [3, 4]], axis=1).tolist()
        [5, 4]
    """
    largest = partial(_extreme, jnp.max, axis=axis, keepdims=keepdims, lowest=True)
    return _in_full_width("reduce_max", input_tensor, largest, refused="bOc")


def reduce_min(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> "jax.Array":
    """Return the smallest value along `axis`, or of all values; without values, the highest of the dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_min([[1, 5], [3, 4]], axis=1).tolist()
        [1, 3]
    """
    smallest = partial(_extreme, jnp.min, axis=axis, keepdims=keepdims, lowest=False)
    return _in_full_width("reduce_min", input_tensor, smallest, refused="bOc")


def _compared(x: object, y: object, *, equal: bool) -> Any:
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Handle) and one.is_text:
            return one.compared(other, equal=equal)
    left, right = convert_together([x, y])
    try:
        np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        raise unlike_shapes(left.shape, right.shape) from None
    if left.dtype == dtypes.string:
        return jnp.asarray(compared(np.asarray(left), right, equal=equal))
    return jnp.equal(left, right) if equal else jnp.not_equal(left, right)


def _in_full_width(
    function: str,
    value: object,
    compute: "Callable[[jax.Array], jax.Array]",
    *,
    refused: str = "bO",
) -> "jax.Array":
    """Compute with 64 bits on 64-bit host values, even if JAX runs with 32.

    Otherwise a sum of int64 values that each fit into 32 bits would wrap around silently. The result must fit
    into 32 bits, like every value that becomes a tensor. A tensor has already lost its 64 bits.
    """
    if holds_device_arrays(value):
        return compute(_numeric(value, function, refused))
    array = to_array(value)
    if array.size == 0 or held_dtype(array.dtype) == array.dtype:
        return compute(_numeric(array, function, refused))
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        result = np.asarray(compute(_numeric(array, function, refused)))
    return to_device_array(result, f"the result of {function}")


def _numeric(value: object, function: str, refused: str) -> "jax.Array":
    tensor = convert_to_tensor(value)
    if not isinstance(tensor, jax.Array) or tensor.dtype.kind in refused:
        raise InvalidArgumentError(
            f"{function} needs numbers, but got {dtypes.name_of(tensor.dtype)}.",
            fix="convert the values first, for example evenfeed.cast(x, evenfeed.int32).",
        )
    return tensor


def _axes(tensor: "jax.Array", axis: object) -> tuple[int, ...] | None:
    """Return the axes to reduce along, each once; None for all."""
    if axis is None:
        return None
    given = to_array(np.asarray(read(axis)) if is_on_device(axis) else axis)
    if given.size and given.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"axis must be an integer or a list of integers, but got {shortened(axis)}.",
            fix="pass an int, a list of ints, or None for all axes.",
        )
    axes = [_axis_in(int(one), tensor.ndim) for one in given.flat]
    if len(set(axes)) < len(axes):
        raise InvalidArgumentError(
            f"axis contains an axis twice: {shortened(axis)}.", fix="pass each axis once."
        )
    return tuple(axes)


def _axis_in(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"axis {axis} does not exist in a tensor of rank {rank}.",
            fix=f"pass an axis from {-rank} to {rank - 1}." if rank else "omit axis.",
        )
    return axis % rank


def _count(tensor: "jax.Array", axes: tuple[int, ...] | None) -> int:
    """Return the number of values that are reduced to one result."""
    return tensor.size if axes is None else math.prod(tensor.shape[axis] for axis in axes)


def _mean_of_integers(
    tensor: "jax.Array", axes: tuple[int, ...] | None, keepdims: bool
) -> "jax.Array":
    # The sum needs 64 bits, as in TensorFlow: the mean of two values 2³¹ - 1 is 2³¹ - 1.
    wide = dtypes.int64 if tensor.dtype.kind == "i" else dtypes.uint64
    with jax.enable_x64(True):
        total = jnp.sum(tensor.astype(wide), axis=axes, keepdims=keepdims)
        count = jnp.full_like(total, max(_count(tensor, axes), 1))
        return jax.lax.div(total, count).astype(tensor.dtype)


def _extreme(
    reduce: Callable[..., Any], tensor: "jax.Array", *, axis: object, keepdims: bool, lowest: bool
) -> "jax.Array":
    axes = _axes(tensor, axis)
    empty = _count(tensor, axes) == 0  # JAX raises for empty input
    initial = _extreme_of(tensor.dtype, lowest=lowest) if empty else None
    return reduce(tensor, axis=axes, keepdims=keepdims, initial=initial)


def _extreme_of(dtype: DType, *, lowest: bool) -> Array:
    if dtype.kind in "iu":
        limits = jnp.iinfo(dtype)
        return np.asarray(limits.min if lowest else limits.max, dtype)
    return np.asarray(-np.inf if lowest else np.inf, dtype)


def _cast_known(array: Array, held: DType) -> Tensor:
    if dtypes.string in (array.dtype, held):
        return _cast(array, held)
    # Casting through 64 bits makes a timestamp the right float even if JAX runs with 32.
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return _cast(jnp.asarray(array), held)


def _cast(tensor: Tensor, held: DType) -> Tensor:
    if (tensor.dtype == dtypes.string) != (held == dtypes.string):
        raise UnimplementedError(
            f"{dtypes.name_of(tensor.dtype)} cannot be cast to {dtypes.name_of(held)}.",
            fix="parse text with a Python function in a map.",
        )
    return tensor if tensor.dtype == held else _cast_numbers(jnp.asarray(tensor), held)


def _cast_numbers(tensor: "jax.Array", held: DType) -> "jax.Array":
    if tensor.dtype.kind == "c" and held.kind != "c":
        tensor = jnp.real(tensor)
    if held.kind in "iu" and tensor.dtype.kind not in "iub":
        return _truncated(tensor, held)
    return tensor.astype(held)


def _truncated(tensor: "jax.Array", held: DType) -> "jax.Array":
    """Cast floats to integers like x86: through a signed integer, whose lowest value stands for overflow."""
    signed = dtypes.int64 if held.itemsize == 8 else dtypes.int32
    wide = tensor if tensor.dtype.itemsize >= 4 else tensor.astype(dtypes.float32)
    low = -(2.0 ** (8 * signed.itemsize - 1))
    whole = jnp.where((wide >= low) & (wide < -low), wide, low).astype(signed).astype(held)
    if held.kind == "u" and held.itemsize == signed.itemsize:
        return jnp.where((wide >= 0) & (wide < -2 * low), wide.astype(held), whole)
    return whole
