"""Parquet files: each row group is a file of its own to a plan."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, final

from evenfeed.formats.arrow_columns import arrow
from evenfeed.formats.byte_files import written
from evenfeed.formats.chunks import Chunk
from evenfeed.formats.filesystems import is_remote, local, open_file, remote
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
            part = fragment_of(self.path, written(self.path)).subset(row_group_ids=[self.number])
            table = part.to_table(columns=list(wanted.columns), filter=expression)
        return chunk_of(table.column, table.num_rows, wanted)


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


def reading_parquet(
    path: str, where: str, offset: int | None = None
) -> AbstractContextManager[None]:
    """Turn what pyarrow says of damaged bytes into a DataLossError that names the file."""
    return reading_table(path, "Parquet", where, offset)
