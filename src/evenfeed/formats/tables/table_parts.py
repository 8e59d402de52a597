"""Parts of tables (row groups and record batches), which a plan treats as files. A part is decoded as a whole.

`Choice` checks the `columns` and `fill_null` arguments of table readers against the schemas of the files.
"""

import os
import struct
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, ClassVar, cast, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions, blank
from evenfeed.core.conversion import shortened, to_array
from evenfeed.core.errors import DataLossError, InvalidArgumentError, UnknownError, described
from evenfeed.core.lazy import difflib
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.bytes.byte_windows import written
from evenfeed.formats.bytes.filesystems import naming
from evenfeed.formats.reader import Chunk, DataFile, PartRead, PartsRead, Reader
from evenfeed.formats.tables.arrow_columns import arrow, columns_of, spec_of


@final
@dataclass(frozen=True)
class RowFilter:
    """A filter on rows. Two filters are equal if their texts are."""

    text: str
    expression: Any = field(compare=False, repr=False)


@final
@dataclass(frozen=True)
class Wanted:
    """What to read from a table.

    Attributes:
        columns: The column names, sorted.
        filter: Which rows to read; None for all.
        fills: The values that replace nulls, by column name.
        parts: What to read of each column; empty for all.
    """

    columns: tuple[str, ...]
    filter: RowFilter | None = None
    fills: tuple[tuple[str, Any], ...] = ()
    parts: tuple[tuple[PartRead, ...], ...] = ()

    @property
    def blank(self) -> tuple[str, ...]:
        """The columns that are not read."""
        pairs = zip(self.columns, self.parts, strict=False)
        return tuple(name for name, parts in pairs if all(part.blank for part in parts))

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read."""
        blank = self.blank
        return tuple(name for name in self.columns if name not in blank)


@dataclass(frozen=True)
class TablePart(DataFile):
    """A run of table rows that are decoded together.

    Attributes:
        number: The index of the part in the file.
        first: The index of its first row in the file.
        count: Number of rows, before the filter.
        span: Its byte range in the file.
        wanted: What to read from it.
    """

    # The format's name for such a part.
    called: ClassVar[str] = "part"

    number: int
    first: int
    count: int
    span: tuple[int, int]
    wanted: Wanted

    @property
    def rows(self) -> int | None:
        """The number of rows; None with a filter, which must be applied to count them."""
        return None if self.wanted.filter else self.count

    @property
    def extent(self) -> tuple[int, int]:
        return self.span

    @property
    def fingerprint(self) -> str:
        """The file name without its directory, the place of the rows in it, and what to read."""
        place = (self.number, self.first, self.count, self.span)
        return f"{type(self).__name__} {os.path.basename(self.path)} {place} {self.wanted}"

    @property
    def identity(self) -> str:
        """The fingerprint with the full path and modification time."""
        return f"{self.fingerprint} {self.path} {written(self.path)}"

    @property
    def place(self) -> str:
        """The name of the part in errors."""
        return f"{self.called} {self.number}, at byte {self.span[0]}"

    def named(self, row: int) -> str:
        """Return the row number in the file, or in the part if a filter hides it."""
        if self.wanted.filter:
            return f"{self.called} {self.number}, row {row} after the filter"
        return f"row {self.first + row}"

    def reading(self, parts: PartsRead) -> "TablePart | None":
        """Return the part with some columns left out or cut."""
        wanted = replace(self.wanted, parts=tuple(parts[name] for name in self.wanted.columns))
        return replace(self, wanted=wanted) if wanted.read else None

    @abstractmethod
    def decoded(self) -> Chunk:
        """Read and decode the part.

        Raises:
            Unread: A column that is left out may have nulls.
        """

    def open(self) -> "PartReader":
        """Return a reader, which reads the file at its first row."""
        return PartReader(self)


@final
class PartReader(Reader):
    """Decodes a part on its first read, and keeps it in memory."""

    def __init__(self, part: TablePart) -> None:
        self.path = part.path
        self._part = part
        self._chunk: Chunk | None = None
        self._size = 0  # of the decoded rows, in bytes
        self._damage: DataLossError | None = None

    @property
    def goes_on(self) -> bool:
        """True if the last error was about one row, not the part."""
        return self._chunk is not None

    @property
    def held(self) -> int:
        return 0 if self._chunk is None else self._size

    def decoded(self) -> Block | None:
        chunk = self._whole_part()
        return None if chunk.wrong else chunk.block

    def read(self, start: int, count: int) -> Block | None:
        """Return rows from `start` on, as views of the decoded part."""
        chunk = self._whole_part()
        if start >= chunk.block.length:
            return None
        good = chunk.good(start, count)
        if good is None:
            raise self._error(start, chunk.wrong[start])
        return good

    def fetch(self, positions: Positions) -> Block:
        chunk = self._whole_part()
        if chunk.wrong:
            hit = positions[np.isin(positions, list(chunk.wrong))]
            if len(hit):
                raise self._error(int(hit[0]), chunk.wrong[int(hit[0])])
        return chunk.block.gather(positions)

    def byte_of(self, row: int) -> int | None:  # noqa: ARG002 - rows of a part have no byte offsets of their own
        """Return the byte at which the part starts."""
        return self._part.span[0]

    def behind(self, row: int) -> int:
        """Return the next row, or the end of the part if it cannot be decoded."""
        return row + 1 if self._damage is None else max(row + 1, self._part.count)

    def close(self) -> None:
        """Free the decoded rows."""
        self._chunk = None

    def _whole_part(self) -> Chunk:
        chunk = self._chunk
        if chunk is None:
            if self._damage is not None:  # every row of the part asks for it
                raise self._damage.again()
            try:
                chunk = self._part.decoded()
            except DataLossError as error:
                self._damage = error
                raise
            self._chunk, self._size = chunk, chunk.block.nbytes
        return chunk

    def _error(self, row: int, what: str) -> InvalidArgumentError:
        part = self._part
        return InvalidArgumentError(
            f"{self.path}, {part.named(row)}: {what}.",
            fix="pass fill_null={name: value}, or leave out such rows when writing the file.",
        ).in_file(self.path, part.span[0])


def chunk_of(column: Callable[[str], Any], rows: int, wanted: Wanted) -> Chunk:
    """Return the rows of a part as columns; `column` returns the Arrow array of a name."""
    wrong: dict[int, str] = {}
    columns: list[Column] = []
    fills, blank = dict(wanted.fills), wanted.blank
    for name, parts in zip(wanted.columns, wanted.parts or repeat(()), strict=False):
        if name in blank:
            columns += [_blank(part.blank, rows) for part in parts if part.blank]
            continue
        found = columns_of(
            column(name),
            name,
            fills,
            lambda rows, what: wrong.update(dict.fromkeys(rows.tolist(), what)),
        )
        columns += (
            [part.of(one) for part, one in zip(parts, found, strict=True)] if parts else found
        )
    return Chunk(Block(tuple(columns), rows), dict(sorted(wrong.items())))


def _blank(spec: TensorSpec, rows: int) -> Column:
    """Return rows of zeros or empty text, which take no memory."""
    shape = tuple(length or 0 for length in spec.shape)
    return np.broadcast_to(blank((), spec.dtype), (rows, *shape))


@contextmanager
def reading_table(path: str, kind: str, where: str, offset: int | None = None) -> Generator[None]:
    """Convert pyarrow's errors about damaged bytes into a DataLossError that names the file and byte."""
    try:
        with naming(path):
            yield
    except (arrow().ArrowException, UnknownError, UnicodeDecodeError, struct.error) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise DataLossError(
            f"{path} is damaged, or not a valid {kind} file ({where}): {reason}",
            fix="write the file again, or skip damaged parts with dataset.ignore_errors().",
        ).in_file(path, offset) from error


@final
class Choice:
    """The columns to read from several files. The first file defines their types; the others must match.

    Attributes:
        specs: The spec of each column by name, in the requested order.
    """

    def __init__(self, columns: Any, fill_null: Any, row_filter: RowFilter | None = None) -> None:
        self._columns = columns
        self._fill_null = fill_null
        self._filter = row_filter
        self._first: tuple[str, Any, Wanted] | None = None
        self.specs: dict[str, Any] = {}

    def of(self, path: str, schema: Any) -> Wanted:
        """Return what to read from a file with this schema."""
        if self._first is None:
            names = _names(self._columns, path, schema)
            self.specs = {name: _spec_in(path, schema, name) for name in names}
            fills = _checked_fills(self._fill_null, self.specs, path)
            wanted = Wanted(tuple(sorted(self.specs)), self._filter, fills)
            self._first = path, schema, wanted
        else:
            first_path, first, wanted = self._first
            _check_alike(path, schema, first_path, first, wanted.columns)
        return wanted


def _names(columns: Any, path: str, schema: Any) -> list[str]:
    if columns is None:
        columns = list(schema.names)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(
            described(
                f"columns must be a list of names, but got {shortened(columns)}.",
                fix="pass columns=['name', ...], or None for all.",
            )
        )
    names = list(cast("Sequence[str]", columns))
    for name in names:
        if name not in schema.names:
            raise _no_column(path, name, schema.names)
        if schema.names.count(name) > 1:
            raise InvalidArgumentError(
                f"{path} has more than one column {name!r}.", fix="leave it out with columns=[...]."
            ).in_file(path)
    return names


def _spec_in(path: str, schema: Any, name: str) -> Any:
    try:
        return spec_of(schema.field(name).type, name)
    except InvalidArgumentError as error:
        what = f"{path} cannot be read: {error.message}"
        raise InvalidArgumentError(what, fix=error.fix).in_file(path) from error


def _no_column(path: str, name: Any, names: list[str]) -> InvalidArgumentError:
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InvalidArgumentError(
        f"{path} has no column {name!r}.", fix=f"{hint}its columns are {names}."
    ).in_file(path)


def _check_alike(
    path: str, schema: Any, first_path: str, first: Any, names: tuple[str, ...]
) -> None:
    if schema.equals(first):
        return
    for name in names:
        if name not in schema.names:
            raise _no_column(path, name, schema.names)
        one, other = first.field(name).type, schema.field(name).type
        if _spec_in(first_path, first, name) != _spec_in(path, schema, name):
            raise InvalidArgumentError(
                f"Column {name!r} has type {other} in {path}, but {one} in {first_path}.",
                fix="pass files whose columns have the same types.",
            ).in_file(path)


def _checked_fills(fill_null: Any, specs: dict[str, Any], path: str) -> tuple[tuple[str, Any], ...]:
    fills = tuple(sorted(dict(fill_null).items())) if fill_null is not None else ()
    for name, value in fills:
        spec = _spec_at(specs, name.split("."))
        if not isinstance(spec, TensorSpec):
            raise _no_column(path, name, list(specs))
        try:
            fits = not spec.shape.rank and to_array(value, spec.dtype).ndim == 0
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidArgumentError(
                f"fill_null has {value!r} for column {name!r}, whose spec is {spec}.",
                fix="pass a scalar of the column's dtype; nulls in lists cannot be filled.",
            )
    return fills


def _spec_at(specs: Any, names: list[str]) -> Any:
    for name in names:
        specs = cast("dict[str, Any]", specs).get(name) if isinstance(specs, dict) else None
    return specs
