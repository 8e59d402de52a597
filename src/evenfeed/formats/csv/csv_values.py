"""The values of CSV fields: text, and numbers as TensorFlow reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType, name_of
from evenfeed.core.errors import InvalidArgumentError, described
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


_KINDS: Final = (
    "pass tf.float32, tf.float64, tf.int32, tf.int64 or tf.string, or a default in a list."
)


def columns_of(
    defaults: Any, select_cols: Sequence[int] | None, exclude_cols: Sequence[int] | None
) -> tuple[tuple[CsvColumn, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the columns, and the numbers of the fields that are taken, or left out."""
    if not isinstance(defaults, list | tuple):
        raise TypeError(
            described(f"record_defaults must be a list, but got {shortened(defaults)}.", fix=_KINDS)
        )
    values = cast("Sequence[Any]", defaults)
    if not values:
        raise InvalidArgumentError("record_defaults is empty.", fix=_KINDS)
    select, exclude = _choice(select_cols, exclude_cols, len(values))
    places = select or (place for place in count() if place not in exclude)
    named = zip(places, values, strict=False)
    return tuple(column_of(f"field {place}", value) for place, value in named), select, exclude


def column_of(name: str, default: Any) -> CsvColumn:
    """Return a column of a dtype, or of a value that stands for empty fields."""
    dtype = _dtype(default)
    if dtype is not None:
        return CsvColumn(name, dtype)
    value = to_array(default)
    if value.dtype not in KINDS:
        raise InvalidArgumentError(
            f"{name} cannot be {name_of(value.dtype)}, as its default {shortened(default)} is.",
            fix=_KINDS,
        )
    if value.ndim > 1 or value.size > 1:
        raise InvalidArgumentError(
            f"{name} must have one default, but got {shortened(default)}.", fix=_KINDS
        )
    return CsvColumn(name, value.dtype, _as_field(value.item()) if value.size else None)


def _dtype(value: Any) -> DType | None:
    """Return the dtype that a value is; None where it is a default."""
    if isinstance(value, str):
        return next((kind for kind in KINDS if name_of(kind) == value), None)
    if not isinstance(value, type | np.dtype):
        return None
    dtype = dtypes.as_dtype(cast("object", value))
    if dtype not in KINDS:
        raise ValueError(
            described(f"A column of CSV files cannot be {name_of(dtype)}.", fix=_KINDS)
        )
    return dtype


def _as_field(value: Any) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()


def _choice(
    select_cols: Sequence[int] | None, exclude_cols: Sequence[int] | None, columns: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    select = _increasing(select_cols, "select_cols")
    exclude = _increasing(exclude_cols, "exclude_cols")
    if select and exclude:
        raise InvalidArgumentError(
            "select_cols and exclude_cols are both given.", fix="pass one of them."
        )
    if select and len(select) != columns:
        raise InvalidArgumentError(
            f"select_cols has {len(select)} numbers, but record_defaults {columns} values.",
            fix="pass one default for each column that is taken.",
        )
    return select, exclude


def _increasing(value: Sequence[int] | None, name: str) -> tuple[int, ...]:
    numbers = tuple(whole_number(number, name) for number in (value if value is not None else ()))
    if list(numbers) != sorted(set(numbers)) or any(number < 0 for number in numbers):
        raise InvalidArgumentError(
            f"{name} must hold the numbers of fields, from 0 on, each larger than the one before, "
            f"but got {shortened(value)}.",
            fix=f"pass {name}=sorted(set(numbers)).",
        )
    return numbers


def delimiter_of(value: str) -> bytes:
    """Return the byte between two fields."""
    delimiter = plain_text(value)
    if len(delimiter) != 1:
        raise InvalidArgumentError(
            f"field_delim must be one character of ASCII, but got {value!r}.",
            fix="pass field_delim=',' or another one.",
        )
    return delimiter


def plain_text(value: Any) -> bytes:
    """Return a text that a user passed, as bytes."""
    return to_array(value, dtypes.string).item()
