r"""CSV fields: splitting text into records and fields, and converting fields to values, by TensorFlow's rules.

A field that starts with a quote ends at a quote before a delimiter or line ending, and may contain both. Records end
with `\n`, `\r\n` or `\r`. An empty line is a record with one empty field.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.block import Positions
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType, name_of
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.reader import bytes_column
from evenfeed.formats.tables.arrow_text import texts_of
from evenfeed.formats.text_lines import behind_lines

QUOTE: Final = b'"'
OPEN: Final = "a quote is not closed before the end of the file"
_LEADING_ZEROS: Final = re.compile(rb"^(\s*[+-]?)0+(?=[0-9])")
_INSIDE: Final = "an unquoted field contains a quote"
_DOUBLED: Final = 'a quote inside a quoted field must be doubled, as ""'


@final
@dataclass(frozen=True)
class Records:
    """A run of complete records.

    Attributes:
        text: Their bytes, possibly with more after them.
        fields: The fields of all records in order, including quotes.
        stops: For each record, the index after its last field.
        ends: The delimiter or line ending after each field; None if each line is one record without quotes.
        is_open: Whether the last record is incomplete, because its quote is never closed.
    """

    text: bytes
    fields: list[bytes]
    stops: Positions
    ends: list[bytes] | None = None
    is_open: bool = False

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.stops)

    @cached_property
    def width(self) -> int | None:
        """The number of fields per record; None if it varies."""
        first = int(self.stops[0]) if self.count else 0
        even = first * self.count == len(self.fields) and not np.any(np.diff(self.stops) != first)
        return first if even else None

    def span(self, number: int) -> tuple[int, int]:
        """Return the index of the first field of a record, and one past its last."""
        return int(self.stops[number - 1]) if number else 0, int(self.stops[number])

    def line(self, number: int) -> int:
        """Return the number of lines before a record."""
        return number if self.ends is None else len(self.text[: self.byte(number)].splitlines())

    def byte(self, number: int) -> int:
        """Return the number of bytes before a record."""
        if self.ends is None:
            return behind_lines(self.text, number)
        fields = int(self.stops[number - 1]) if number else 0
        return sum(map(len, self.fields[:fields])) + sum(map(len, self.ends[:fields]))

    @property
    def lines(self) -> int:
        """The number of lines of all records."""
        return self.line(self.count)


@final
class Cutter:
    """Splits text into records.

    Args:
        delimiter: The byte between two fields.
        quoted: Whether fields may be quoted.
    """

    def __init__(self, delimiter: bytes, *, quoted: bool) -> None:
        self._delimiter = delimiter
        self._quoted = quoted
        stop = re.escape(delimiter) + rb"\r\n"
        plain = rb'[^"%b][^%b]*+' % (stop, stop) if quoted else rb"[^%b]++" % stop
        in_quotes = rb'"[^"]*+(?:"[^%b][^"]*+)*+"|' % stop if quoted else b""
        # One match per field. An unfinished field at the end of the text is the last match, so that no text is
        # scanned twice.
        self._token = re.compile(
            rb"(?s)((?:%b%b|)(?=[%b])|.+)(%b|\r\n?|\n|\Z)"
            % (in_quotes, plain, stop, re.escape(delimiter))
        )

    def cut(self, text: bytes, *, is_last: bool) -> tuple[Records, bytes]:
        r"""Return the complete records at the start of a text, and the rest of the text.

        Args:
            text: Bytes that start with a record. A `\r` at the end counts as a line ending.
            is_last: Whether the file ends after the text.
        """
        if is_last and text and not text.endswith((b"\n", b"\r")):
            text += b"\n"
        end = text.rfind(b"\n") + 1
        ends_at_line = end == len(text) if is_last else end > 0
        if ends_at_line and not (self._quoted and QUOTE in text):
            even = self._even(text[:end])
            if even is not None:
                return even, text[end:]
        return self._any(text, is_last=is_last)

    def _even(self, original: bytes) -> Records | None:
        """Split records at once if they have no quotes and the same number of fields. Otherwise return None."""
        text = original.replace(b"\r\n", b"\n")
        if b"\r" in text:
            return None
        width = text.count(self._delimiter, 0, max(0, text.find(b"\n"))) + 1
        letters = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(letters == ord("\n"))
        between = np.flatnonzero(letters == self._delimiter[0])
        stops = width * np.arange(1, len(ends) + 1)
        if np.any(np.searchsorted(between, ends) != stops - np.arange(1, len(ends) + 1)):
            return None
        fields = text.replace(b"\n", self._delimiter).split(self._delimiter)
        del fields[-1]  # after the last record
        return Records(original, fields, stops)

    def _any(self, text: bytes, *, is_last: bool) -> tuple[Records, bytes]:
        parts = self._token.split(text)  # "", field, end, "", field, end, …
        fields, ends = parts[1::3], parts[2::3]
        stops = [index for index, end in enumerate(ends, 1) if end and end != self._delimiter]
        if is_last and ends and not ends[-1]:
            stops.append(len(ends))
            return Records(text, fields, np.array(stops), ends, is_open=True), b""
        whole = stops[-1] if stops else 0
        rest = b"".join(
            field + end for field, end in zip(fields[whole:], ends[whole:], strict=True)
        )
        return Records(text, fields[:whole], np.array(stops, np.int64), ends[:whole]), rest

    def unquoted(self, fields: Sequence[bytes]) -> tuple[Sequence[bytes], dict[int, str]]:
        """Return fields without their quotes, and the errors by field index."""
        if not self._quoted:
            return fields, {}
        out, wrong = list(fields), dict[int, str]()
        for place, field in enumerate(fields):
            if QUOTE not in field:
                continue
            inner = field[1:-1]
            if QUOTE in inner or not field.startswith(QUOTE):
                unpaired = inner.replace(b'""', b"") if field.startswith(QUOTE) else field
                if QUOTE in unpaired:
                    wrong[place] = _DOUBLED if field.startswith(QUOTE) else _INSIDE
                inner = inner.replace(b'""', QUOTE)
            out[place] = inner
        return out, wrong


def has_whole_quotes(text: bytes, delimiter: bytes) -> bool:
    r"""Return True if quotes are only around whole fields, and none of these has a quote or a line ending in it.

    Args:
        text: Records, each ending with `\n`.
        delimiter: The byte between two fields.
    """
    letters = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(letters == ord(QUOTE))
    if len(quotes) % 2 or delimiter == QUOTE:
        return False
    is_end = np.isin(np.arange(256), [delimiter[0], ord("\n")])
    # Before the first byte is the last one, which is a line ending.
    if not (is_end[letters[quotes[::2] - 1]] & is_end[letters[quotes[1::2] + 1]]).all():
        return False
    lines = np.flatnonzero(letters == ord("\n"))
    return not np.any(np.searchsorted(quotes, lines) % 2)


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

    def of_arrow(self, array: Any) -> Array | Texts | None:
        """Return the values of an Arrow array; None if a field is empty that is required, or text with a default."""
        if self.dtype == dtypes.string:
            texts = texts_of(array)
            return texts if (texts.stops > texts.starts).all() or self.default == b"" else None
        if not array.null_count:
            return _narrowed(array.to_numpy(), self.dtype)
        if self.default is None:
            return None
        try:
            default = number(self.default, self.dtype).item()
        except (ValueError, OverflowError):
            return None
        return _narrowed(array.fill_null(default).to_numpy(), self.dtype)

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
    if dtype.kind == "i":  # Python parses 4300 digits at most, counting leading zeros
        field = _LEADING_ZEROS.sub(rb"\1", field)
    return _numbers([field], dtype)


def _narrowed(wide: Array, dtype: DType) -> Array:
    with np.errstate(over="ignore"):  # numbers that are too large become infinite
        narrow = wide.astype(dtype)
    if dtype.kind == "i" and np.any(narrow != wide):
        raise OverflowError
    return narrow


_FIX: Final = (
    "pass tf.float32, tf.float64, tf.int32, tf.int64 or tf.string, or a default in a list."
)


def columns_of(
    defaults: Any, select_cols: Sequence[int] | None, exclude_cols: Sequence[int] | None
) -> tuple[tuple[CsvColumn, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the columns, and the numbers of the selected and of the excluded fields."""
    if not isinstance(defaults, list | tuple):
        raise TypeError(
            described(f"record_defaults must be a list, but got {shortened(defaults)}.", fix=_FIX)
        )
    values = cast("Sequence[Any]", defaults)
    if not values:
        raise InvalidArgumentError("record_defaults is empty.", fix=_FIX)
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
            f"{name} cannot have dtype {name_of(value.dtype)}, the dtype of its default {shortened(default)}.",
            fix=_FIX,
        )
    if value.ndim > 1 or value.size > 1:
        raise InvalidArgumentError(
            f"{name} must have a single default, but got {shortened(default)}.", fix=_FIX
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
        raise ValueError(described(f"A CSV column cannot have dtype {name_of(dtype)}.", fix=_FIX))
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
