"""Parquet files: each row group is a file of its own to a plan."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions
from evenfeed.core.errors import DataLossError, InvalidArgumentError, UnknownError
from evenfeed.formats.arrow_columns import arrow, columns_of
from evenfeed.formats.byte_files import written
from evenfeed.formats.chunks import Chunk
from evenfeed.formats.filesystems import is_remote, local, naming, open_file, remote
from evenfeed.formats.reader import DataFile, Reader


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


@final
@dataclass(frozen=True)
class RowGroup(DataFile):
    """A row group of a Parquet file: its rows are read at once."""

    read_by: ClassVar[str] = "from_parquet"

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
        """From the first byte of its first column to the last of its last."""
        return self.span

    @property
    def fingerprint(self) -> str:
        """The name of the file, not its folder, where the rows are in it, and what is wanted of them."""
        place = (self.number, self.first, self.count, self.span)
        return f"RowGroup {os.path.basename(self.path)} {place} {self.wanted}"

    @property
    def identity(self) -> str:
        """The same with the whole path, and when the file was last written."""
        return f"{self.fingerprint} {self.path} {written(self.path)}"

    def open(self) -> "GroupReader":
        """Open it; it is read at the first row, in truth."""
        return GroupReader(self)


@final
class GroupReader(Reader):
    """Decodes a row group when its first row is asked for, and holds it."""

    def __init__(self, group: RowGroup) -> None:
        self.path = group.path
        self._group = group
        self._chunk: Chunk | None = None
        self._damage: DataLossError | None = None

    @property
    def goes_on(self) -> bool:
        """Whether one row was wrong, and not the row group."""
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

    def close(self) -> None:
        """Free the rows."""
        self._chunk = None

    def _decoded(self) -> Chunk:
        chunk = self._chunk
        if chunk is None:
            if self._damage is not None:  # it is asked for once for each row
                raise DataLossError(self._damage.message, fix=self._damage.fix)
            try:
                chunk = _decoded(self._group)
            except DataLossError as error:
                self._damage = error
                raise
            self._chunk = chunk
        return chunk

    def _error(self, row: int, what: str) -> InvalidArgumentError:
        group = self._group
        place = (
            f"row group {group.number}, row {row} of those that the filter leaves"
            if group.wanted.filter
            else f"row {group.first + row}"
        )
        return InvalidArgumentError(
            f"{self.path}, {place}: {what}.",
            fix="pass fill_null={name: value}, or a filter without such rows.",
        ).in_file(self.path)


def _decoded(group: RowGroup) -> Chunk:
    wanted = group.wanted
    expression = wanted.filter and wanted.filter.expression
    with reading_parquet(group.path, f"row group {group.number}, at byte {group.span[0]}"):
        part = fragment_of(group.path, written(group.path)).subset(row_group_ids=[group.number])
        table = part.to_table(columns=list(wanted.columns), filter=expression)
    wrong: dict[int, str] = {}
    columns: list[Column] = []
    fills = dict(wanted.fills)
    for name in wanted.columns:
        columns += columns_of(
            table.column(name),
            name,
            fills,
            lambda rows, what: wrong.update(dict.fromkeys(rows.tolist(), what)),
        )
    return Chunk(Block(tuple(columns), table.num_rows), dict(sorted(wrong.items())))


@lru_cache(maxsize=16)
def fragment_of(path: str, written: str) -> Any:
    """Return a file as pyarrow reads it; the table at its end is read once for many row groups."""
    del written  # a file that was written anew is another one
    open_file(path).close()  # says in TensorFlow's words that it is not there
    dataset, systems = arrow("dataset"), arrow("fs")
    checked = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    form = dataset.ParquetFileFormat(default_fragment_scan_options=checked)
    if is_remote(path):
        found, inner = remote(path)
        system = systems.PyFileSystem(systems.FSSpecHandler(found))
    else:
        system, inner = systems.LocalFileSystem(), local(path)
    return form.make_fragment(inner, system)


@contextmanager
def reading_parquet(path: str, where: str) -> Generator[None]:
    """Turn what pyarrow says of damaged bytes into a DataLossError that names the file."""
    try:
        with naming(path):
            yield
    except (arrow().ArrowException, UnknownError) as error:
        said = str(error.__cause__ or error).splitlines()[0]
        raise DataLossError(
            f"{path} is damaged, or no Parquet file ({where}): {said}",
            fix="write it anew; dataset.ignore_errors() reads what is whole.",
        ) from error
