"""Finds out what is in CSV files: the names of their columns, and what they hold."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.formats.csv_files import CsvFile, CsvReader
from evenfeed.formats.csv_values import CsvColumn, number

# From the narrowest to the widest: a column is what holds all its values.
_ORDER: Final = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


def header_of(files: list[CsvFile], encoding: str) -> list[str]:
    """Return the names in the first record, which must be the same in all files."""
    names = _first(files[0], encoding)
    for file in files[1:]:
        others = _first(file, encoding)
        if others != names:
            raise ValueError(
                described(
                    f"{file.path} begins with {others}, but {files[0].path} with {names}.",
                    fix="read files with the same columns, or pass column_names.",
                )
            )
    return names


def _first(file: CsvFile, encoding: str) -> list[str]:
    record = next(_records(file), None)
    if record is None:
        raise ValueError(
            described(
                f"{file.path} is empty, but was to begin with a header.", fix="leave the file out."
            )
        )
    try:
        return [field.decode(encoding) for field in record]
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"The names in the first line of {file.path} are no {encoding}: {error}.",
            fix="pass encoding, or column_names.",
        ) from None


def _records(file: CsvFile) -> Iterator[Sequence[bytes]]:
    """Yield all records, the header among them."""
    reader = CsvReader(file)
    try:
        yield from reader.records()
    finally:
        reader.close()


def guessed_columns(
    files: list[CsvFile], names: list[str], select: tuple[int, ...], most: int | None
) -> list[CsvColumn]:
    """Return what the first records say of the columns that are taken."""
    places = select or range(len(names))
    kinds: dict[int, int] = {}
    for record in islice(_rows(files, len(names)), most):
        for place in places:
            field = record[place]
            if field not in (b"", files[0].layout.na_value):
                kinds[place] = _kind(field, kinds.get(place, 0))
    return [_column(names[place], _ORDER[kinds.get(place, -1)]) for place in places]


def _rows(files: list[CsvFile], width: int) -> Iterator[Sequence[bytes]]:
    for file in files:
        for place, record in enumerate(_records(file)):
            if place == 0 and file.layout.header:
                continue
            if len(record) != width:
                raise ValueError(
                    described(
                        f"{file.path} has {len(record)} fields in record {place}, "
                        f"but there are {width} columns.",
                        fix="correct the file, or pass column_defaults.",
                    )
                )
            yield record


def _kind(field: bytes, least: int) -> int:
    """Return the narrowest kind from `least` on that holds a field."""
    return next(kind for kind in range(least, len(_ORDER)) if _holds(_ORDER[kind], field))


def _holds(dtype: DType, field: bytes) -> bool:
    if dtype == dtypes.string:
        return True
    try:
        return bool(np.all(number(field, dtype) < np.inf))  # "nan" and "inf" may be words
    except (ValueError, OverflowError):
        return False


def _column(name: str, dtype: DType) -> CsvColumn:
    return CsvColumn(f"column {name!r}", dtype, b"" if dtype == dtypes.string else b"0")
