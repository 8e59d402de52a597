"""The values of CSV fields: text, and numbers as TensorFlow reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType, name_of
from evenfeed.formats.chunks import bytes_column

#: What a field can be.
KINDS: Final = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


@final
@dataclass(frozen=True)
class CsvColumn:
    """What is made of one field of every record.

    Attributes:
        name: How errors call it.
        dtype: One of `KINDS`.
        default: What stands for an empty field, as text; None where there must be one.
    """

    name: str
    dtype: DType
    default: bytes | None = None

    def values(self, fields: Sequence[bytes], na_value: bytes) -> tuple[Array, dict[int, str]]:
        """Return the values of fields, and what is wrong with some, by their places."""
        fields, wrong = self._filled(fields, na_value)
        if self.dtype == dtypes.string:
            return bytes_column(list(fields)), wrong
        try:
            return _numbers(fields, self.dtype), wrong
        except (ValueError, OverflowError):  # one of them is none, or is written in a rare way
            return self._one_by_one(fields, wrong), wrong

    def _filled(
        self, fields: Sequence[bytes], na_value: bytes
    ) -> tuple[Sequence[bytes], dict[int, str]]:
        if b"" not in fields and na_value not in fields:
            return fields, {}
        missing = {b"", na_value}
        default = b"0" if self.default is None else self.default
        filled = [default if field in missing else field for field in fields]
        if self.default is not None:
            return filled, {}
        empty = [place for place, field in enumerate(fields) if field in missing]
        return filled, dict.fromkeys(empty, f"{self.name} is empty, and has no default")

    def _one_by_one(self, fields: Sequence[bytes], wrong: dict[int, str]) -> Array:
        column = np.zeros(len(fields), self.dtype)
        for place, field in enumerate(fields):
            try:
                column[place : place + 1] = number(field, self.dtype)
            except (ValueError, OverflowError):
                wrong[place] = f"{self.name} is {field!r}, which is no {name_of(self.dtype)}"
        return column


def _numbers(fields: Sequence[bytes], dtype: DType) -> Array:
    """Return many numbers; a ValueError or OverflowError where one is none, or may be none."""
    if b"_" in b"".join(fields):
        raise ValueError("Python takes 1_000 for a number")
    if dtype.kind == "f":
        return _narrowed(np.fromiter(map(float, fields), np.float64, len(fields)), dtype)
    return _narrowed(np.fromiter(map(int, fields), np.int64, len(fields)), dtype)


def number(field: bytes, dtype: DType) -> Array:
    """Return one number; a ValueError or OverflowError where a field is none."""
    if b"_" in field:
        raise ValueError("Python takes 1_000 for a number")
    if dtype.kind == "f" and b"0x" in field.lower():
        return _narrowed(np.array([float.fromhex(field.decode())]), dtype)
    return _numbers([field], dtype)


def _narrowed(wide: Array, dtype: DType) -> Array:
    with np.errstate(over="ignore"):  # what is too large is infinite
        narrow = wide.astype(dtype)
    if dtype.kind == "i" and np.any(narrow != wide):
        raise OverflowError
    return narrow
