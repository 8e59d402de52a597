"""Computes with NumPy, instead of JAX, in a function that a dataset calls for each element.

A call of JAX takes 50 times as long for one element, and XLA compiles a program for each new shape. Only what has one
correct result is computed here, to the last bit: the way in which a map runs must not change its values. So sums of
floats, `exp` and the like stay with JAX.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, cast

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.promotion import computed_tensor
from evenfeed.tensors.device_arrays import stays_on_host

# NumPy and XLA round the floats of 32 and 64 bits alike, but not always the narrower ones.
_EXACT: Final = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64"),
    }
)

# Functions that NumPy has by the same name.
_NAMES: Final = (
    *("add", "subtract", "multiply", "negative", "sign", "square", "sqrt"),
    *("greater", "greater_equal", "less", "less_equal", "isnan", "isinf", "isfinite"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "rint", "floor", "ceil"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "invert"),
)


def stay_on_host(given: Iterable[Any]) -> bool:
    """Return True if NumPy should compute with these arrays."""
    return stays_on_host() and not any(isinstance(operand, jax.Array) for operand in given)


def exact_arrays(given: Iterable[Any]) -> list[Array] | None:
    """Return the operands as NumPy arrays; None if JAX must compute with them."""
    if not stay_on_host(given):
        return None
    arrays = [np.asarray(operand) for operand in given]
    dtypes = {array.dtype.name for array in arrays}
    return arrays if len(dtypes) == 1 and dtypes <= _EXACT else None


def twin_of(formula: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function of NumPy that computes exactly what a function of JAX does; None if there is none."""
    return _twins().get(formula)


def own_tensor(operands: Sequence[Array], found: Any) -> Any:
    """Return a tensor of its own, also for a view of an operand: whoever changes one must not change the other."""
    if isinstance(found, tuple):
        return tuple(own_tensor(operands, part) for part in cast("tuple[Any, ...]", found))
    is_view = any(np.may_share_memory(found, operand) for operand in operands)
    return computed_tensor(found.copy() if is_view else found)


@cache
def _twins() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return the functions of NumPy by those of JAX."""
    return {getattr(jnp, name): getattr(np, name) for name in _NAMES}


def exact_quotient(x: Array, y: Array) -> Any:
    """Divide floats."""
    return np.true_divide(x, y) if x.dtype.kind == "f" else NotImplemented


def exact_quotient_or_zero(x: Array, y: Array) -> Any:
    """Divide floats; the result is 0 where the divisor is 0."""
    if x.dtype.kind != "f":
        return NotImplemented
    return np.where(y == 0, x.dtype.type(0), np.true_divide(x, y))


def exact_floor_quotient(x: Array, y: Array) -> Any:
    """Divide integers, and round down."""
    return np.floor_divide(x, y) if _may_divide(x, y) else NotImplemented


def exact_floor_remainder(x: Array, y: Array) -> Any:
    """Return the remainder of integers, with the sign of the divisor."""
    return np.mod(x, y) if _may_divide(x, y) else NotImplemented


def exact_square(x: Array, y: Array) -> Any:
    """Return the square of the difference."""
    return np.square(np.subtract(x, y))


def exact_clip(values: Array, low: Array, high: Array) -> Array:
    """Return the nearest values within limits."""
    return np.maximum(np.minimum(values, high), low)


def exact_positive(x: Array) -> Array:
    """Return 0 for negative numbers."""
    return np.maximum(x, x.dtype.type(0))


def exact_reduction(
    reduce: Callable[..., Any], *, of_floats: bool
) -> Callable[[Array, Any, bool], Any]:
    """Return a reduction by NumPy, for values whose order does not count: sums of floats depend on it.

    Args:
        reduce: A function of NumPy.
        of_floats: Whether the order of floats does not count either.
    """

    def reduced(values: Array, axes: Any, keepdims: bool) -> Any:
        is_whole = values.dtype.kind in "biu"
        if not (is_whole or of_floats) or not values.size:
            return NotImplemented
        dtype = {"dtype": values.dtype} if reduce in (np.sum, np.prod) else {}
        return reduce(values, axis=axes, keepdims=keepdims, **dtype)

    return reduced


def exact_index(values: Array, axis: int, *, largest: bool) -> Any:
    """Return the index of the first largest or smallest value along an axis."""
    if not values.shape[axis]:
        return NotImplemented
    find = np.argmax if largest else np.argmin
    if values.dtype.kind != "f":
        return np.asarray(find(values, axis))
    limits = np.finfo(values.dtype)
    # TensorFlow starts from the lowest or highest finite value: NaN and infinity count as that.
    counted = np.fmax(values, limits.min) if largest else np.fmin(values, limits.max)
    return np.asarray(find(counted, axis))


def exact_order(values: Array, axis: int, *, falls: bool) -> Any:
    """Return the indices that sort along an axis. Equal values keep their order."""
    if values.dtype.kind == "f" and bool(np.isnan(values).any()):
        return NotImplemented
    if not falls:
        return np.argsort(values, axis, kind="stable")
    order = np.flip(np.argsort(np.flip(values, axis), axis, kind="stable"), axis)
    return values.shape[axis] - 1 - order


def exact_sums(values: Array, axis: int, *, exclusive: bool, reverse: bool) -> Any:
    """Return the sums of integers up to each place along an axis."""
    if values.dtype.kind not in "iu":
        return NotImplemented
    ordered = np.flip(values, axis) if reverse else values
    sums = np.cumsum(ordered, axis, dtype=values.dtype)
    sums = sums - ordered if exclusive else sums
    return np.flip(sums, axis) if reverse else sums


def _may_divide(x: Array, y: Array) -> bool:
    """Return True for integers, none of which is divided by 0: JAX's formula raises then."""
    return x.dtype.kind in "iu" and (not x.size or bool(y.all()))
