"""The contracts of every file format: `DataFile`, a file in a plan, and `Reader`, an open file.

`RowReader` and `ChunkReader` are base classes for formats without an index, whose rows are read sequentially.
"""

from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column, Positions, concatenated, fetched_apart
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError, InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts


def grouped(lengths: Positions, fewest: int, longest: int) -> tuple[list[Positions], Positions]:
    """Return groups of at least `fewest` rows of equal length, and all other rows.

    NumPy processes a group at once. Rows that are empty or longer than `longest` are among the others.
    """
    rows = np.arange(len(lengths))
    if len(rows) >= fewest and 0 < lengths[0] <= longest and (lengths == lengths[0]).all():
        return [rows], rows[:0]
    order = np.argsort(lengths, kind="stable")
    starts = np.flatnonzero(np.diff(lengths[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    length = lengths[order[starts]]
    together = (sizes >= fewest) & (length > 0) & (length <= longest)
    groups = [order[i : i + n] for i, n in zip(starts[together], sizes[together], strict=True)]
    return groups, np.sort(order[np.repeat(~together, sizes)])


@final
@dataclass(frozen=True, slots=True)
class PartRead:
    """What to read of one part of the rows.

    Attributes:
        blank: The spec of a part that nobody uses. It is not read, but filled with zeros or empty text.
        cut: The slice to read along each dimension; None for all.
    """

    blank: TensorSpec | None = None
    cut: tuple[slice, ...] | None = field(default=None, hash=False)

    def of(self, column: Column) -> Column:
        """Return what is read of a column."""
        return column if self.cut is None else np.asarray(column)[(slice(None), *self.cut)]


# What to read of the parts of each column, by its name; in the order of the spec.
PartsRead: TypeAlias = Mapping[str, tuple[PartRead, ...]]


class Reader(ABC):
    """An open file. `close`, or dropping it, frees its resources."""

    path: str

    @property
    def goes_on(self) -> bool:
        """True if reading can continue after the row at which `read` raised."""
        return False

    @property
    def held(self) -> int:
        """Bytes of rows kept in memory; mapped files do not count."""
        return 0

    def decoded(self) -> Block | None:
        """Return all rows, if the reader decodes all of them at its first read, and none is wrong; else None."""
        return None

    @abstractmethod
    def read(self, start: int, count: int) -> Block | None:
        """Return at least one and at most `count` rows from `start` on; None past the last row."""

    def whole(self, start: int, count: int) -> Block:
        """Return exactly `count` rows from `start` on."""
        blocks: list[Block] = []
        stop = start + count
        while start < stop:
            block = self.read(start, stop - start)
            if block is None:
                raise DataLossError(
                    f"{self.path} ends at row {start}, but should have at least {stop} rows.",
                    fix="create the dataset again if the file changed.",
                )
            blocks.append(block)
            start += block.length
        return concatenated(blocks)

    def fetch(self, positions: Positions) -> Block:
        """Return the rows at `positions`, in that order. By default reads each run of neighbouring rows once."""
        order = np.argsort(positions, kind="stable")
        sorted_positions = positions[order]
        runs = np.empty_like(positions)
        runs[order] = np.cumsum(np.diff(sorted_positions, prepend=sorted_positions[0]) > 1)
        return fetched_apart(runs, positions, self._run)

    def _run(self, _: int, positions: Positions) -> Block:
        first, last = int(positions.min()), int(positions.max())
        return self.whole(first, last + 1 - first).gather(positions - first)

    def behind(self, row: int) -> int:
        """Return the next row to try after `row` failed, past the rows that fail for the same reason."""
        return row + 1

    def byte_of(self, row: int) -> int | None:  # noqa: ARG002 - subclasses use it
        """Return the byte at which a recently read row starts; None if unknown."""
        return None

    def mark(self) -> Any:
        """Return JSON data from which `seek` restores the current position; None if row numbers suffice."""
        return None

    def seek(self, mark: Any) -> None:  # noqa: B027 - most find rows by number alone
        """Restore a position that `mark` returned, before reading rows after it."""

    def close(self) -> None:  # noqa: B027 - most hold nothing but memory
        """Free all resources now."""


@dataclass(frozen=True)
class DataFile(ABC):
    """A file in a plan, before it is opened: small, comparable and picklable."""

    path: str

    # The public method or class that reads such files.
    read_by: ClassVar[str] = "load"
    # True if `read_together` reads small files.
    reads_together: ClassVar[bool] = False
    # True if the plan knows the file's content, so that a replaced file is noticed.
    checks_itself: ClassVar[bool] = False

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """The number of rows; None if the file must be read to count them."""

    @property
    def is_countable(self) -> bool:
        """True if `counted` returns the number of rows, unless the file is missing or damaged."""
        return self.rows is not None

    def counted(self) -> int | None:
        """Return the number of rows, scanning the file if needed; None if rows have no positions.

        Also None if the file is missing, or too damaged to count. Uncounted files are read sequentially, so every
        shard raises the error.
        """
        return self.rows

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """The byte range of the rows in the file: the first byte, and one past the last."""

    def part(self, start: int, stop: int) -> "DataFile | None":  # noqa: ARG002 - subclasses use it
        """Return the rows that begin in a range of bytes, as a file; None if they are found only from the start."""
        return None

    def reading(self, parts: "PartsRead") -> "DataFile | None":  # noqa: ARG002 - subclasses use it
        """Return the file with some parts of its rows left out or cut; None if the format reads whole rows only."""
        return None

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short text that two files share only if they hold the same rows, wherever they are stored."""

    def named(self, row: int) -> str:
        """Return the name of a row for errors and logs."""
        return f"row {row}"

    @property
    def is_read_again(self) -> bool:
        """True if reaching a row means reading all rows before it."""
        return False

    @property
    def identity(self) -> str:
        """A text that is unique to these rows. Rewriting the file in place changes it."""
        return self.fingerprint

    @abstractmethod
    def open(self) -> Reader:
        """Open the file. Readers without a position of their own may be shared."""

    @classmethod
    def read_together(cls, files: Sequence[Any]) -> "Together | None":  # noqa: ARG003 - subclasses use it
        """Return all rows of the first files if they are small; None if the first is not, or cannot be read whole.

        Args:
            files: Files of this class that follow each other. Those after the first that cannot be read are left out.
        """
        return None


def _no_mark(index: int, row: int) -> None:
    """Row numbers suffice."""
    del index, row


@final
@dataclass(frozen=True, slots=True)
class Together:
    """All rows of several small files.

    Attributes:
        block: The rows, one file after the other.
        ends: For each file, the index after its last row.
        mark: Returns the mark with which a reader continues at a row, given its index in the block and in its file.
    """

    block: Block
    ends: Positions
    mark: Callable[[int, int], Any] = _no_mark


@final
@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of rows. `wrong` maps bad rows to their error, in order; the Block holds placeholders for them."""

    block: Block
    wrong: Mapping[int, str] = field(default_factory=dict[int, str])

    def good(self, start: int, count: int) -> Block | None:
        """Return rows from `start` up to the first bad one; None if row `start` is bad."""
        if start in self.wrong:
            return None
        rows = [*self.wrong, self.block.length]
        return self.block.cut(start, min(rows[bisect(rows, start)], start + count))


class RowReader(Reader):
    """Reads rows a chunk at a time. Reaching a row means reading all rows before it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._start_at(0)
        self._row_failed = False

    @property
    def goes_on(self) -> bool:
        """True if the last error was about one row, not the file."""
        return self._row_failed

    @abstractmethod
    def _next(self) -> Chunk | None:
        """Return the rows after the current chunk; None at the end. A chunk may be empty even if more rows follow."""

    @abstractmethod
    def _rewind(self) -> None:
        """Go back to the start of the file."""

    def _error(self, row: int, what: str) -> InvalidArgumentError:
        """Return the error for a bad row of the chunk."""
        return InvalidArgumentError(f"{self.path}, row {self._first + row}: {what}")

    def byte_of(self, row: int) -> int | None:
        """Return the byte at which a row of the current chunk starts; None if unknown or in another chunk."""
        inside = self._first <= row < self._first + self._chunk.block.length
        return self._byte(row - self._first) if inside else None

    def _byte(self, row: int) -> int | None:  # noqa: ARG002 - subclasses use it
        """Return the byte at which a row of the chunk starts."""
        return None

    def read(self, start: int, count: int) -> Block | None:
        self._row_failed = False
        if start < self._first:
            self._rewind()
            self._start_at(0)
        while start >= self._first + self._chunk.block.length:
            chunk = self._next()
            if chunk is None:
                return None
            self._first += self._chunk.block.length
            self._chunk = chunk
        row = start - self._first
        good = self._chunk.good(row, count)
        if good is None:
            self._row_failed = True
            raise self._error(row, self._chunk.wrong[row])
        return good

    def _start_at(self, row: int) -> None:
        self._first = row  # the first row of the chunk
        self._chunk = Chunk(Block((), 0))


class ChunkReader(RowReader):
    """Reads rows of bytes, none of which can be bad."""

    @abstractmethod
    def _more(self) -> Array | Texts | None:
        """Return the rows after the current chunk; None at the end. A chunk may be empty even if more rows follow."""

    def _next(self) -> Chunk | None:
        rows = self._more()
        return None if rows is None else Chunk(Block((rows,), len(rows)))


def bytes_column(rows: list[bytes]) -> Array:
    """Return a string column of these rows."""
    column = np.empty(len(rows), dtypes.string)
    column[:] = rows
    return column
