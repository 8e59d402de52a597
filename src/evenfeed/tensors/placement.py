"""The place where a NumPy array becomes a `jax.Array`, with the check that no value is lost on the way.

JAX without x64 has no 64-bit arrays: it would wrap an int64 that does not fit and say nothing. Whether
x64 is on is asked of JAX each time, because `jax.enable_x64(True)` holds for one thread and one block.
"""

# jax.numpy leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import sys
import warnings
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.callsite import where_called
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.core.tensor_types import remember_width

_NARROWER: Final[dict[DType, DType]] = {
    dtypes.int64: dtypes.int32,
    dtypes.uint64: dtypes.uint32,
    dtypes.float64: dtypes.float32,
    dtypes.complex128: dtypes.complex64,
}

_Tensor = TypeVar("_Tensor", bound="jax.Array | Array")

_TURN_ON: Final = 'set JAX_ENABLE_X64=1 or call jax.config.update("jax_enable_x64", True)'

# What `warnings` keeps in every module to know which of its lines have been warned about.
_warned: Final[dict[str, dict[Any, Any]]] = {}


def held_dtype(dtype: DType) -> DType:
    """Return the dtype that JAX holds for `dtype` at present: 64 bits only where x64 is on."""
    return dtype if jax.config.read("jax_enable_x64") else _NARROWER.get(dtype, dtype)


def asked_dtype(dtype: object) -> DType:
    """Return what JAX holds for a dtype that the user wrote, with a warning where that is narrower."""
    asked = dtypes.as_dtype(dtype)
    held = held_dtype(asked)
    if held != asked:
        _warn(
            f"{asked.name} was asked for, but JAX runs without 64-bit types: the tensor is {held.name}. "
            f"For {asked.name}, {_TURN_ON}."
        )
    return held


def is_traced(value: object) -> bool:
    """Tell whether `value` is a `jax.Array` without values: one that a function is traced with."""
    return isinstance(value, _tracer())


@cache
def _tracer() -> type:
    # The door would look JAX's module up at each call.
    return jax.core.Tracer  # pyright: ignore[reportAttributeAccessIssue]


def unbound(value: Any) -> Any:
    """Return the same memory as an array that JAX brings to wherever it is computed with.

    JAX refuses to compute with two arrays that are bound to different devices, and brings together those
    that are not bound. What is no array of one device stays as it is.
    """
    return _with_binding(value, binds=False)


def bound(value: Any) -> Any:
    """Return the same memory as an array with which JAX computes where it lies."""
    return _with_binding(value, binds=True)


def _with_binding(value: Any, *, binds: bool) -> Any:
    kind: Any = _array()
    if type(value) is not kind:
        return _key_with_binding(value, binds=binds) if _is_key(value) else value
    several = value.committed != binds and len(value.sharding.device_set) > 1
    if value.committed == binds or several or value.is_deleted():
        return value
    # JAX has no public way that does not copy: device_put never unbinds.
    return kind(value.aval, value.sharding, value._arrays, committed=binds, _skip_checks=True)


def _is_key(value: Any) -> bool:
    """Return True for a key of jax.random, or several, which has its numbers in an array."""
    if not isinstance(value, jax.Array) or is_traced(value):
        return False
    return jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def _key_with_binding(key: Any, *, binds: bool) -> Any:
    numbers = _with_binding(jax.random.key_data(key), binds=binds)
    return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(key))


@cache
def _array() -> type:
    with jax.ensure_compile_time_eval():  # the first one may be asked for while JAX is tracing
        return type(jnp.zeros(()))


def is_tracing() -> bool:
    """Tell whether JAX is compiling the code that runs now; that does not load JAX."""
    if "jax" not in sys.modules or jax_extend_core.get_opaque_trace_state() == _at_rest():
        return False
    # In some transformation: only an array says whether it is one that compiles. That costs 0.1 ms.
    return is_traced(jnp.zeros(()))


@cache
def _at_rest() -> object:
    """Return JAX's state where it transforms nothing."""
    with jax.core.eval_context():  # pyright: ignore[reportAttributeAccessIssue]
        return jax_extend_core.get_opaque_trace_state()


def to_device_array(array: Array, what: str) -> "jax.Array":
    """Return a numeric array as a `jax.Array`, a known value also where JAX is tracing.

    Args:
        array: The values; they are copied.
        what: What the array is to the user (`column 'id'`), for the error where a value does not fit.
    """
    with jax.ensure_compile_time_eval():
        return remembering(jnp.asarray(private(array, what)), array.dtype)


def remembering(tensor: _Tensor, asked: DType) -> _Tensor:
    """Return a tensor, of which is known from now on that it was to have `asked`, if JAX holds it narrower."""
    if _NARROWER.get(asked) == tensor.dtype and not is_traced(tensor):
        remember_width(tensor, asked)
    return tensor


def private(array: Array, what: str) -> Array:
    """Return `array` as `narrowed` does, but always a copy.

    JAX may read the memory after the call has returned, or keep it as its own: were it the user's,
    a later `array[:] = 1` would change the tensor.
    """
    narrow = narrowed(array, what)
    return array.copy() if narrow is array else narrow


def narrowed(array: Array, what: str) -> Array:
    """Return `array` in the dtype that JAX holds, itself where nothing changes.

    A value that this dtype cannot hold is an error: it would silently become another one.
    """
    held = held_dtype(array.dtype)
    if held == array.dtype:
        return array
    if array.dtype.kind in "iu":
        _check_integers(array, held, what)
        return array.astype(held)
    return _narrower_floats(array, held, what)


def _check_integers(array: Array, held: DType, what: str) -> None:
    limits = np.iinfo(held)
    if array.size == 0:
        return
    for value in (array.min(), array.max()):
        if not limits.min <= value <= limits.max:
            raise _does_not_fit(value, held, what)


def _narrower_floats(array: Array, held: DType, what: str) -> Array:
    with np.errstate(over="ignore"):
        narrow = array.astype(held)
    if _reaches_infinity(narrow):
        lost = np.isinf(narrow) & np.isfinite(array)
        if lost.any():
            raise _does_not_fit(array[lost][0], held, what)
    return narrow


def _reaches_infinity(array: Array) -> bool:
    """Tell in one pass, without a temporary array, whether anything is infinite beside the NaNs."""
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
