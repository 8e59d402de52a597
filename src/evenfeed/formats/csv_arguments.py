"""What a user says of the fields of CSV records: their dtypes, defaults, and which are taken."""

from collections.abc import Sequence
from itertools import count
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import shortened, to_array
from evenfeed.core.dtypes import DType, name_of
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.formats.csv_values import KINDS, CsvColumn

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
