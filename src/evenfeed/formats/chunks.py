"""Base readers for formats without an index: rows are read sequentially, in chunks."""

from abc import abstractmethod
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.reader import Reader


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
        """Return the rows after the current chunk, possibly zero while more follow; None at the end."""

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
        """Return the rows after the current chunk, possibly zero while more follow; None at the end."""

    def _next(self) -> Chunk | None:
        rows = self._more()
        return None if rows is None else Chunk(Block((rows,), len(rows)))


def bytes_column(rows: list[bytes]) -> Array:
    """Return a string column of these rows."""
    column = np.empty(len(rows), dtypes.string)
    column[:] = rows
    return column
