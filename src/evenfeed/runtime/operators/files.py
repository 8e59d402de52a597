"""Reads the rows of files: by position if their counts are known, else sequentially."""

import weakref
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any, Final, Self, cast, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated, fetched_apart
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.formats.reader import DataFile, PartRead, PartsRead, Reader, Together
from evenfeed.plan.files import Files
from evenfeed.runtime.operator import FailedRow, Operator, State
from evenfeed.runtime.positions.indexing import Indexed, Lookup, Uncounted, addresses, forward
from evenfeed.runtime.positions.orders import Order
from evenfeed.runtime.positions.rows import Rows
from evenfeed.runtime.provenance import Provenance, RowOrigin, unknown_origin
from evenfeed.runtime.step import Step, runs

# Decoded rows are kept for later reads, up to this many bytes.
_MOST_HELD: Final = 1 << 30
# The most small files to read at a time.
_MOST_TOGETHER: Final = 256


@addresses(Files)
def _file_rows(lookup: Lookup[Files]) -> Indexed:
    node = lookup.node
    counts = node.counted()
    if counts is None:
        raise Uncounted(node)
    rows = FileRows(node.files, counts, node.spec)
    return (rows, InTurn(counts)) if node.in_turn else forward(rows)


@runs(Files)
def _read_files(step: Step[Files]) -> Operator:
    return ReadFiles(step.node.files)


@final
class FileRows(Rows):
    """The rows of files with known row counts, one file after the other."""

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

    def fetch(self, positions: Positions) -> Block:
        if len(self._files) == 1:
            return self._fetched(0, positions)
        files = np.searchsorted(self._ends, positions, "right")
        within = positions - self._starts[files]
        return fetched_apart(files, within, self._fetched)

    def _fetched(self, file: int, rows: Positions) -> Block:
        try:
            block = self._reader(file).fetch(rows)
        except (EvenfeedError, OSError) as error:
            raise _damaged(error, self._files[file]) from error
        self._count_held(file)
        return block

    def run(self, start: int, count: int) -> Block:
        """Return `count` rows from `start` on; views if they are contiguous in one file."""
        blocks: list[Block] = []
        while count > 0:
            file = int(np.searchsorted(self._ends, start, "right"))
            first = start - int(self._starts[file])
            some = min(count, int(self._ends[file]) - start)
            try:
                blocks.append(self._reader(file).whole(first, some))
            except (EvenfeedError, OSError) as error:
                raise _damaged(error, self._files[file], self._lost_from(file, first)) from error
            self._count_held(file)
            start, count = start + some, count - some
        return concatenated(blocks)

    def partly(self, parts: Collection[int]) -> Rows | None:
        wanted = _read_of(self._spec, parts)
        found = [None if wanted is None else file.reading(wanted) for file in self._files]
        files = [file for file in found if file is not None]
        return FileRows(files, self._counts) if files and len(files) == len(found) else None

    def provenance(self, position: int) -> RowOrigin | None:
        file = int(np.searchsorted(self._ends, position, "right"))
        return _place(
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


def _damaged(error: Exception, file: DataFile, lost: int = 1) -> FailedRow:
    """Return the error for `lost` rows that cannot be read. The rows before them are returned first."""
    _add_path(error, file)
    return FailedRow(0, None, error, damaged=lost)


def _add_path(error: Exception, file: DataFile) -> None:
    """Add the file's path to an error that has none."""
    if isinstance(error, EvenfeedError) and error.file is None:
        error.in_file(file.path)


def _place(file: DataFile, row: int, reader: Reader | None) -> RowOrigin:
    return RowOrigin(file.path, file.named(row), None if reader is None else reader.byte_of(row))


@final
class InTurn(Order):
    """One row of each file in turn. Files that have ended are skipped.

    Between two rounds in which files end, all rounds have the same files.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = np.array(sizes, np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._ends = np.unique(self._sizes[self._sizes > 0])  # the rounds in which files end
        self._first_rounds = np.append(0, self._ends)
        files = [int((self._sizes >= end).sum()) for end in self._ends]
        self._first_steps = np.append(0, np.cumsum(np.diff(self._first_rounds) * files))
        self.size = int(self._sizes.sum())

    def at(self, steps: Positions) -> Positions:
        parts = np.searchsorted(self._first_steps, steps, "right") - 1
        out = np.empty_like(steps)
        for part in np.unique(parts).tolist():
            mine = parts == part
            files = np.flatnonzero(self._sizes >= self._ends[part])
            rounds, turn = np.divmod(steps[mine] - self._first_steps[part], len(files))
            out[mine] = self._starts[files[turn]] + self._first_rounds[part] + rounds
        return out


@final
class ReadFiles(Operator):
    """Reads files one after the other. Its state is the file, the row in it, and a mark for the file's reader.

    If a row cannot be read, the error is raised and the next row follows. If the rest of a file cannot be read, the
    next file follows.
    """

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files = files
        self._file = 0
        self._row = 0
        self._mark: Any = None
        self._reader: Reader | None = None
        self._end: weakref.finalize[..., Self] | None = None
        self._held: _SmallFiles | None = None
        self._rows_per_file = 0  # of the small files that were read last

    def read(self, most: int) -> Block | None:
        while self._file < len(self._files):
            held = self._small_files(most)
            if held is not None:
                block = held.next(most)
                self._file, self._row, self._mark = held.place
                return block
            try:
                block = self._read(most)
            except Exception as error:
                _add_path(error, self._files[self._file])
                self._pass()
                raise
            if block is not None:
                self._row += block.length
                return block
            self._leave()
        return None

    def _small_files(self, most: int) -> "_SmallFiles | None":
        """Return rows of small files that are read already, or read about as many files as `most` rows need."""
        if self._held is not None and self._held.has_next:
            return self._held
        self._held = None
        if self._reader is not None or self._row or self._mark is not None:
            return None
        count = -(-most // self._rows_per_file) if self._rows_per_file else 1
        files = self._files[self._file : self._file + min(count, _MOST_TOGETHER)]
        found = type(files[0]).read_together(files)
        if found is not None and found.block.length:
            self._rows_per_file = -(-found.block.length // len(found.ends))
            self._held = _SmallFiles(files, self._file, found)
        return self._held

    def _read(self, most: int) -> Block | None:
        if self._reader is None:
            self._reader = self._files[self._file].open()
            # In a garbage cycle, Python may finalize the file first and warn that it was open.
            self._end = weakref.finalize(self, self._reader.close)
            self._reader.seek(self._mark)
        return self._reader.read(self._row, most)

    def provenance(self, count: int) -> Provenance:
        if self._held is not None:
            return self._held.provenance(count)
        if self._file == len(self._files):
            return unknown_origin
        file, first, reader = self._files[self._file], self._row - count, self._reader
        return lambda index: _place(file, first + index, reader)

    def _pass(self) -> None:
        """Skip a row that cannot be read, or the rest of its file."""
        if self._reader is not None and self._reader.goes_on:
            self._row += 1
        else:
            self._leave()

    def _leave(self) -> None:
        self.close()
        self._file, self._row, self._mark = self._file + 1, 0, None

    def state(self) -> State:
        mark = self._mark if self._reader is None else self._reader.mark()
        return [self._file, self._row, mark]

    def restore(self, state: State) -> None:
        self.close()
        self._file, self._row, self._mark = state

    def close(self) -> None:
        if self._end is not None:
            self._end()
        self._reader = self._end = self._held = None


@final
class _SmallFiles:
    """The rows of small files that were read together, and the next one of them.

    Args:
        files: The files, and maybe more.
        first: The number of the first file.
        found: Their rows, at least one.
    """

    def __init__(self, files: Sequence[DataFile], first: int, found: Together) -> None:
        self._files = files
        self._first = first
        self._block = found.block
        self._ends = found.ends
        self._mark = found.mark
        self._next = 0

    @property
    def has_next(self) -> bool:
        return self._next < self._block.length

    def next(self, most: int) -> Block:
        """Return the next rows."""
        block = self._block.cut(self._next, self._next + most)
        self._next += block.length
        return block

    @property
    def place(self) -> tuple[int, int, Any]:
        """The number of the file of the next row, the row in it, and its mark. After the last row, the next file."""
        if not self.has_next:
            return self._first + len(self._ends), 0, None
        file, row = self._within(self._next)
        return self._first + file, row, self._mark(self._next, row) if row else None

    def provenance(self, count: int) -> Provenance:
        """Return the origins of the last rows: their files are opened again."""
        first = self._next - count
        return lambda index: self._origin(*self._within(first + index))

    def _within(self, row: int) -> tuple[int, int]:
        file = int(np.searchsorted(self._ends, row, "right"))
        return file, row - (int(self._ends[file - 1]) if file else 0)

    def _origin(self, number: int, row: int) -> RowOrigin:
        file = self._files[number]
        try:
            with closing(file.open()) as reader:
                reader.read(row, 1)
                return _place(file, row, reader)
        except (EvenfeedError, OSError):  # it was changed or removed since
            return _place(file, row, None)
