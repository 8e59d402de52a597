"""Converts NumPy arrays to `jax.Array`, and checks that no value is lost.

Without x64, JAX has no 64-bit arrays and silently wraps an int64 that does not fit. The x64 setting is read each
time, because `jax.enable_x64(True)` applies to one thread and one block.
"""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.callsite import where_called
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.randomness import seeds
from evenfeed.core.tensor_types import remember_width

_NARROWER: Final[dict[DType, DType]] = {
    dtypes.int64: dtypes.int32,
    dtypes.uint64: dtypes.uint32,
    dtypes.float64: dtypes.float32,
    dtypes.complex128: dtypes.complex64,
}

_Tensor = TypeVar("_Tensor", bound="jax.Array | Array")

_TURN_ON: Final = 'set JAX_ENABLE_X64=1 or call jax.config.update("jax_enable_x64", True)'

# The registries in which `warnings` records which lines have been warned about, by file.
_warned: Final[dict[str, dict[Any, Any]]] = {}


def held_dtype(dtype: DType) -> DType:
    """Return the dtype that JAX uses for `dtype` right now: 64 bits only if x64 is on."""
    return dtype if is_x64_on() else _NARROWER.get(dtype, dtype)


def is_x64_on() -> bool:
    """Return True if JAX has 64-bit types right now, in this thread."""
    return _config().jax_enable_x64


@cache
def _config() -> Any:
    # Cached, because the lazy module would look up jax.config at each call.
    return jax.config


def asked_dtype(dtype: object) -> DType:
    """Return the dtype that JAX uses for a dtype that the user passed. Warns if it is narrower."""
    asked = dtypes.as_dtype(dtype)
    held = held_dtype(asked)
    if held != asked:
        # runtime/functions/vectorise.py recognizes this warning by the words "was asked for".
        _warn(
            f"{asked.name} was asked for, but JAX runs without 64-bit types: the tensor is {held.name}. "
            f"To get {asked.name}, {_TURN_ON}."
        )
    return held


def is_traced(value: object) -> bool:
    """Return True if `value` is a tracer."""
    return isinstance(value, _tracer())


@cache
def _tracer() -> type:
    # Cached, because the lazy module would look up jax.core at each call.
    return jax.core.Tracer  # pyright: ignore[reportAttributeAccessIssue]


def unbound(value: Any) -> Any:
    """Return an uncommitted array that shares the memory of `value`.

    JAX rejects a computation on arrays that are committed to different devices, but moves uncommitted arrays
    where they are needed. Anything but an array on one device is returned unchanged.
    """
    return _with_binding(value, binds=False)


def bound(value: Any) -> Any:
    """Return an array that shares the memory of `value` and is committed to its device."""
    return _with_binding(value, binds=True)


def _with_binding(value: Any, *, binds: bool) -> Any:
    kind: Any = _array()
    if type(value) is not kind:
        return _key_with_binding(value, binds=binds) if _is_key(value) else value
    several = value.committed != binds and len(value.sharding.device_set) > 1
    if value.committed == binds or several or value.is_deleted():
        return value
    # JAX has no public way to do this without a copy: device_put never uncommits.
    return kind(value.aval, value.sharding, value._arrays, committed=binds, _skip_checks=True)


def same_memory(value: Any) -> Any:
    """Return another object for an array, with the same memory. Anything but a concrete array is returned unchanged."""
    kind: Any = _array()
    if type(value) is not kind or value.is_deleted():
        return value
    return kind(
        value.aval, value.sharding, value._arrays, committed=value.committed, _skip_checks=True
    )


def _is_key(value: Any) -> bool:
    """Return True for a PRNG key or an array of keys, whose numbers are in another array."""
    if not isinstance(value, jax.Array) or is_traced(value):
        return False
    return jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def _key_with_binding(key: Any, *, binds: bool) -> Any:
    numbers = _with_binding(jax.random.key_data(key), binds=binds)
    return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(key))


@cache
def _array() -> type:
    with jax.ensure_compile_time_eval():  # the first call may come from within a trace
        return type(jnp.zeros(()))


def is_tracing() -> bool:
    """Return True if JAX is tracing the running code for compilation. Does not load JAX."""
    if "jax" not in sys.modules or jax_extend_core.get_opaque_trace_state() == _at_rest():
        return False
    # Inside some transformation. Only an array shows whether it is one that compiles; that costs 0.1 ms.
    return is_traced(jnp.zeros(()))


@cache
def _at_rest() -> object:
    """Return JAX's trace state outside of any transformation."""
    with jax.core.eval_context():  # pyright: ignore[reportAttributeAccessIssue]
        return jax_extend_core.get_opaque_trace_state()


def in_memory(arrays: Sequence[Any]) -> bool:
    """Return True for concrete arrays of one dtype that NumPy can read without a copy, if no tape records.

    XLA compiles a program for each new shape, which takes milliseconds and stays in memory: for a function that only moves
    values, NumPy is better.
    """
    if jax_extend_core.get_opaque_trace_state() != _at_rest():
        return False
    kind: Any = _array()
    found = [value for value in arrays if type(value) is kind and _is_on_free_cpu(value)]
    return len(found) == len(arrays) and len({value.dtype for value in found}) == 1


def _is_on_free_cpu(array: Any) -> bool:
    """Return True for an array on one CPU device to which it is not committed, so that the result may be elsewhere."""
    if array.is_deleted() or array.committed or len(array.sharding.device_set) > 1:
        return False
    (device,) = array.sharding.device_set
    return device.platform == "cpu"


def to_device_array(array: Array, what: str) -> "jax.Array":
    """Convert a numeric array to a `jax.Array` with concrete values, even in a trace.

    Args:
        array: The values; they are copied.
        what: What the array is to the user (`column 'id'`), for the error if a value does not fit.
    """
    with jax.ensure_compile_time_eval():
        return remembering(put(private(array, what)), array.dtype)


def computed(array: Array, what: str) -> Any:
    """Return numbers that were computed on the host as a tensor. Nobody else may change them.

    It stays on the host in a function that a dataset calls for each element: a `jax.Array` takes 50 times as long.
    """
    return computed_tensor(array) if stays_on_host() else to_device_array(array, what)


def filled(number: int, lengths: Any, dtype: Any) -> Any:
    """Return a tensor of one number. JAX compiles a program for each shape, so elements get theirs from NumPy."""
    wanted = dtypes.as_dtype(dtype)
    if stays_on_host():
        return computed_tensor(np.full(lengths, number, wanted))
    return remembering(jnp.full(lengths, number, held_dtype(wanted)), wanted)


def stays_on_host() -> bool:
    """Return True in a function that a dataset calls for each element, unless it is traced."""
    return seeds.calling.call is not None and not is_tracing()


def put(array: Array) -> "jax.Array":
    """Make a `jax.Array` of an array that nobody changes later. `jnp.asarray` compiles a program for each new shape."""
    return jax.device_put(np.asarray(array))


def remembering(tensor: _Tensor, asked: DType) -> _Tensor:
    """Return the tensor, and remember that `asked` was requested for it if its dtype is narrower."""
    if _NARROWER.get(asked) == tensor.dtype and not is_traced(tensor):
        remember_width(tensor, asked)
    return tensor


def private(array: Array, what: str) -> Array:
    """Like `narrowed`, but always return a copy.

    JAX may read the memory after the call has returned, or keep it. If it were a user array, a later
    `array[:] = 1` would change the tensor.
    """
    narrow = narrowed(array, what)
    return array.copy() if narrow is array else narrow


def narrowed(array: Array, what: str) -> Array:
    """Convert `array` to the dtype that JAX uses. Returns the array itself if the dtype is the same.

    Raises InvalidArgumentError for a value that this dtype cannot hold, which would otherwise change silently.
    """
    held = held_dtype(array.dtype)
    if held == array.dtype:
        return array
    if array.dtype.kind in "iu":
        _check_integers(array, held, what)
        return array.astype(held)
    return _narrower_floats(array, held, what)


def _check_integers(array: Array, held: DType, what: str) -> None:
    limits = _limits(held)
    if array.size == 0:
        return
    for value in (array.min(), array.max()):
        if not limits.min <= value <= limits.max:
            raise _does_not_fit(value, held, what)


@cache
def _limits(held: DType) -> "np.iinfo[Any]":
    return np.iinfo(held)


def _narrower_floats(array: Array, held: DType, what: str) -> Array:
    with np.errstate(over="ignore"):
        narrow = array.astype(held)
    if _reaches_infinity(narrow):
        lost = np.isinf(narrow) & np.isfinite(array)
        if lost.any():
            raise _does_not_fit(array[lost][0], held, what)
    return narrow


def _reaches_infinity(array: Array) -> bool:
    """Return True if a value is infinite, ignoring NaNs. One pass, without a temporary array."""
    if array.dtype.kind == "c":
        return _reaches_infinity(np.real(array)) or _reaches_infinity(np.imag(array))
    low, high = (reduce(array, axis=None, initial=0) for reduce in (np.fmin.reduce, np.fmax.reduce))
    return bool(np.isinf(low) or np.isinf(high))


def _does_not_fit(value: object, held: DType, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{value} in {what} does not fit into {held.name}, and JAX runs without 64-bit types.",
        fix=f"{_TURN_ON}, or keep it a NumPy array.",
    )


def _warn(text: str) -> None:
    origin = where_called()
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    registry = _warned.setdefault(filename, {})
    warnings.warn_explicit(text, UserWarning, filename, line, registry=registry)
