"""Reinterprets bytes as numbers: `tf.io.decode_raw`."""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import RowKernel
from evenfeed.core.specs import TensorSpec
from evenfeed.images.image_kernels import applied

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
            raise TypeError(described(f"input_bytes must be bytes, but got {text.dtype.name}."))
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
