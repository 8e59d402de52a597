"""CSV columns: converting fields to strings and numbers as TensorFlow does, and checking the column arguments."""

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

#: The dtypes that a field can have.
KINDS: Final = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


@final
@dataclass(frozen=True)
class CsvColumn:
    """One column of a CSV file.

    Attributes:
        name: Its name in errors.
        dtype: One of `KINDS`.
        default: The text that replaces an empty field; None if the field is required.
    """

    name: str
    dtype: DType
    default: bytes | None = None

    def values(self, fields: Sequence[bytes], na_value: bytes) -> tuple[Array, dict[int, str]]:
        """Return the values of fields, and the errors by field index."""
        fields, wrong = self._filled(fields, na_value)
        if self.dtype == dtypes.string:
            return bytes_column(list(fields)), wrong
        try:
            return _numbers(fields, self.dtype), wrong
        except (ValueError, OverflowError):  # one is not a number, or is written in an unusual way
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
        return filled, dict.fromkeys(empty, f"{self.name} is empty and has no default")

    def _one_by_one(self, fields: Sequence[bytes], wrong: dict[int, str]) -> Array:
        column = np.zeros(len(fields), self.dtype)
        for place, field in enumerate(fields):
            try:
                column[place : place + 1] = number(field, self.dtype)
            except (ValueError, OverflowError):
                wrong[place] = (
                    f"{self.name} is {field!r}, which is not a valid {name_of(self.dtype)}"
                )
        return column


def _numbers(fields: Sequence[bytes], dtype: DType) -> Array:
    """Parse many numbers; raise ValueError or OverflowError if one may be invalid."""
    if b"_" in b"".join(fields):
        raise ValueError("Python accepts 1_000 as a number; TensorFlow does not")
    if dtype.kind == "f":
        return _narrowed(np.fromiter(map(float, fields), np.float64, len(fields)), dtype)
    return _narrowed(np.fromiter(map(int, fields), np.int64, len(fields)), dtype)


def number(field: bytes, dtype: DType) -> Array:
    """Parse one number; raise ValueError or OverflowError if it is invalid."""
    if b"_" in field:
        raise ValueError("Python accepts 1_000 as a number; TensorFlow does not")
    if dtype.kind == "f" and b"0x" in field.lower():
        return _narrowed(np.array([float.fromhex(field.decode())]), dtype)
    return _numbers([field], dtype)


def _narrowed(wide: Array, dtype: DType) -> Array:
    with np.errstate(over="ignore"):  # numbers that are too large become infinite
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
    """Return the columns, and the numbers of the selected and the excluded fields."""
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
    """Return a column, given its dtype or the default for empty fields."""
    dtype = _dtype(default)
    if dtype is not None:
        return CsvColumn(name, dtype)
    value = to_array(default)
    if value.dtype not in KINDS:
        raise InvalidArgumentError(
            f"{name} cannot have dtype {name_of(value.dtype)}, as its default {shortened(default)} has.",
            fix=_KINDS,
        )
    if value.ndim > 1 or value.size > 1:
        raise InvalidArgumentError(
            f"{name} must have a single default, but got {shortened(default)}.", fix=_KINDS
        )
    return CsvColumn(name, value.dtype, _as_field(value.item()) if value.size else None)


def _dtype(value: Any) -> DType | None:
    """Return the dtype that a value names; None if it is a default."""
    if isinstance(value, str):
        return next((kind for kind in KINDS if name_of(kind) == value), None)
    if not isinstance(value, type | np.dtype):
        return None
    dtype = dtypes.as_dtype(cast("object", value))
    if dtype not in KINDS:
        raise ValueError(described(f"A CSV column cannot have dtype {name_of(dtype)}.", fix=_KINDS))
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
            "select_cols and exclude_cols cannot both be given.", fix="pass one of them."
        )
    if select and len(select) != columns:
        raise InvalidArgumentError(
            f"select_cols has {len(select)} fields, but record_defaults has {columns} values.",
            fix="pass one default per selected field.",
        )
    return select, exclude


def _increasing(value: Sequence[int] | None, name: str) -> tuple[int, ...]:
    numbers = tuple(whole_number(number, name) for number in (value if value is not None else ()))
    if list(numbers) != sorted(set(numbers)) or any(number < 0 for number in numbers):
        raise InvalidArgumentError(
            f"{name} must be field numbers, at least 0 and strictly increasing, but got {shortened(value)}.",
            fix=f"pass {name}=sorted(set(numbers)).",
        )
    return numbers


def delimiter_of(value: str) -> bytes:
    """Return the byte between two fields."""
    delimiter = plain_text(value)
    if len(delimiter) != 1:
        raise InvalidArgumentError(
            f"field_delim must be a single ASCII character, but got {value!r}.",
            fix="pass a single character, such as field_delim=','.",
        )
    return delimiter


def plain_text(value: Any) -> bytes:
    """Return a string argument as bytes."""
    return to_array(value, dtypes.string).item()
