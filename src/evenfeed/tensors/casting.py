"""Conversions between dtypes: `cast`, `saturate_cast`, `bitcast`, `complex`."""

# ruff: noqa: A001, A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from functools import partial
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError
from evenfeed.core.handles import Handle
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.traced import traced_rows
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor, holds_device_arrays
from evenfeed.tensors.device_arrays import asked_dtype, private, remembering, stays_on_host
from evenfeed.tensors.operands import COMPUTABLE, REAL_FLOATS, apply, elementwise, shaped_by
from evenfeed.tensors.ragged_dispatch import for_flat_values


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
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(cast(x.flat_values, dtype))  # pyright: ignore[reportReturnType]
    if isinstance(x, SparseTensor):
        return x.with_values(cast(x.values, dtype))  # pyright: ignore[reportReturnType]
    found = traced_rows.cast_to(x, dtypes.as_dtype(dtype)) if isinstance(x, Handle) else None
    if found is not None:
        return found
    return shaped_by(_converted(x, dtype), x)


def saturate_cast(value: object, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Convert every value to another dtype. A value that does not fit becomes the lowest or highest one.

    Examples:
        >>> import evenfeed as tf
        >>> tf.saturate_cast([300, -1, 7], tf.uint8).tolist()
        [255, 0, 7]
    """
    asked, held = dtypes.as_dtype(dtype), asked_dtype(dtype)
    formula = partial(_saturated, held=held)
    return remembering(elementwise("saturate_cast", formula, value, accepts=COMPUTABLE), asked)


def complex(real: object, imag: object, name: str | None = None) -> Tensor:
    """Create complex numbers from their real and imaginary parts.

    Examples:
        >>> import evenfeed as tf
        >>> tf.complex([1.0], [2.0]).tolist()
        [(1+2j)]
    """
    return elementwise("complex", jax.lax.complex, real, imag, accepts=REAL_FLOATS)


@for_flat_values
def bitcast(input: object, type: DTypeLike, name: str | None = None) -> Tensor:
    """Read the bytes of the values as another dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.bitcast([1.0], tf.int32).tolist()
        [1065353216]
    """
    return apply("bitcast", partial(_same_bytes, held=asked_dtype(type)), input)


def _same_bytes(tensor: Any, held: DType) -> Any:
    if tensor.dtype.itemsize < held.itemsize and tensor.shape[-1:] != (
        held.itemsize // tensor.dtype.itemsize,
    ):
        raise InvalidArgumentError(
            f"A tensor of {tensor.dtype.name} and shape {tensor.shape} cannot be read as {held.name}.",
            fix=f"make the last axis {held.itemsize // tensor.dtype.itemsize} long.",
        )
    return jax.lax.bitcast_convert_type(tensor, held)


def _saturated(tensor: Any, held: DType) -> Any:
    """Cast numbers. Those that `held` cannot hold become its limits."""
    if tensor.dtype.kind == "c" and held.kind in "iuf":
        tensor = tensor.real
    if {held.kind, tensor.dtype.kind} - set("iuf"):
        return _cast_numbers(tensor, held)
    theirs, own = _limits(held), _limits(tensor.dtype)
    highest = tensor.dtype.type(min(theirs.max, own.max))
    if float(highest) > theirs.max:  # a float that was rounded up
        highest = np.nextafter(highest, tensor.dtype.type(0))
    clipped = jnp.clip(tensor, tensor.dtype.type(max(theirs.min, own.min)), highest)
    return _cast_numbers(clipped, held)


def _limits(dtype: DType) -> Any:
    return jnp.iinfo(dtype) if dtype.kind in "iu" else jnp.finfo(dtype)


def _converted(x: object, dtype: DTypeLike) -> Tensor:
    asked, held = dtypes.as_dtype(dtype), asked_dtype(dtype)
    if holds_device_arrays(x):
        tensor = _cast(convert_to_tensor(x), held)
        # A copy, because `remembering` must not mark a user tensor that has 32 bits.
        return tensor if held == asked else remembering(jnp.copy(tensor), asked)
    array = to_array(x)
    if stays_on_host() and (found := _cast_on_host(array, asked)) is not None:
        return computed_tensor(found)
    if held == asked:
        return _cast_known(array.copy(), held)
    # If JAX cannot hold the requested 64 bits, the values must still fit.
    return remembering(_cast_known(private(array, "the tensor"), held), asked)


def _cast_on_host(array: Array, asked: DType) -> Array | None:
    """Return a new array, if NumPy casts these dtypes as JAX does; None if it may not.

    JAX takes 50 times as long for one element, and compiles a program for each new shape.
    """
    own, new = array.dtype, asked
    if own.kind in "biu" and (new.kind in "biu" or (new.kind == "f" and new.itemsize > 2)):
        return array.astype(new)
    if own.kind != "f":
        return None
    if new.kind == "f" and new.itemsize >= own.itemsize:
        return array.astype(new)
    if new.kind not in "iu":
        return None
    with np.errstate(invalid="ignore"):  # of values that the result does not take
        return _truncated(np, np.asarray(array), new)


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
        return _truncated(jnp, tensor, held)
    return tensor.astype(held)


def _truncated(xp: Any, tensor: Any, held: DType) -> Any:
    """Cast floats to integers like x86: through a signed integer, whose lowest value stands for overflow."""
    signed = dtypes.int64 if held.itemsize == 8 else dtypes.int32
    wide = tensor if tensor.dtype.itemsize >= 4 else tensor.astype(dtypes.float32)
    low = -(2.0 ** (8 * signed.itemsize - 1))
    whole = xp.where((wide >= low) & (wide < -low), wide, low).astype(signed).astype(held)
    if held.kind == "u" and held.itemsize == signed.itemsize:
        return xp.where((wide >= 0) & (wide < -2 * low), wide.astype(held), whole)
    return whole
