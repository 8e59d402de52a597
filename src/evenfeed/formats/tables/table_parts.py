"""Parts of tables, each of which is a file of its own to a plan: its rows are decoded at once."""

import os
import struct
from abc import abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions
from evenfeed.core.errors import DataLossError, InvalidArgumentError, UnknownError
from evenfeed.formats.bytes.byte_windows import written
from evenfeed.formats.bytes.filesystems import naming
from evenfeed.formats.chunks import Chunk
from evenfeed.formats.reader import DataFile, Reader
from evenfeed.formats.tables.arrow_columns import arrow, columns_of


@final
@dataclass(frozen=True)
class RowFilter:
    """Which rows are wanted. Two are equal if they are written alike."""

    text: str
    expression: Any = field(compare=False, repr=False)


@final
@dataclass(frozen=True)
class Wanted:
    """What is wanted of a table.

    Attributes:
        columns: The names of columns, sorted.
        filter: Which rows; all where it is None.
        fills: What stands for nulls, by the names of columns.
    """

    columns: tuple[str, ...]
    filter: RowFilter | None = None
    fills: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class TablePart(DataFile):
    """Some rows of a table that are read at once.

    Attributes:
        number: Which part of the file.
        first: Which row of the file is its first.
        count: How many rows it has, before a filter.
        span: Which bytes of the file it stands in.
        wanted: What is wanted of it.
    """

    # What the format calls such a part.
    called: ClassVar[str] = "part"

    number: int
    first: int
    count: int
    span: tuple[int, int]
    wanted: Wanted

    @property
    def rows(self) -> int | None:
        """How many rows it has; None where only reading tells which are wanted."""
        return None if self.wanted.filter else self.count

    @property
    def extent(self) -> tuple[int, int]:
        """The bytes that it stands in."""
        return self.span

    @property
    def fingerprint(self) -> str:
        """The name of the file, not its folder, where the rows are in it, and what is wanted of them."""
        place = (self.number, self.first, self.count, self.span)
        return f"{type(self).__name__} {os.path.basename(self.path)} {place} {self.wanted}"

    @property
    def identity(self) -> str:
        """The same with the whole path, and when the file was last written."""
        return f"{self.fingerprint} {self.path} {written(self.path)}"

    @property
    def place(self) -> str:
        """What errors call it."""
        return f"{self.called} {self.number}, at byte {self.span[0]}"

    def named(self, row: int) -> str:
        """Return which row of the file it is, as far as that is known."""
        if self.wanted.filter:
            return f"{self.called} {self.number}, row {row} of those that the filter leaves"
        return f"row {self.first + row}"

    @abstractmethod
    def decoded(self) -> Chunk:
        """Read and decode it."""

    def open(self) -> "PartReader":
        """Open it; it is read at the first row, in truth."""
        return PartReader(self)


@final
class PartReader(Reader):
    """Decodes a part when its first row is asked for, and holds it."""

    def __init__(self, part: TablePart) -> None:
        self.path = part.path
        self._part = part
        self._chunk: Chunk | None = None
        self._damage: DataLossError | None = None

    @property
    def goes_on(self) -> bool:
        """Whether one row was wrong, and not the part."""
        return self._chunk is not None

    @property
    def held(self) -> int:
        """How many bytes of decoded rows it holds."""
        chunk = self._chunk
        return 0 if chunk is None else chunk.block.nbytes

    def read(self, start: int, count: int) -> Block | None:
        """Return rows from `start` on, as views."""
        chunk = self._decoded()
        if start >= chunk.block.length:
            return None
        good = chunk.good(start, count)
        if good is None:
            raise self._error(start, chunk.wrong[start])
        return good

    def fetch(self, positions: Positions) -> Block:
        """Return the rows at `positions`, in that order."""
        chunk = self._decoded()
        if chunk.wrong:
            hit = positions[np.isin(positions, list(chunk.wrong))]
            if len(hit):
                raise self._error(int(hit[0]), chunk.wrong[int(hit[0])])
        return chunk.block.gather(positions)

    def byte_of(self, row: int) -> int | None:  # noqa: ARG002 - rows of a part have no bytes of their own
        """Return the byte at which the part begins."""
        return self._part.span[0]

    def behind(self, row: int) -> int:
        """Return the row behind the last, where the part cannot be decoded."""
        return row + 1 if self._damage is None else max(row + 1, self._part.count)

    def close(self) -> None:
        """Free the rows."""
        self._chunk = None

    def _decoded(self) -> Chunk:
        chunk = self._chunk
        if chunk is None:
            if self._damage is not None:  # it is asked for once for each row
                raise self._damage.again()
            try:
                chunk = self._part.decoded()
            except DataLossError as error:
                self._damage = error
                raise
            self._chunk = chunk
        return chunk

    def _error(self, row: int, what: str) -> InvalidArgumentError:
        part = self._part
        return InvalidArgumentError(
            f"{self.path}, {part.named(row)}: {what}.",
            fix="pass fill_null={name: value}, or leave such rows out when the file is written.",
        ).in_file(self.path, part.span[0])


def chunk_of(column: Callable[[str], Any], rows: int, wanted: Wanted) -> Chunk:
    """Return the rows of a part as columns; `column` returns Arrow's array of a name."""
    wrong: dict[int, str] = {}
    columns: list[Column] = []
    fills = dict(wanted.fills)
    for name in wanted.columns:
        columns += columns_of(
            column(name),
            name,
            fills,
            lambda rows, what: wrong.update(dict.fromkeys(rows.tolist(), what)),
        )
    return Chunk(Block(tuple(columns), rows), dict(sorted(wrong.items())))


@contextmanager
def reading_table(path: str, kind: str, where: str, offset: int | None = None) -> Generator[None]:
    """Turn what pyarrow says of damaged bytes into a DataLossError that names the file and the byte."""
    try:
        with naming(path):
            yield
    except (arrow().ArrowException, UnknownError, UnicodeDecodeError, struct.error) as error:
        said = str(error.__cause__ or error).splitlines()[0]
        raise DataLossError(
            f"{path} is damaged, or no {kind} file ({where}): {said}",
            fix="write it anew; dataset.ignore_errors() reads what is whole.",
        ).in_file(path, offset) from error
