"""Reads the rows of files: by position if their counts are known, else sequentially."""

import weakref
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final, Self, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.errors import EvenfeedError
from evenfeed.formats.reader import DataFile, Reader, Together
from evenfeed.plan.files import Files
from evenfeed.runtime.operator import Operator, State
from evenfeed.runtime.positions.file_rows import FileRows, add_path, row_origin
from evenfeed.runtime.positions.indexing import Indexed, Lookup, Uncounted, addresses, forward
from evenfeed.runtime.positions.orders import Order
from evenfeed.runtime.provenance import Provenance, RowOrigin, unknown_origin
from evenfeed.runtime.step import Step, runs

# The most small files to read at a time.
_MOST_TOGETHER: Final = 256


@addresses(Files)
def _file_rows(lookup: Lookup[Files]) -> Indexed:
    node = lookup.node
    counts = node.counted()
    if counts is None:
        raise Uncounted(node)
    # The files may be written again between two rounds.
    rows = lookup.run.lasting(
        node, lambda: FileRows(node.files, counts, node.spec), lambda kept: kept.has(counts)
    )
    return (rows, InTurn(counts)) if node.in_turn else forward(rows)


@runs(Files)
def _read_files(step: Step[Files]) -> Operator:
    return ReadFiles(step.node.files)


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
                add_path(error, self._files[self._file])
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
        return lambda index: row_origin(file, first + index, reader)

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
                return row_origin(file, row, reader)
        except (EvenfeedError, OSError):  # it was changed or removed since
            return row_origin(file, row, None)
