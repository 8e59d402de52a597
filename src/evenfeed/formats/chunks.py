"""Readers of files in which rows have no places: they are read from the beginning on, in chunks."""

from abc import abstractmethod

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.core.conversion import Array
from evenfeed.formats.reader import Reader


class ChunkReader(Reader):
    """Reads rows of bytes, a chunk at a time. A row is found by passing over those before it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._first = 0  # the row with which the chunk begins
        self._chunk = bytes_column([])

    @abstractmethod
    def _more(self) -> Array | None:
        """Return the rows behind the chunk, none at all where only the next ones may come; None at the end."""

    @abstractmethod
    def _rewind(self) -> None:
        """Go back to the beginning."""

    def read(self, start: int, count: int) -> Block | None:
        """Return rows from `start` on, of one chunk."""
        if start < self._first:
            self._rewind()
            self._begin_at(0)
        while start >= self._first + len(self._chunk):
            chunk = self._more()
            if chunk is None:
                return None
            self._first += len(self._chunk)
            self._chunk = chunk
        skipped = start - self._first
        rows = self._chunk[skipped : skipped + count]
        return Block((rows,), len(rows))

    def _begin_at(self, row: int) -> None:
        self._first, self._chunk = row, bytes_column([])


def bytes_column(rows: list[bytes]) -> Array:
    """Return a column of text."""
    column = np.empty(len(rows), dtypes.string)
    column[:] = rows
    return column
