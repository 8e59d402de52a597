"""Whole tensors as bytes: `tf.io.serialize_tensor` and `parse_tensor`."""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType, name_of
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import RowKernel
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.chunks import bytes_column
from evenfeed.formats.example.example_protos import message_class
from evenfeed.formats.example.example_values import parsed
from evenfeed.images.image_kernels import applied, text_of

# TensorFlow's number of each dtype, and the field that has its values where they are not bytes.
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
    """Return a tensor as bytes, which `parse_tensor` reads; so does TensorFlow.

    Examples:
        >>> import evenfeed as tf
        >>> content = tf.io.serialize_tensor([[1, 2], [3, 4]])
        >>> tf.io.parse_tensor(content, tf.int32).tolist()
        [[1, 2], [3, 4]]
    """
    del name
    return applied(_Serialize(), tensor)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Any:
    """Return the tensor that `serialize_tensor`, here or in TensorFlow, made bytes of.

    In `Dataset.map` nobody knows its shape before it is read: `ensure_shape` promises one.

    Args:
        serialized: The bytes, a scalar.
        out_type: The dtype that it must have.
        name: Taken for compatibility.

    Raises:
        InvalidArgumentError: The bytes are no tensor, or one of another dtype.

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
    """Makes bytes of a tensor."""

    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return text."""
        _known(given[0].dtype)
        return TensorSpec([], dtypes.string)

    def one(self, *parts: Array) -> Array:
        """Return the bytes."""
        array = parts[0]
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
        return to_array(proto.SerializeToString())


@final
@dataclass(frozen=True)
class _Parse(RowKernel):
    """Reads a tensor out of bytes."""

    dtype: DType

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        """Return a tensor of any shape."""
        return TensorSpec(None, self.dtype)

    def one(self, *parts: Array) -> Array:
        """Return the tensor."""
        proto = parsed("TensorProto", text_of(parts[0], "serialized"), 0)
        number, field = _DTYPES[self.dtype]
        if proto.dtype != number:
            found = [name_of(dtype) for dtype, (own, _) in _DTYPES.items() if own == proto.dtype]
            raise InvalidArgumentError(
                f"The tensor is of type {(found or ['unknown'])[0]}, but out_type is {name_of(self.dtype)}.",
                fix="pass the dtype that it was written with.",
            )
        return self._shaped(proto, field)

    def _shaped(self, proto: Any, field: str) -> Array:
        shape = [dim.size for dim in proto.tensor_shape.dim]
        count = np.prod(shape, dtype=object)  # a lying length must not overflow
        values = (
            self._content(proto.tensor_content)
            if proto.tensor_content
            else self._values(getattr(proto, field))
        )
        if count != len(values):
            # A field may leave out the end of a tensor whose last values are the same.
            if proto.tensor_content or not 0 < len(values) < count or count > _MOST_FILLED:
                raise _no_tensor(
                    f"the shape {shape} has {count} values, but there are {len(values)}"
                )
            values = np.concatenate([values, np.full(count - len(values), values[-1], self.dtype)])
        return values.reshape(shape)

    def _content(self, content: bytes) -> Array:
        if len(content) % self.dtype.itemsize:
            raise _no_tensor(f"{len(content)} bytes are no whole number of {name_of(self.dtype)}")
        return np.frombuffer(content, self.dtype).copy()

    def _values(self, field: Any) -> Array:
        if self.dtype == dtypes.string:
            return bytes_column(list(field))
        if self.dtype in (dtypes.float16, dtypes.bfloat16):
            return np.array(field, np.uint16).view(self.dtype)
        if self.dtype.kind == "c":
            return _paired(field, self.dtype)
        return np.array(field, self.dtype)


# So many values may stand for one that is written once: a few bytes must not ask for all memory.
_MOST_FILLED: Final = 1 << 28


def _paired(field: Any, dtype: DType) -> Array:
    """Return complex numbers of their real and imaginary parts in turn."""
    parts = np.array(field, np.float64)
    return (parts[::2] + 1j * parts[1::2]).astype(dtype)


def _known(dtype: DType) -> DType:
    if dtype not in _DTYPES:
        raise InvalidArgumentError(
            f"A tensor of {name_of(dtype)} has no form as bytes.", fix="cast it to another dtype."
        )
    return dtype


def _no_tensor(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Could not parse `serialized` as TensorProto: {why}.",
        fix="pass what serialize_tensor returned.",
    )
