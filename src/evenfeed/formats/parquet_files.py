"""Parquet files: each row group is a file of its own to a plan."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, final

from evenfeed.formats.arrow_columns import arrow
from evenfeed.formats.byte_files import written
from evenfeed.formats.chunks import Chunk
from evenfeed.formats.filesystems import is_remote, local, remote
from evenfeed.formats.parquet_footer import GroupTable, groups_in
from evenfeed.formats.table_parts import TablePart, chunk_of, reading_table


@final
@dataclass(frozen=True)
class RowGroup(TablePart):
    """A row group of a Parquet file."""

    read_by: ClassVar[str] = "from_parquet"
    called: ClassVar[str] = "row group"

    def decoded(self) -> Chunk:
        """Read what is wanted of it."""
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
    """A file whose table was read.

    Attributes:
        groups: What the table says of its row groups.
        fragment: The file as pyarrow reads it.
    """

    groups: tuple[GroupTable, ...]
    fragment: Any


@lru_cache(maxsize=16)
def opened_parquet(path: str, written: str) -> OpenedParquet:
    """Return a file whose table is sound; it is read once for many row groups."""
    del written  # a file that was written anew is another one
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
    """Turn what pyarrow says of damaged bytes into a DataLossError that names the file."""
    return reading_table(path, "Parquet", where, offset)
