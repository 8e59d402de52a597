"""Creates tensors: `constant`, `zeros`, `ones`, `range`. Numbers are a `jax.Array`, text is a NumPy array of bytes."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import (
    Array,
    cannot_hold,
    check_has_numbers,
    shortened,
    to_array,
)
from evenfeed.core.conversion import (
    is_tensor as is_array,
)
from evenfeed.core.dtypes import DType, as_integers
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.promised_shapes import shaped_like
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import TensorShape, partly_unknown
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import HostTensor, asked_width, host_tensor
from evenfeed.core.tensor_types import Tensor as AnyTensor
from evenfeed.tensors.device_arrays import (
    asked_dtype,
    filled,
    held_dtype,
    remembering,
    stays_on_host,
    to_device_array,
)

Tensor: TypeAlias = "jax.Array | Array"
DTypeLike: TypeAlias = DType | type | str


@runtime_checkable
class ReadsAsTensor(Protocol):
    """A value that JAX can read as a tensor, such as a variable."""

    def __jax_array__(self) -> "jax.Array": ...


# Types that are never on a device. The check must not load JAX.
_HOST_VALUES: Final = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, list, tuple)
_PLAIN_TYPES: Final = frozenset({bool, int, float, complex, str, bytes})


def constant(
    value: object, dtype: DTypeLike | None = None, shape: object = None, name: str | None = None
) -> Tensor:
    """Create a tensor from a Python value, a NumPy array or nested lists of them.

    Args:
        value: Ints become int32 (int64 if they do not fit), floats become float32, text becomes bytes.
            Arrays keep their dtype.
        dtype: The dtype of the tensor, instead of that default.
        shape: The shape of the tensor; a single value is repeated to fill it.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.constant([1, 2.5]).tolist()
        [1.0, 2.5]
        >>> tf.constant(0, shape=(2, 2)).tolist()
        [[0, 0], [0, 0]]
        >>> tf.constant(["a", "b"]).tolist()
        [b'a', b'b']
    """
    asked = None if dtype is None else dtypes.as_dtype(dtype)
    if asked is not None and is_on_device(value) and _differs(value, asked):
        raise TypeError(_other_dtype(value, asked))
    tensor = host_or_device(value, asked)
    if isinstance(value, np.ndarray) and isinstance(tensor, np.ndarray):
        tensor = tensor.copy()  # a user array, which the user may change
    if shape is None:
        return tensor
    wide, filled = asked_width(tensor), _filled(tensor, static_shape(shape))
    return filled if wide is None else remembering(filled, wide)


def convert_to_tensor(
    value: object,
    dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Convert `value` to a tensor. A tensor is returned unchanged.

    Args:
        value: Anything that `constant` accepts, and lists that contain tensors.
        dtype: The dtype that the tensor must have.
        dtype_hint: The preferred dtype, used if `value` can be converted to it.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.convert_to_tensor([tf.constant(1.0), 2]).tolist()
        [1.0, 2.0]
    """
    if dtype is not None:
        asked_dtype(dtype)  # warns
        return _converted(value, dtypes.as_dtype(dtype))
    if dtype_hint is None or is_on_device(value):
        return _converted(value)
    try:
        return _converted(value, dtypes.as_dtype(dtype_hint))
    except (TypeError, ValueError):
        return _converted(value)


def host_or_device(value: object, dtype: DType | None = None) -> Any:
    """Convert to a tensor. Numbers of the host stay there in a function that a dataset calls for each element."""
    if not stays_on_host() or isinstance(value, TensorShape) or holds_device_arrays(value):
        return convert_to_tensor(value, dtype)
    array = to_array(value, dtype)
    return array if isinstance(array, HostTensor) else computed_tensor(array)


def zeros(shape: object, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Create a tensor of zeros; for the string dtype, of empty strings.

    Examples:
        >>> import evenfeed as tf
        >>> tf.zeros([2, 3], tf.int32).tolist()
        [[0, 0, 0], [0, 0, 0]]
    """
    if asked_dtype(dtype) == dtypes.string:
        return host_tensor(np.full(static_shape(shape), b"", dtypes.string))
    return shaped_like(filled(0, static_shape(shape), dtype), shape)


def ones(shape: object, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> "jax.Array":
    """Create a tensor of ones.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ones(3).tolist()
        [1.0, 1.0, 1.0]
    """
    held = asked_dtype(dtype)
    if held == dtypes.string:
        raise cannot_hold(1, held)
    return shaped_like(filled(1, static_shape(shape), dtype), shape)


def is_tensor(x: object) -> bool:
    """Return True if `x` is a tensor, a ragged or sparse tensor, or a variable.

    Examples:
        >>> import evenfeed as tf
        >>> tf.is_tensor(tf.constant(1.0)), tf.is_tensor(1.0)
        (True, False)
    """
    return isinstance(x, (AnyTensor, RaggedTensor, SparseTensor)) or is_on_device(x)


def is_on_device(value: object) -> "TypeGuard[jax.Array | ReadsAsTensor]":
    """Return True if `value` is a `jax.Array` (tracers included), or can be read as one."""
    return not isinstance(value, _HOST_VALUES) and isinstance(value, (jax.Array, ReadsAsTensor))


def holds_device_arrays(value: object) -> bool:
    """Return True if `value` is on a device, or is a list that contains such a value."""
    if not isinstance(value, (list, tuple)):
        return is_on_device(value)
    entries = cast("Sequence[object]", value)
    # Long lists of plain numbers are the common case, and checking their types is fast.
    return not _PLAIN_TYPES.issuperset(map(type, entries)) and any(
        map(holds_device_arrays, entries)
    )


def read(value: "jax.Array | ReadsAsTensor") -> "jax.Array":
    """Return the array itself, or the array that `value` reads as. Raises TypeError for a PRNG key."""
    array = value if isinstance(value, jax.Array) else value.__jax_array__()
    check_has_numbers(array)
    return array


def convert_together(values: Iterable[object]) -> list[Any]:
    """Convert the operands of one operation to tensors: all of text, or all of numbers.

    Python numbers take the dtype of the first array among the operands, or of the first operand, if they
    can. JAX promotes dtypes that still differ.
    """
    operands = [read(value) if is_on_device(value) else value for value in values]
    like = next((dtypes.as_dtype(value.dtype) for value in operands if is_array(value)), None)
    tensors: list[Tensor] = []
    for value in operands:
        tensor = convert_to_tensor(value, dtype_hint=None if is_array(value) else like)
        like = like or tensor.dtype
        if (tensor.dtype == dtypes.string) != (like == dtypes.string):
            raise cannot_hold(value, like)
        tensors.append(tensor)
    return tensors


def static_shape(shape: object) -> tuple[int, ...]:
    """Convert a shape argument (a number, a sequence or a vector of numbers) to a tuple of lengths."""
    lengths = whole_numbers(shape)
    if lengths is None:
        raise cannot_hold(shape, dtypes.int32)
    for length in lengths.flat:
        if length < 0:
            raise InvalidArgumentError(
                f"The length of an axis must be at least 0, but got {length} in {shortened(shape)}.",
                fix="pass the length of each axis; only reshape accepts -1.",
            )
    return tuple(lengths.reshape(-1).tolist())


def whole_numbers(value: object) -> Array | None:
    """Convert a number or a vector to integers that are concrete even in a trace; None if not integers."""
    numbers = to_array(_known(value))
    if numbers.size and numbers.dtype.kind not in "iub":
        return None
    if numbers.ndim > 1:
        raise InvalidArgumentError(
            f"A shape must be a vector of lengths, but got {shortened(value)}.",
            fix="pass the length of each axis, for example [2, 3].",
        )
    return numbers.astype(np.int64)


def _known(value: object) -> object:
    """Return concrete values instead of tensors. A tracer raises JAX's own error."""
    if isinstance(value, TensorShape):
        return np.asarray(value)
    if isinstance(value, (list, tuple)):
        entries = cast("Sequence[object]", value)
        if any(entry is None for entry in entries):
            raise partly_unknown(entries)
        return [_length(entry) for entry in entries]
    return np.asarray(read(value)) if is_on_device(value) else as_integers(value)


def _length(entry: object) -> object:
    if is_on_device(entry):
        return operator.index(read(entry))  # pyright: ignore[reportArgumentType]
    return entry.item() if isinstance(entry, np.ndarray) and not entry.ndim else entry


def _converted(value: object, asked: DType | None = None) -> Tensor:
    if isinstance(value, TensorShape):
        if asked not in (None, dtypes.int32, dtypes.int64):
            raise cannot_hold(value, asked)
        return _converted(np.asarray(value), asked)
    if is_on_device(value):
        if asked is not None and _differs(value, asked):
            raise ValueError(_other_dtype(value, asked))
        return read(value)
    if holds_device_arrays(value):
        parts = convert_together(cast("Sequence[object]", value))
        return _converted(jnp.stack(parts), asked)
    array = to_array(value, asked)
    if array.dtype == dtypes.string:
        return host_tensor(array)
    return to_device_array(array, "the tensor")


def _differs(value: "jax.Array | ReadsAsTensor", asked: DType) -> bool:
    return held_dtype(read(value).dtype) != held_dtype(asked)


def _other_dtype(value: "jax.Array | ReadsAsTensor", asked: DType) -> str:
    return described(
        f"The dtype must be {dtypes.name_of(asked)}, but got a tensor of dtype {read(value).dtype.name}.",
        fix=f"convert it: evenfeed.cast(x, evenfeed.{dtypes.name_of(asked)}).",
    )


def _filled(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tensor.size == math.prod(shape):
        return tensor.reshape(shape)
    if tensor.size != 1:
        raise TypeError(
            described(
                f"The shape {shape} needs {math.prod(shape)} values, but got {tensor.size}.",
                fix="pass as many values as the shape needs, or a single one.",
            )
        )
    one = tensor.reshape(())
    if isinstance(one, jax.Array):
        return jnp.full(shape, one)
    return computed_tensor(np.full(shape, one, one.dtype))
