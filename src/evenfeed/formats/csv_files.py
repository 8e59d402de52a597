"""Reading CSV files: `tf.data.experimental.CsvDataset` and `make_csv_dataset`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.bytes.byte_windows import UncountedFile
from evenfeed.formats.bytes.inflating import open_bytes
from evenfeed.formats.bytes.small_files import contents_of
from evenfeed.formats.csv_fields import OPEN, QUOTE, CsvColumn, Cutter, Records, has_whole_quotes
from evenfeed.formats.reader import Chunk, RowReader, Together
from evenfeed.formats.tables import arrow_text
from evenfeed.formats.text_lines import GZIP_MAGIC, LONGEST, endless

# The first read is short, so that the first row arrives soon; longer reads cost less per row.
_FIRST_READ: Final = 1 << 15
_LONGEST_READ: Final = 1 << 18
_LONGEST_TABLE: Final = 1 << 21  # if pyarrow parses the text, in parallel


@final
@dataclass(frozen=True)
class CsvLayout:
    """The dialect of CSV files, and the columns to read.

    Attributes:
        columns: The columns to read, in output order.
        kept: For each column, its index among the kept fields.
        select: The numbers of the fields to keep; empty for all.
        exclude: The numbers of the fields to drop.
        delimiter: The byte between two fields.
        quoted: Whether fields may be quoted.
        na_value: A value that counts as an empty field.
        header: Whether the first record is a header.
    """

    columns: tuple[CsvColumn, ...]
    kept: tuple[int, ...]
    select: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    delimiter: bytes = b","
    quoted: bool = True
    na_value: bytes = b""
    header: bool = False

    def places(self, width: int) -> list[int]:
        """Return the field index of each column, given the number of fields; raise ValueError if it is wrong."""
        if self.select:
            if width <= self.select[-1]:
                raise ValueError(
                    f"field {self.select[-1]} is selected, but the last field is {width - 1}"
                )
            kept = list(self.select)
        else:
            kept = [place for place in range(width) if place not in self.exclude]
        if len(kept) != len(self.columns):
            raise ValueError(f"expected {len(self.columns)} fields, but found {len(kept)}")
        return [kept[place] for place in self.kept]


@final
@dataclass(frozen=True)
class CsvFile(UncountedFile):
    """A CSV file, its dialect and the columns to read."""

    read_by: ClassVar[str] = "CsvDataset"

    layout: CsvLayout = CsvLayout((), ())

    @property
    def _kind(self) -> str:
        return f"{super()._kind} {self.layout}"

    @classmethod
    def read_together(cls, files: Sequence["CsvFile"]) -> Together | None:
        layout = files[0].layout
        alike = list(takewhile(lambda file: file.layout == layout, files))
        bodies: list[bytes] = []
        for text in contents_of(alike):
            body = _body(text, layout)
            if body is None:
                break
            bodies.append(body)
        while bodies:
            block = _rows_of(b"".join(bodies), layout)
            if block is not None:
                ends = np.cumsum([body.count(b"\n") for body in bodies])
                return Together(block, ends)
            bodies = bodies[
                : len(bodies) // 2
            ]  # a record of the first that is left out may be wrong
        return None

    def open(self) -> "CsvReader":
        """Open the file for one iterator: the reader has a position."""
        return CsvReader(self)


def table_of(
    text: bytes, layout: CsvLayout, width: int, places: list[int]
) -> list[Array | Texts] | None:
    """Return the columns of records, as pyarrow reads them; None if they are empty in places, or wrong."""
    if len(set(places)) < len(places):
        return None
    wanted = [(place, column.dtype) for place, column in zip(places, layout.columns, strict=True)]
    arrays = arrow_text.csv_columns(
        text, layout.delimiter, width, wanted, layout.na_value, quoted=layout.quoted
    )
    if arrays is None:
        return None
    found: list[Array | Texts] = []
    for column, array in zip(layout.columns, arrays, strict=True):
        values = column.of_arrow(array)
        if values is None:
            return None
        found.append(values)
    return found


def _body(text: bytes, layout: CsvLayout) -> bytes | None:
    r"""Return the records of a file behind its header, each with a `\n`; None if they are not plainly lines."""
    text = text.replace(b"\r\n", b"\n")
    if b"\r" in text or text.startswith(GZIP_MAGIC) or (layout.quoted and QUOTE in text):
        return None
    if not text.endswith(b"\n"):
        text += b"\n"
    return text[text.find(b"\n") + 1 :] if layout.header else text


def _rows_of(text: bytes, layout: CsvLayout) -> Block | None:
    """Return the rows of lines without quotes; None if a record is wrong."""
    records, _ = Cutter(layout.delimiter, quoted=False).cut(text, is_last=True)
    if not records.count or records.width is None:
        return None
    try:
        places = layout.places(records.width)
    except ValueError:
        return None
    if arrow_text.is_worth_it(len(text)):
        table = table_of(text, layout, records.width, places)
        if table is not None:
            return Block(tuple(table), records.count)
    columns: list[Array] = []
    for column, place in zip(layout.columns, places, strict=True):
        values, wrong = column.values(records.fields[place :: records.width], layout.na_value)
        if wrong:
            return None
        columns.append(values)
    return Block(tuple(columns), records.count)


@final
class CsvReader(RowReader):
    """Reads the records of a CSV file. A bad record raises, and reading can continue after it."""

    def __init__(self, file: CsvFile, first_read: int = _FIRST_READ) -> None:
        super().__init__(file.path)
        self._compression = file.compression
        self._layout = file.layout
        self._table: list[Array | Texts] | None = None  # the chunk, if pyarrow parsed it
        self._cutter = Cutter(file.layout.delimiter, quoted=file.layout.quoted)
        self._next_read = first_read
        self._bytes = open_bytes(file.path, file.compression)
        self._reset(0, 0)

    def mark(self) -> Any:
        """Return the byte, row and line at which the chunk starts; None for compressed files, which cannot seek."""
        return None if self._compression else [self._start, self._first, self._line]

    def seek(self, mark: Any) -> None:
        """Go to the start of a record."""
        if mark is not None:
            byte, row, line = mark
            self._reopen(byte, line)
            self._start_at(row)

    def _rewind(self) -> None:
        self._reopen(0, 0)

    def _reopen(self, byte: int, line: int) -> None:
        self._bytes.close()
        self._bytes = open_bytes(self.path, self._compression, byte)
        self._reset(byte, line)

    def _reset(self, byte: int, line: int) -> None:
        self._rest = b""  # the start of a record whose end is not read yet
        self._start = self._stop = byte  # the first byte of the chunk, and the byte after it
        self._line = self._next_line = line  # the first line of the chunk, and the line after it
        self._skipped = 0  # records of the chunk that are not rows: the header
        self._records = Records(b"", [], np.zeros(0, np.int64))

    def _next(self) -> Chunk | None:
        is_first = self._stop == 0 and self._layout.header
        self._table = None
        records = self._whole_records(is_first=is_first)
        if not records.count:
            if is_first:
                raise self._missing_header()
            return None
        self._records = records
        if self._table is not None:
            self._skipped = int(is_first)
            return Chunk(Block(tuple(self._table), len(self._table[0])))
        fields, wrong = self._fields()
        self._skipped = int(is_first and 0 not in wrong)
        return self._parsed(fields, wrong)

    def records(self) -> Iterator[Sequence[bytes]]:
        """Yield the fields of all remaining records, including the header."""
        while (found := self._whole_records()).count:
            self._records = found
            fields, wrong = self._fields()
            for number in range(found.count):
                if number in wrong:
                    raise self._error(number, wrong[number])
                start, stop = found.span(number)
                yield fields[start:stop]

    def _whole_records(self, *, is_first: bool = False) -> Records:
        """Return the next complete records; zero at the end of the file."""
        text, is_last, records = self._rest, False, self._records
        while not is_last:
            more = self._more()
            text, is_last = text + more, not more
            found = self._by_arrow(text, is_first=is_first)
            if found is not None:
                records, self._rest = found
                break
            records, self._rest = self._cutter.cut(text, is_last=is_last)
            if records.count:
                break
            if len(text) > LONGEST:
                raise endless(self.path, "record", self._stop)
            self._next_read *= 2  # the record is longer than the read, perhaps much longer
        longest = _LONGEST_READ if self._table is None else _LONGEST_TABLE
        self._next_read = min(2 * self._next_read, longest)
        self._start, self._stop = self._stop, self._stop + len(text) - len(self._rest)
        self._line, self._next_line = self._next_line, self._next_line + records.lines
        return records

    def _by_arrow(self, text: bytes, *, is_first: bool) -> tuple[Records, bytes] | None:
        """Parse complete records at once, into `_table`; None if they need TensorFlow's rules, or have an error.

        Returns the records, without their fields, and the rest of the text.
        """
        if not arrow_text.is_worth_it(len(text)):
            return None
        end = text.rfind(b"\n") + 1
        original = text[:end]
        plain = original.replace(b"\r\n", b"\n") if b"\r" in original else original
        if b"\r" in plain:  # a lone one ends a record, and may end the header
            return None
        body = plain[plain.find(b"\n") + 1 :] if is_first else plain
        has_quotes = self._layout.quoted and QUOTE in plain
        if not body or (has_quotes and not has_whole_quotes(plain, self._layout.delimiter)):
            return None
        width = len(self._cutter.cut(body[: body.find(b"\n") + 1], is_last=True)[0].fields)
        try:
            places = self._layout.places(width)
        except ValueError:
            return None
        self._table = table_of(body, self._layout, width, places)
        if self._table is None:
            return None
        count = len(self._table[0]) + is_first
        return Records(original, [], width * np.arange(1, count + 1)), text[end:]

    def _more(self) -> bytes:
        r"""Return more bytes, never ending between a `\r` and its `\n`."""
        more = last = self._bytes.read(self._next_read)
        while last.endswith(b"\r"):
            last = self._bytes.read(1)
            more += last
        return more

    def _fields(self) -> tuple[Sequence[bytes], dict[int, str]]:
        """Return the fields without quotes, and the errors by record."""
        records = self._records
        if records.ends is None:
            return records.fields, {}
        fields, wrong = self._cutter.unquoted(records.fields)
        numbers = np.searchsorted(records.stops, list(wrong), "right").tolist()
        # Reversed, so that the first error of each record wins.
        by_record = dict(reversed([*zip(numbers, wrong.values(), strict=True)]))
        return fields, by_record | ({records.count - 1: OPEN} if records.is_open else {})

    def _parsed(self, fields: Sequence[bytes], wrong: dict[int, str]) -> Chunk:
        first, count = self._skipped, self._records.count - self._skipped
        wrong = {record - first: what for record, what in wrong.items()}
        values: list[Any] = []
        for column, texts in zip(self._layout.columns, self._columns(fields, wrong), strict=True):
            found, unfit = column.values(texts, self._layout.na_value)
            values.append(found)
            wrong = unfit | wrong
        return Chunk(Block(tuple(values), count), dict(sorted(wrong.items())))

    def _columns(self, fields: Sequence[bytes], wrong: dict[int, str]) -> list[Sequence[bytes]]:
        """Return the fields of each column; add records without these fields to `wrong`."""
        width = self._records.width
        if width is not None:
            try:
                places = self._layout.places(width)
            except ValueError:
                pass  # reported for each record below
            else:
                return [fields[self._skipped * width + place :: width] for place in places]
        rows = [self._row(fields, row, wrong) for row in range(self._records.count - self._skipped)]
        return [list(column) for column in zip(*rows, strict=True)] or [[]] * len(
            self._layout.columns
        )

    def _row(self, fields: Sequence[bytes], row: int, wrong: dict[int, str]) -> list[bytes]:
        start, stop = self._records.span(row + self._skipped)
        try:
            return [fields[start + place] for place in self._layout.places(stop - start)]
        except ValueError as error:
            wrong.setdefault(row, str(error))
            return [b""] * len(self._layout.columns)

    def _error(self, row: int, what: str) -> InvalidArgumentError:
        line = self._line + self._records.line(row + self._skipped) + 1
        return InvalidArgumentError(
            f"{self.path}, line {line}: {what}.",
            fix="correct the line, or skip bad rows with dataset.ignore_errors().",
        ).in_file(self.path, self._byte(row))

    def _byte(self, row: int) -> int | None:
        return self._start + self._records.byte(row + self._skipped)

    def _missing_header(self) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{self.path} is empty, but should start with a header.",
            fix="pass header=False, or leave the file out.",
        ).in_file(self.path, 0)

    def close(self) -> None:
        self._bytes.close()
