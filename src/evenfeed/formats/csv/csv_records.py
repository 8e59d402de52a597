r"""Cuts bytes into the records of a CSV file, and these into fields, by the rules of TensorFlow.

A field that begins with a quote ends at a quote before a delimiter or the end of a line, and may hold
both. Records end at `\n`, `\r\n` or `\r`; an empty line is a record of one empty field.
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
OPEN: Final = "a quote is opened, and not closed up to the end of the file"
_INSIDE: Final = "a field that begins without a quote has one inside"
_DOUBLED: Final = 'a quote inside a quoted field must be written twice, as ""'


@final
@dataclass(frozen=True)
class Records:
    """Some whole records of a file.

    Attributes:
        text: The bytes they are made of, and perhaps more behind them.
        fields: The fields of all, one record after the other, quotes included.
        stops: For each record, the index behind its last field.
        ends: What stands behind each field; None where all is one byte long.
        is_open: Whether the last record is only the beginning of one, whose quote is never closed.
    """

    text: bytes
    fields: list[bytes]
    stops: Positions
    ends: list[bytes] | None = None
    is_open: bool = False

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.stops)

    @cached_property
    def width(self) -> int | None:
        """How many fields each has; None where they differ."""
        first = int(self.stops[0]) if self.count else 0
        even = first * self.count == len(self.fields) and not np.any(np.diff(self.stops) != first)
        return first if even else None

    def span(self, number: int) -> tuple[int, int]:
        """Return the index of the first field of a record, and the one behind its last."""
        return int(self.stops[number - 1]) if number else 0, int(self.stops[number])

    def line(self, number: int) -> int:
        """Return how many lines come before a record."""
        return number if self.ends is None else len(self.text[: self.byte(number)].splitlines())

    def byte(self, number: int) -> int:
        """Return how many bytes come before a record."""
        if self.ends is None:
            return behind_lines(self.text, number)
        fields = int(self.stops[number - 1]) if number else 0
        return sum(map(len, self.fields[:fields])) + sum(map(len, self.ends[:fields]))

    @property
    def lines(self) -> int:
        """How many lines all records take."""
        return self.line(self.count)


@final
class Cutter:
    """Cuts text into records.

    Args:
        delimiter: The byte between two fields.
        quoted: Whether quotes mean anything.
    """

    def __init__(self, delimiter: bytes, *, quoted: bool) -> None:
        self._delimiter = delimiter
        self._quoted = quoted
        stop = re.escape(delimiter) + rb"\r\n"
        plain = rb'[^"%b][^%b]*+' % (stop, stop) if quoted else rb"[^%b]++" % stop
        in_quotes = rb'"[^"]*+(?:"[^%b][^"]*+)*+"|' % stop if quoted else b""
        # One match for each field. What is not finished at the end of the text is the last match, so
        # that the text is passed over once, whatever stands in it.
        self._token = re.compile(
            rb"(?s)((?:%b%b|)(?=[%b])|.+)(%b|\r\n?|\n|\Z)"
            % (in_quotes, plain, stop, re.escape(delimiter))
        )

    def cut(self, text: bytes, *, is_last: bool) -> tuple[Records, bytes]:
        r"""Return the whole records at the beginning of a text, and the rest of it.

        Args:
            text: Bytes from the beginning of a record on. A `\r` at their end counts as the end of a record.
            is_last: Whether the file ends behind them.
        """
        if is_last and text and not text.endswith((b"\n", b"\r")):
            text += b"\n"
        end = text.rfind(b"\n") + 1
        is_cut_there = end == len(text) if is_last else end > 0
        if is_cut_there and not (self._quoted and QUOTE in text):
            even = self._even(text[:end])
            if even is not None:
                return even, text[end:]
        return self._any(text, is_last=is_last)

    def _even(self, original: bytes) -> Records | None:
        """Return records that have one number of fields each and no quotes, at a stroke; None for others."""
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
        del fields[-1]  # behind the last record
        return Records(original, fields, stops)

    def _any(self, text: bytes, *, is_last: bool) -> tuple[Records, bytes]:
        parts = self._token.split(text)  # nothing, a field, its end, nothing, a field, its end, …
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
        """Return fields without their quotes, and what is wrong with some, by their places."""
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
