"""Parquet files: opening them, choosing row groups by filter, and decoding. A plan treats each row group as a file."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.bytes.byte_windows import written
from evenfeed.formats.bytes.filesystems import is_remote, local, remote
from evenfeed.formats.chunks import Chunk
from evenfeed.formats.tables.arrow_columns import arrow
from evenfeed.formats.tables.parquet_footer import GroupTable, groups_in
from evenfeed.formats.tables.table_columns import Choice
from evenfeed.formats.tables.table_parts import (
    RowFilter,
    TablePart,
    Wanted,
    chunk_of,
    reading_table,
)


@final
@dataclass(frozen=True)
class RowGroup(TablePart):
    """A row group of a Parquet file."""

    read_by: ClassVar[str] = "from_parquet"
    called: ClassVar[str] = "row group"

    def decoded(self) -> Chunk:
        wanted = self.wanted
        expression = wanted.filter and wanted.filter.expression
        with reading_parquet(self.path, self.place, self.span[0]):
            opened = opened_parquet(self.path, written(self.path))
            part = opened.fragment.subset(row_group_ids=[self.number])
            table = part.to_table(columns=list(wanted.columns), filter=expression)
        return chunk_of(table.column, table.num_rows, wanted)


@final
@dataclass(frozen=True)
class OpenedParquet:
    """A Parquet file whose footer has been read.

    Attributes:
        groups: The row groups listed in the footer.
        fragment: pyarrow's handle of the file.
    """

    groups: tuple[GroupTable, ...]
    fragment: Any


@lru_cache(maxsize=16)
def opened_parquet(path: str, written: str) -> OpenedParquet:
    """Open a file after checking its footer, which is read once for many row groups."""
    del written  # part of the cache key: a rewritten file is opened again
    groups = groups_in(path)
    dataset, systems = arrow("dataset"), arrow("fs")
    checked = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    form = dataset.ParquetFileFormat(default_fragment_scan_options=checked)
    if is_remote(path):
        found, inner = remote(path)
        system = systems.PyFileSystem(systems.FSSpecHandler(found))
    else:
        system, inner = systems.LocalFileSystem(), local(path)
    return OpenedParquet(groups, form.make_fragment(inner, system))


def reading_parquet(
    path: str, where: str, offset: int | None = None
) -> AbstractContextManager[None]:
    """Convert pyarrow's errors about damaged bytes into a DataLossError that names the file."""
    return reading_table(path, "Parquet", where, offset)


def row_groups(
    paths: Sequence[str], columns: Any, filter_: Any, fill_null: Any
) -> tuple[Any, tuple[RowGroup, ...]]:
    """Return the element spec of the files, and their row groups, without those that the filter rules out."""
    choice = Choice(columns, fill_null, _row_filter(filter_))
    groups: list[RowGroup] = []
    for path in paths:
        with reading_parquet(path, "footer"):
            opened = opened_parquet(path, written(path))
            schema = opened.fragment.physical_schema
            wanted = choice.of(path, schema)
        groups += _groups(path, opened, schema, wanted)
    return choice.specs, tuple(groups)


def _groups(path: str, opened: OpenedParquet, schema: Any, wanted: Wanted) -> list[RowGroup]:
    """Return the row groups that may have matching rows, by their statistics."""
    groups = opened.groups
    firsts = [0, *accumulate(group.rows for group in groups)]
    return [
        RowGroup(path, number, firsts[number], groups[number].rows, groups[number].span, wanted)
        for number in _possible(path, opened, schema, wanted)
        if groups[number].rows
    ]


def _possible(path: str, opened: OpenedParquet, schema: Any, wanted: Wanted) -> Sequence[int]:
    if wanted.filter is None:
        return range(len(opened.groups))
    try:
        left = opened.fragment.split_by_row_group(filter=wanted.filter.expression, schema=schema)
    except arrow().ArrowException as error:
        raise InvalidArgumentError(
            f"The filter {wanted.filter.text} does not match the columns of {path}: {str(error).splitlines()[0]}",
            fix=f"use its columns: {schema.names}.",
        ) from error
    return [part.row_groups[0].id for part in left]


def _row_filter(value: Any) -> RowFilter | None:
    if value is None:
        return None
    expressions = arrow("compute").Expression
    if not isinstance(value, expressions):
        try:
            value = arrow("parquet").filters_to_expression(value)
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"filter is not valid: {shortened(value)} ({error}).",
                fix="pass [('column', '>', 3), ...], or a pyarrow.compute expression.",
            ) from error
    return RowFilter(str(value), value)
