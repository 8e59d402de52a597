"""Reading memory-mapped page files.

A page's checksum is verified on its first read. If all rows are numbers of one shape, pages are equally spaced, and
any set of rows is gathered from the file at once.
"""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, final

import numpy as np

from evenfeed.core.block import Block, Positions, fetched_apart
from evenfeed.core.concurrency.weak_table import WeakTable
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

_BYTES_HELD: Final = 1 << 26  # of the last decompressed pages


@final
@dataclass(frozen=True)
class PageFile(DataFile):
    """A finished page file, with the identity it was written with."""

    checks_itself: ClassVar[bool] = True

    written: WrittenPages

    @property
    def rows(self) -> int:
        return self.written.rows

    @property
    def extent(self) -> tuple[int, int]:
        return 0, self.written.bytes

    @property
    def fingerprint(self) -> str:
        """The row count and the footer checksum, which covers all page checksums."""
        return f"{self.written.rows} rows {self.written.crc:08x}"

    def open(self) -> "PageReader":
        """Return a reader shared by all iterators of a dataset, so that each page is verified once."""
        # Opened outside of the table's lock: threads may open files at the same time.
        return _readers.get(self) or _readers.put(self, self._opened())

    def _opened(self) -> "PageReader":
        reader = PageReader(self.path)
        if reader.written != self.written:
            raise reader.damaged("it is not the file that was saved")
        return reader

    def __reduce__(self) -> tuple[Any, ...]:
        return PageFile, (self.path, self.written)


@final
class PageReader(Reader):
    """An open page file.

    Attributes:
        written: The identity of the file.
        about: The data that its writer passed to `finish`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._file = self._mapped()
        raw: Array = np.frombuffer(self._file.bytes, np.uint8)
        table, description, crc = self._end(raw)
        try:
            self._table = np.frombuffer(table, TABLE)
            self._layouts: list[Layout] = list(map(layout_from_json, description["layouts"]))
            self.about: dict[str, Any] = description["about"]
            self._compressed = bool(description["compression"])
            self._pages()
        except (ValueError, KeyError, TypeError, IndexError):
            raise self.damaged("its page table does not match its pages") from None
        self._ends = np.cumsum(self._table["rows"])
        self._starts = self._ends - self._table["rows"]
        self._checked = np.zeros(len(self._table), np.bool_)
        self._unchecked = True
        self._damaged: dict[int, str] = {}
        self._held: dict[int, Array] = {}
        rows = int(self._ends[-1]) if len(self._ends) else 0
        self.written = WrittenPages(rows, len(raw), crc)

    def read(self, start: int, count: int) -> Block | None:
        """Return rows of the page that contains `start`, as views of the file if possible."""
        page = int(np.searchsorted(self._ends, start, "right"))
        if page == len(self._ends):
            return None
        first = start - int(self._starts[page])
        stop = min(first + count, int(self._table["rows"][page]))
        block = self._rows_of(page, slice(first, stop))
        return without_views(block) if many_are_mapped() else block

    def behind(self, row: int) -> int:
        """Return the first row after the page, which is damaged as a whole."""
        return int(self._ends[np.searchsorted(self._ends, row, "right")])

    def _pages(self) -> "_Pages":
        """Return the pages of the current mapping."""
        return self._file.view(self._pages_of)

    def _pages_of(self, held: Held) -> "_Pages":
        raw: Array = np.frombuffer(held, np.uint8)
        return _Pages(raw, self._even_columns(raw))

    def fetch(self, positions: Positions) -> Block:
        """Return the rows at `positions`: at once if all pages have the same layout, otherwise page by page."""
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
        """Return the decompressed bytes of a page, verified on the first read."""
        held = self._held.get(page)
        if held is not None:
            return held
        if page in self._damaged:  # every row of the page asks for it
            raise self.damaged(self._damaged[page])
        self._file.check()
        row = self._table[page]
        stored = self._pages().raw[row["at"] : row["at"] + row["bytes"]]
        if not self._checked[page]:
            if len(stored) != row["bytes"] or zlib.crc32(stored.data) != row["crc"]:
                self._damaged[page] = f"the checksum of the page at byte {row['at']} is wrong"
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
        self._held = dict(
            [*kept, (page, found)]
        )  # a new dict: other threads may be reading the old one
        return found

    def _even_columns(self, raw: Array) -> "list[_Column | None] | None":
        """Return the columns across all pages; None if pages differ in layout."""
        table = self._table
        # One field at a time: for several, NumPy calls Python code that would swallow Ctrl-C.
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
            if not isinstance(part, Part):  # an even layout has no ragged or sparse tensors
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
                f"{self.path} does not exist.", fix="save the dataset again."
            ) from None
        if len(file.bytes) < len(BEGIN) + END.size:
            raise self.damaged("it is too short")
        return file

    def _end(self, raw: Array) -> tuple[bytes, Any, int]:
        if raw[: len(BEGIN)].tobytes() != BEGIN:
            raise self.damaged("it is not an evenfeed page file, or has another version")
        table, description_at, crc, mark = END.unpack(raw[-END.size :].tobytes())
        stop = len(raw) - END.size
        if mark != END_MARK or not len(BEGIN) <= table <= description_at <= stop:
            raise self.damaged("its footer is missing")
        end = raw[table:stop]
        if zlib.crc32(end.data) != crc:
            raise self.damaged("the checksum of its footer is wrong")
        try:
            return (
                end[: description_at - table].tobytes(),
                json.loads(end[description_at - table :].tobytes()),
                crc,
            )
        except ValueError:
            raise self.damaged("its footer cannot be read") from None

    def damaged(self, why: str) -> DataLossError:
        """Return the error for a damaged file."""
        return DataLossError(
            f"{self.path} is damaged: {why}.", fix="delete it, and write it again."
        )


# Kept beside the files, which are parts of plans and never change.
_readers: Final = WeakTable[PageReader]()


class _Pages(NamedTuple):
    """A mapped file: its bytes, and its columns across all pages if these have the same layout."""

    raw: Array
    columns: "list[_Column | None] | None"


@final
class _Column:
    """One column across equally spaced pages of a mapped file.

    Args:
        part: The layout of the column in a page.
        raw: The bytes of the file.
        at: The offset of its first value.
        step: The distance between pages.
        pages: The number of pages, and the row capacity of each.
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
        """Return the rows `within` the given `pages`."""
        if self._per_page is None:
            return self._by_page[pages, within]
        return self._flat.take(pages * self._per_page + within, axis=0)
