r"""Splits CSV text into records and fields, by TensorFlow's rules.

A field that starts with a quote ends at a quote before a delimiter or line ending, and may contain both. Records end
with `\n`, `\r\n` or `\r`. An empty line is a record with one empty field.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from evenfeed.core.block import Positions
from evenfeed.formats.text_lines import behind_lines

QUOTE: Final = b'"'
OPEN: Final = "a quote is not closed before the end of the file"
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
        ends: The delimiter or line ending after each field; None only if each line is one record without quotes.
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
        # One match per field. An unfinished field at the end of the text is the last match, so that any
        # text is scanned only once.
        self._token = re.compile(
            rb"(?s)((?:%b%b|)(?=[%b])|.+)(%b|\r\n?|\n|\Z)"
            % (in_quotes, plain, stop, re.escape(delimiter))
        )

    def cut(self, text: bytes, *, is_last: bool) -> tuple[Records, bytes]:
        r"""Return the complete records at the start of a text, and the rest of the text.

        Args:
            text: Bytes that start with a record. A `\r` at the end counts as a line ending.
            is_last: Whether the file ends after them.
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
        """Split records without quotes that all have the same number of fields, at once; None for others."""
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
            if QUOTE in field:
                inner = field[1:-1].replace(b'""', b"") if field.startswith(QUOTE) else field
                if QUOTE in inner:
                    wrong[place] = _DOUBLED if field.startswith(QUOTE) else _INSIDE
                out[place] = field[1:-1].replace(b'""', QUOTE)
        return out, wrong
