"""Tensors as bytes: `tf.io.serialize_tensor`, `tf.io.parse_tensor` and `tf.io.decode_raw`."""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType, name_of
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_values import single_text
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.formats.example.example_protos import message_class, parsed
from evenfeed.formats.reader import bytes_column

# TensorFlow's number for each dtype, and the field for its values when `tensor_content` is empty.
_DTYPES: Final = {
    dtypes.float32: (1, "float_val"),
    dtypes.float64: (2, "double_val"),
    dtypes.int32: (3, "int_val"),
    dtypes.uint8: (4, "int_val"),
    dtypes.int16: (5, "int_val"),
    dtypes.int8: (6, "int_val"),
    dtypes.string: (7, "string_val"),
    dtypes.complex64: (8, "scomplex_val"),
    dtypes.int64: (9, "int64_val"),
    dtypes.bool: (10, "bool_val"),
    dtypes.bfloat16: (14, "half_val"),
    dtypes.uint16: (17, "int_val"),
    dtypes.complex128: (18, "dcomplex_val"),
    dtypes.float16: (19, "half_val"),
    dtypes.uint32: (22, "uint32_val"),
    dtypes.uint64: (23, "uint64_val"),
}


def serialize_tensor(tensor: Any, name: str | None = None) -> Any:
    """Serialize a tensor to bytes that `parse_tensor` reads, here or in TensorFlow.

    Examples:
        >>> import evenfeed as tf
        >>> content = tf.io.serialize_tensor([[1, 2], [3, 4]])
        >>> tf.io.parse_tensor(content, tf.int32).tolist()
        [[1, 2], [3, 4]]
    """
    del name
    return applied(_Serialize(), tensor)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Any:
    """Parse a tensor that `serialize_tensor` wrote, here or in TensorFlow.

    In `Dataset.map` its shape is unknown: use `ensure_shape` to set it.

    Args:
        serialized: The bytes, a scalar.
        out_type: The dtype that the tensor must have.
        name: Accepted for compatibility; ignored.

    Raises:
        InvalidArgumentError: The bytes are not a valid tensor, or have another dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.parse_tensor(tf.io.serialize_tensor(["a", "b"]), tf.string).tolist()
        [b'a', b'b']
    """
    del name
    return applied(_Parse(_known(dtypes.as_dtype(out_type))), serialized)


@final
@dataclass(frozen=True)
class _Serialize(RowKernel):
    """Serializes a tensor."""

    def spec(self, *given: TensorSpec) -> TensorSpec:
        _known(given[0].dtype)
        return TensorSpec([], dtypes.string)

    def one(self, *parts: Array) -> Array:
        array = parts[0]
        return to_array(tensor_proto(array).SerializeToString())


def tensor_proto(array: Array) -> Any:
    """Return the TensorProto message of an array."""
    number, field = _DTYPES[_known(array.dtype)]
    proto = message_class("TensorProto")(dtype=number)
    for length in array.shape:
        proto.tensor_shape.dim.add(size=length)
    if not array.ndim:
        proto.tensor_shape.SetInParent()
    if array.dtype == dtypes.string:
        getattr(proto, field).extend(array.ravel().tolist())
    else:
        proto.tensor_content = array.tobytes()
    return proto


@final
@dataclass(frozen=True)
class _Parse(RowKernel):
    """Parses a tensor."""

    dtype: DType

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all inputs
        return TensorSpec(None, self.dtype)

    def one(self, *parts: Array) -> Array:
        proto = parsed("TensorProto", single_text(parts[0], "serialized"), 0)
        number, field = _DTYPES[self.dtype]
        if proto.dtype != number:
            found = [name_of(dtype) for dtype, (own, _) in _DTYPES.items() if own == proto.dtype]
            raise InvalidArgumentError(
                f"The tensor has dtype {(found or ['unknown'])[0]}, but out_type is {name_of(self.dtype)}.",
                fix="pass the dtype that the tensor was serialized with.",
            )
        return self._shaped(proto, field)

    def _shaped(self, proto: Any, field: str) -> Array:
        shape = [dim.size for dim in proto.tensor_shape.dim]
        if any(length < 0 for length in shape) or len(shape) > _MOST_DIMENSIONS:
            raise _no_tensor(f"{shortened(shape)} is not a shape")
        count = np.prod(shape, dtype=object)  # Python ints: a wrong dimension must not overflow
        values = (
            self._content(proto.tensor_content)
            if proto.tensor_content
            else self._values(getattr(proto, field))
        )
        if count != len(values):
            # A field may omit trailing values that equal the last one.
            if proto.tensor_content or not 0 < len(values) < count or count > _MOST_FILLED:
                raise _no_tensor(f"shape {shape} needs {count} values, but there are {len(values)}")
            values = np.concatenate([values, np.full(count - len(values), values[-1], self.dtype)])
        return values.reshape(shape)

    def _content(self, content: bytes) -> Array:
        if self.dtype == dtypes.string:
            raise _no_tensor("it has the bytes of numbers, but its dtype is string")
        if len(content) % self.dtype.itemsize:
            raise _no_tensor(
                f"{len(content)} bytes is not a whole number of {name_of(self.dtype)} values"
            )
        return np.frombuffer(content, self.dtype).copy()

    def _values(self, field: Any) -> Array:
        if self.dtype == dtypes.string:
            return bytes_column(list(field))
        if self.dtype in (dtypes.float16, dtypes.bfloat16):
            return self._fitting(field, np.dtype(np.uint16)).view(self.dtype)
        if self.dtype.kind == "c":
            if len(field) % 2:
                raise _no_tensor(f"{len(field)} parts are not a whole number of complex values")
            return _paired(field, self.dtype)
        return self._fitting(field, self.dtype)

    def _fitting(self, field: Any, dtype: DType) -> Array:
        """Return numbers from a field that is wider than their dtype; NumPy would wrap those that do not fit."""
        wide = np.array(field)
        values = wide.astype(dtype)
        if dtype.kind in "iu" and (values != wide).any():
            raise _no_tensor(f"its values do not fit into {name_of(self.dtype)}")
        return values


# The most values that a short field may expand to: a few bytes must not allocate all memory.
_MOST_FILLED: Final = 1 << 28
_MOST_DIMENSIONS: Final = 64  # NumPy's limit


def _paired(field: Any, dtype: DType) -> Array:
    """Return complex numbers from alternating real and imaginary parts."""
    parts = np.array(field, np.float64)
    return (parts[::2] + 1j * parts[1::2]).astype(dtype)


def _known(dtype: DType) -> DType:
    if dtype not in _DTYPES:
        raise InvalidArgumentError(
            f"Tensors of dtype {name_of(dtype)} cannot be serialized.", fix="cast to another dtype."
        )
    return dtype


def _no_tensor(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Could not parse `serialized` as TensorProto: {why}.",
        fix="pass what serialize_tensor returned.",
    )


_KINDS: Final = "biufc"


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Any:
    r"""Reinterpret bytes as numbers, along a new last axis.

    Args:
        input_bytes: Strings, in any shape. They must have the same length, unless `fixed_length` is passed.
        out_type: The dtype of the numbers.
        little_endian: True if the bytes are little-endian.
        fixed_length: The number of bytes to read; longer strings are cut, and shorter ones padded with zeros.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.decode_raw(b"\x01\x00\x02\x00", tf.uint16).tolist()
        [1, 2]
        >>> tf.io.decode_raw([b"abc", b"d"], tf.uint8, fixed_length=2).tolist()
        [[97, 98], [100, 0]]
    """
    del name
    dtype = dtypes.as_dtype(out_type)
    if dtype.kind not in _KINDS and dtype != dtypes.bfloat16:
        raise InvalidArgumentError(
            f"out_type must be numeric, but got {dtypes.name_of(dtype)}.",
            fix="pass a numeric dtype.",
        )
    length = None if fixed_length is None else whole_number(fixed_length, "fixed_length")
    if length is not None and (length < 1 or length % dtype.itemsize):
        raise InvalidArgumentError(
            f"fixed_length ({length}) must be a multiple of the size of out_type ({dtype.itemsize}).",
            fix="pass a number of bytes that is a multiple of that size.",
        )
    return applied(Raw(dtype, bool(little_endian), length), input_bytes)


@final
@dataclass(frozen=True)
class Raw(RowKernel):
    """Reinterprets bytes as numbers."""

    dtype: DType
    little: bool
    length: int | None

    def spec(self, *given: TensorSpec) -> TensorSpec:
        if given[0].dtype != dtypes.string:
            raise TypeError(
                "Only bytes can be decoded."
            )  # `one` raises a better error when it runs.
        count = None if self.length is None else self.length // self.dtype.itemsize
        return TensorSpec(given[0].shape.concatenate([count]), self.dtype)

    def one(self, *parts: Array) -> Array:
        text = parts[0]
        if text.dtype != dtypes.string:
            raise TypeError(
                described(
                    f"input_bytes must be bytes, but got {text.dtype.name}.",
                    fix="pass bytes, or a tensor of strings.",
                )
            )
        each: list[bytes] = text.ravel().tolist()
        if self.length is not None:
            each = [one[: self.length].ljust(self.length, b"\0") for one in each]
        length = self._common_length(each)
        numbers = np.frombuffer(bytearray(b"".join(each)), self.dtype)
        if not self.little:
            numbers = numbers.byteswap()
        return numbers.reshape(*text.shape, length // self.dtype.itemsize)

    def _common_length(self, each: list[bytes]) -> int:
        length = len(each[0]) if each else 0
        for number, one in enumerate(each):
            if len(one) != length:
                raise InvalidArgumentError(
                    "decode_raw requires input strings to all be the same size, but element "
                    f"{number} has size {len(one)} != {length}.",
                    fix="pass fixed_length=….",
                )
        if length % self.dtype.itemsize:
            raise InvalidArgumentError(
                f"Input to decode_raw has length {length} that is not a multiple of "
                f"{self.dtype.itemsize}, the size of {dtypes.name_of(self.dtype)}.",
                fix="check out_type.",
            )
        return length
