"""The rows of files by position."""

from collections.abc import Collection, Sequence
from threading import RLock
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated, fetched_apart
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.formats.reader import DataFile, PartRead, PartsRead, Reader
from evenfeed.runtime.operator import FailedRow
from evenfeed.runtime.positions.rows import Rows
from evenfeed.runtime.positions.small_parts import SmallParts
from evenfeed.runtime.provenance import RowOrigin

# Decoded rows are kept for later reads, up to this many bytes.
_MOST_HELD: Final = 1 << 30


@final
class FileRows(Rows):
    """The rows of files with known row counts, one file after the other.

    All rounds of a repeat share them, and all places of the plan with the same files, which threads may read.
    """

    def __init__(self, files: Sequence[DataFile], counts: Sequence[int], spec: Any = None) -> None:
        self._files = files
        self._counts = counts
        self._spec = spec
        self._readers: dict[int, Reader] = {}
        self._lost: dict[int, DataLossError] = {}  # the errors of damaged files, by index
        self._sizes: dict[
            int, int
        ] = {}  # the bytes that readers hold, if any, least recently used first
        self._held = 0  # their sum
        self._ends = np.cumsum(counts, dtype=np.int64)
        self._starts = np.append(0, self._ends)
        self.size = int(self._starts[-1])
        self._small = SmallParts(len(files))
        self._partly: dict[frozenset[int], FileRows | None] = {}
        self._lock = RLock()
        self._identities = _identities(files)

    def has(self, counts: Sequence[int]) -> bool:
        """Return True if the files have these numbers of rows, and were not written again since."""
        return list(self._counts) == list(counts) and self._identities == _identities(self._files)

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for reader in self._readers.values():
                reader.close()
            for rows in self._partly.values():
                if rows is not None:
                    rows.close()

    def fetch(self, positions: Positions) -> Block:
        with self._lock:
            return self._gathered(positions)

    def run(self, start: int, count: int) -> Block:
        """Return `count` rows from `start` on; views if they are contiguous in one file."""
        with self._lock:
            return self._run(start, count)

    def _gathered(self, positions: Positions) -> Block:
        if len(self._files) == 1:
            return self._fetched(0, positions)
        files = np.searchsorted(self._ends, positions, "right")
        within = positions - self._starts[files]
        self._keep_small(self._small.missing(files))
        if self._small.holds(files):
            return self._small.gather(files, within)
        return fetched_apart(files, within, self._fetched)

    def _keep_small(self, files: Positions) -> None:
        """Keep the rows of small files together. Files that cannot be read raise later, at their rows."""
        found: dict[int, Block] = {}
        for file in files.tolist():
            try:
                block = self._decoded(file)
            except (EvenfeedError, OSError):
                block = None
            if block is None:
                self._small.refuse(file)
            else:
                found[file] = block
        if found:
            self._small.add(found)

    def _decoded(self, file: int) -> Block | None:
        """Return all rows of a file, if it is small and its reader decodes all of them anyway."""
        first, stop = self._files[file].extent
        if not self._small.has_room(stop - first):
            return None
        reader = self._reader(file)
        block = reader.decoded()
        if block is None or not self._small.has_room(reader.held):
            self._count_held(file)
            return None
        self._small.reserve(reader.held)
        reader.close()  # it still knows where rows are
        return block

    def _fetched(self, file: int, rows: Positions) -> Block:
        if self._small.holds(np.array([file])):
            return self._small.gather(np.full(len(rows), file), rows)
        try:
            block = self._reader(file).fetch(rows)
        except (EvenfeedError, OSError) as error:
            raise _damaged(error, self._files[file]) from error
        self._count_held(file)
        return block

    def _run(self, start: int, count: int) -> Block:
        blocks: list[Block] = []
        while count > 0:
            file = int(np.searchsorted(self._ends, start, "right"))
            first = start - int(self._starts[file])
            some = min(count, int(self._ends[file]) - start)
            blocks.append(self._small.run(file, first, some) or self._whole(file, first, some))
            start, count = start + some, count - some
        return concatenated(blocks)

    def _whole(self, file: int, first: int, count: int) -> Block:
        try:
            block = self._reader(file).whole(first, count)
        except (EvenfeedError, OSError) as error:
            raise _damaged(error, self._files[file], self._lost_from(file, first)) from error
        self._count_held(file)
        return block

    def partly(self, parts: Collection[int]) -> Rows | None:
        key = frozenset(parts)
        with self._lock:
            if key not in self._partly:
                self._partly[key] = self._reading(key)
            return self._partly[key]

    def _reading(self, parts: Collection[int]) -> "FileRows | None":
        wanted = _read_of(self._spec, parts)
        found = [None if wanted is None else file.reading(wanted) for file in self._files]
        files = [file for file in found if file is not None]
        return FileRows(files, self._counts) if files and len(files) == len(found) else None

    def provenance(self, position: int) -> RowOrigin | None:
        file = int(np.searchsorted(self._ends, position, "right"))
        return row_origin(
            self._files[file], position - int(self._starts[file]), self._readers.get(file)
        )

    def _reader(self, file: int) -> Reader:
        reader = self._readers.pop(file, None)
        if reader is None:
            reader = self._opened(file)
        self._readers[file] = reader  # move it to the end: it was used last
        return reader

    def _lost_from(self, file: int, row: int) -> int:
        """Return how many rows of a file, starting at `row`, fail together."""
        reader = self._readers.get(file)
        if reader is not None:
            return reader.behind(row) - row
        return int(self._ends[file] - self._starts[file]) - row

    def _opened(self, file: int) -> Reader:
        if file in self._lost:  # asked for once per row
            raise self._lost[file].again()
        try:
            return self._files[file].open()
        except DataLossError as error:
            self._lost[file] = error
            raise

    def _count_held(self, file: int) -> None:
        """Drop the least recently used readers if all together hold too many bytes, but not this one."""
        reader = self._readers.get(file)
        if reader is None:
            return
        self._count(file, reader.held)
        if self._held <= _MOST_HELD:
            return
        for number in list(self._sizes):
            if self._held > _MOST_HELD and number != file:
                self._readers.pop(number, None)
                self._count(number, 0)

    def _count(self, file: int, size: int) -> None:
        self._held += size - self._sizes.pop(file, 0)
        if size:
            self._sizes[file] = size  # at the end: it was used last


def _read_of(spec: Any, parts: Collection[int]) -> PartsRead | None:
    """Return which columns to read for some parts of the rows; None if all are needed, or rows have no columns.

    A part without a fixed shape is always read: shapes choose the program that computes with rows.
    """
    if type(spec) is not dict:
        return None
    columns: dict[str, tuple[PartRead, ...]] = {}
    number = 0
    for name, own in sorted(cast("dict[str, Any]", spec).items()):
        specs = flatten(own, DATA)
        places = range(number, number + len(specs))
        number = places.stop
        needed = any(place in parts for place in places) or not all(map(_has_shape, specs))
        columns[name] = tuple(PartRead(blank=None if needed else one) for one in specs)
    return columns if any(read.blank for reads in columns.values() for read in reads) else None


def _has_shape(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined()


def _identities(files: Sequence[DataFile]) -> list[str]:
    return [file.identity for file in files]


def _damaged(error: Exception, file: DataFile, lost: int = 1) -> FailedRow:
    """Return the error for `lost` rows that cannot be read. The rows before them are returned first."""
    add_path(error, file)
    return FailedRow(0, None, error, damaged=lost)


def add_path(error: Exception, file: DataFile) -> None:
    """Add the file's path to an error that has none."""
    if isinstance(error, EvenfeedError) and error.file is None:
        error.in_file(file.path)


def row_origin(file: DataFile, row: int, reader: Reader | None) -> RowOrigin:
    """Return the origin of a row; its byte is known only to the reader that read it."""
    return RowOrigin(file.path, file.named(row), None if reader is None else reader.byte_of(row))
