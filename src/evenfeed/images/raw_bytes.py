"""Numbers out of bytes: `tf.io.decode_raw`."""

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
    r"""Read bytes as numbers.

    Args:
        input_bytes: Text of any shape; all equally long, unless `fixed_length` is given.
        out_type: What the numbers are.
        little_endian: Whether the last byte of a number counts most.
        fixed_length: Cut longer bytes, and fill up shorter ones with zeros.
        name: Taken for compatibility.

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
            f"out_type cannot be {dtypes.name_of(dtype)}.", fix="pass the dtype of numbers."
        )
    length = None if fixed_length is None else whole_number(fixed_length, "fixed_length")
    if length is not None and (length < 1 or length % dtype.itemsize):
        raise InvalidArgumentError(
            f"fixed_length ({length}) must be a multiple of the size of out_type ({dtype.itemsize}).",
            fix="pass the number of bytes.",
        )
    return applied(Raw(dtype, bool(little_endian), length), input_bytes)


@final
@dataclass(frozen=True)
class Raw(RowKernel):
    """Reads bytes as numbers."""

    dtype: DType
    little: bool
    length: int | None

    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return as many numbers as are in the bytes."""
        if given[0].dtype != dtypes.string:
            raise TypeError("Only bytes are read.")  # said better where it runs
        count = None if self.length is None else self.length // self.dtype.itemsize
        return TensorSpec(given[0].shape.concatenate([count]), self.dtype)

    def one(self, *parts: Array) -> Array:
        """Return the numbers, behind the shape of the text."""
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
