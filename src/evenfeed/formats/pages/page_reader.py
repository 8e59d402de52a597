"""Reads files of pages, mapped into memory.

A page is checked when it is first read. Where all rows are numbers of one shape, pages lie at equal
distances, and any rows are gathered out of the file at once.
"""

import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, final

import numpy as np

from evenfeed.core.block import Block, Positions, fetched_apart
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError, NotFoundError
from evenfeed.formats.bytes.mapped_files import Held, MappedFile, many_are_mapped, without_views
from evenfeed.formats.pages.page_files import BEGIN, END, END_MARK, GZIP, TABLE, WrittenPages
from evenfeed.formats.pages.pages import (
    ALIGNMENT,
    Layout,
    Part,
    block_of,
    is_even,
    layout_from_json,
)
from evenfeed.formats.reader import DataFile, Reader

_BYTES_HELD: Final = 1 << 26  # of decompressed pages, the last ones


@final
@dataclass(frozen=True)
class PageFile(DataFile):
    """A finished file of pages, as it was when it was written."""

    checks_itself: ClassVar[bool] = True

    written: WrittenPages

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.written.rows

    @property
    def extent(self) -> tuple[int, int]:
        """The whole file."""
        return 0, self.written.bytes

    @property
    def fingerprint(self) -> str:
        """The checksum of all checksums."""
        return f"{self.written.rows} rows {self.written.crc:08x}"

    def open(self) -> "PageReader":
        """Return the reader that all iterators over a dataset share: a page is checked once for them."""
        return self._reader

    @cached_property
    def _reader(self) -> "PageReader":
        reader = PageReader(self.path)
        if reader.written != self.written:
            raise reader.damaged("it is not the file that was saved")
        return reader

    def __reduce__(self) -> tuple[Any, ...]:
        return PageFile, (self.path, self.written)


@final
class PageReader(Reader):
    """An open file of pages.

    Attributes:
        written: What identifies it.
        about: What its writer said of it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._file = self._mapped()
        raw: Array = np.frombuffer(self._file.bytes, np.uint8)
        table, said, crc = self._end(raw)
        try:
            self._table = np.frombuffer(table, TABLE)
            self._layouts: list[Layout] = list(map(layout_from_json, said["layouts"]))
            self.about: dict[str, Any] = said["about"]
            self._compressed = bool(said["compression"])
            self._pages()
        except (ValueError, KeyError, TypeError, IndexError):
            raise self.damaged("its table does not fit its pages") from None
        self._ends = np.cumsum(self._table["rows"])
        self._starts = self._ends - self._table["rows"]
        self._checked = np.zeros(len(self._table), np.bool_)
        self._unchecked = True
        self._damaged: dict[int, str] = {}
        self._held: dict[int, Array] = {}
        rows = int(self._ends[-1]) if len(self._ends) else 0
        self.written = WrittenPages(rows, len(raw), crc)

    def read(self, start: int, count: int) -> Block | None:
        """Return rows of the page that `start` is in; views of the file where they can be."""
        page = int(np.searchsorted(self._ends, start, "right"))
        if page == len(self._ends):
            return None
        first = start - int(self._starts[page])
        stop = min(first + count, int(self._table["rows"][page]))
        block = self._rows_of(page, slice(first, stop))
        return without_views(block) if many_are_mapped() else block

    def behind(self, row: int) -> int:
        """Return the first row behind the page: it is damaged as a whole."""
        return int(self._ends[np.searchsorted(self._ends, row, "right")])

    def _pages(self) -> "_Pages":
        """Return the file as it is mapped now."""
        return self._file.view(self._looked_at)

    def _looked_at(self, held: Held) -> "_Pages":
        raw: Array = np.frombuffer(held, np.uint8)
        return _Pages(raw, self._even_columns(raw))

    def fetch(self, positions: Positions) -> Block:
        """Return the rows at `positions`: at once where pages are alike, else page by page."""
        columns = self._pages().columns
        if columns is None:
            pages = np.searchsorted(self._ends, positions, "right")
            return fetched_apart(pages, positions - self._starts[pages], self._rows_of)
        self._file.check()
        pages, within = np.divmod(positions, int(self._table["room"][0]))
        if self._unchecked:
            for page in np.unique(pages[~self._checked[pages]]).tolist():
                self._page(page)
        found = [column and column.rows(pages, within) for column in columns]
        return Block(tuple(found), len(positions))

    def _rows_of(self, page: int, rows: Positions | slice) -> Block:
        room = int(self._table["room"][page])
        try:
            return block_of(self._page(page), self._layout(page), room, rows)
        except ValueError as error:
            raise self.damaged(str(error)) from None

    def _layout(self, page: int) -> Layout:
        return self._layouts[int(self._table["layout"][page])]

    def _page(self, page: int) -> Array:
        """Return the bytes of a page, checked the first time and decompressed."""
        held = self._held.get(page)
        if held is not None:
            return held
        if page in self._damaged:  # it is asked for once for each row
            raise self.damaged(self._damaged[page])
        self._file.check()
        row = self._table[page]
        stored = self._pages().raw[row["at"] : row["at"] + row["bytes"]]
        if not self._checked[page]:
            if len(stored) != row["bytes"] or zlib.crc32(stored.data) != row["crc"]:
                self._damaged[page] = f"the checksum of the page at byte {row['at']} is another"
                raise self.damaged(self._damaged[page])
            self._checked[page] = True
            self._unchecked = not self._checked.all()
        return self._decompressed(page, stored) if self._compressed else stored

    def _decompressed(self, page: int, stored: Array) -> Array:
        unpack, size = zlib.decompressobj(GZIP), int(self._table["raw"][page])
        try:
            raw = unpack.decompress(stored.data, max(1, size))
        except zlib.error as error:
            raise self.damaged(str(error)) from None
        found = np.frombuffer(raw, np.uint8)
        most = _BYTES_HELD // max(1, int(self._table["raw"].max()))
        kept = [*self._held.items()][-most:] if most else []
        self._held = dict([*kept, (page, found)])  # a new one: other threads may look at the old
        return found

    def _even_columns(self, raw: Array) -> "list[_Column | None] | None":
        """Return the columns through all pages; None where pages are not alike."""
        table = self._table
        # Not both at once: of several fields NumPy asks Python code, which would swallow Ctrl-C.
        alike = len(np.unique(table["layout"])) == len(np.unique(table["room"])) == 1
        if self._compressed or not alike:
            return None
        layout, room, pages = self._layout(0), int(table["room"][0]), len(table)
        step = int(table["at"][1] - table["at"][0]) if pages > 1 else 0
        if np.any(np.diff(table["at"]) != step) or not is_even(layout):
            return None
        columns: list[_Column | None] = []
        offset = int(table["at"][0])
        for part in layout:
            if part is None:
                columns.append(None)
                continue
            offset += -offset % ALIGNMENT
            columns.append(_Column(part, raw, offset, step, (pages, room)))
            offset += room * (part.row_bytes or 0)
        return columns

    def _mapped(self) -> MappedFile:
        try:
            file = MappedFile(self.path)
        except FileNotFoundError:
            raise NotFoundError(
                f"There is no file {self.path}.", fix="save the dataset again."
            ) from None
        if len(file.bytes) < len(BEGIN) + END.size:
            raise self.damaged("it is too short")
        return file

    def _end(self, raw: Array) -> tuple[bytes, Any, int]:
        if raw[: len(BEGIN)].tobytes() != BEGIN:
            raise self.damaged("it is no file of evenfeed's, or of another version")
        table, said, crc, mark = END.unpack(raw[-END.size :].tobytes())
        stop = len(raw) - END.size
        if mark != END_MARK or not len(BEGIN) <= table <= said <= stop:
            raise self.damaged("it has no end")
        end = raw[table:stop]
        if zlib.crc32(end.data) != crc:
            raise self.damaged("the checksum of its end is another")
        try:
            return end[: said - table].tobytes(), json.loads(end[said - table :].tobytes()), crc
        except ValueError:
            raise self.damaged("its end cannot be read") from None

    def damaged(self, why: str) -> DataLossError:
        """Return the error that says what is wrong with the file."""
        return DataLossError(f"{self.path} is damaged: {why}.", fix="delete it, and write it anew.")


class _Pages(NamedTuple):
    """A file that is mapped: its bytes, and the columns through all pages, where these are alike."""

    raw: Array
    columns: "list[_Column | None] | None"


@final
class _Column:
    """One column of pages that are alike, in the mapped file.

    Args:
        part: How it stands in a page.
        raw: The file.
        at: Where it begins.
        step: How far the next page is.
        pages: How many there are, and how many rows there is room for in each.
    """

    def __init__(self, part: Part, raw: Array, at: int, step: int, pages: tuple[int, int]) -> None:
        size, shape = part.row_bytes or 0, part.shape or ()
        inner = np.empty((1, *shape), part.dtype).strides
        self._by_page = np.ndarray((*pages, *shape), part.dtype, raw, at, (step, *inner))
        self._per_page: int | None = None
        if size and step % size == 0:
            self._per_page = step // size
            rows = self._per_page * (pages[0] - 1) + pages[1]
            self._flat = np.ndarray((rows, *shape), part.dtype, raw, at, inner)

    def rows(self, pages: Positions, within: Positions) -> Array:
        """Return a row of each page."""
        if self._per_page is None:
            return self._by_page[pages, within]
        return self._flat.take(pages * self._per_page + within, axis=0)
