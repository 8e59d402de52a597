"""Writing page files: Blocks as pages, followed by a page table and a checksummed footer."""

import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column, concatenated
from evenfeed.core.dtypes import DType
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TypeSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.bytes.filesystems import naming
from evenfeed.formats.bytes.open_files import Reopened, with_room
from evenfeed.formats.json_values import part_to_json
from evenfeed.formats.pages.composite_parts import kind_of
from evenfeed.formats.pages.pages import (
    ALIGNMENT,
    Layout,
    is_even,
    layout_of,
    layout_to_json,
    page_bytes,
    spacing,
)


@final
class NewFile:
    """A new file that is only appended to. If many files are written in turn, it may be closed between two writes.

    Args:
        path: Path of the file, which must not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = Reopened(_Opener(path))
        self.size = 0
        self.write(b"")

    def write(self, data: bytes) -> None:
        """Append bytes and flush them, so that a full disk raises for this file."""
        with naming(str(self._path)):
            self._file.opened().write(data)
        self.size += len(data)

    def finish(self) -> None:
        """Flush the file to disk and close it."""
        with naming(str(self._path)):
            self._file.opened().finish()
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@final
class _Opener:
    """Creates a file; later calls reopen it at its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mode = "xb"

    def __call__(self) -> "_Opened":
        mode, self._mode = self._mode, "r+b"
        return _Opened(with_room(partial(self._path.open, mode)))


@final
class _Opened:
    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        file.seek(0, os.SEEK_END)

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    def finish(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        self.close()


BEGIN: Final = b"evenfeed pages 1"
END: Final = struct.Struct("<QQI12s")
END_MARK: Final = b"evenfeed end"
TABLE: Final[DType] = np.dtype(
    [
        ("at", "<i8"),
        ("bytes", "<i8"),  # in the file
        ("raw", "<i8"),  # bytes before compression
        ("rows", "<i8"),
        ("room", "<i8"),  # row capacity, including padding
        ("layout", "<u4"),
        ("crc", "<u4"),
    ]
)

# The unit of reading: small enough for random access, large enough for sequential reads.
_PAGE_BYTES: Final = 1 << 17
GZIP: Final = 31  # zlib's number for a gzip header and trailer


class WrittenPages(NamedTuple):
    """The identity of a finished file: its row count, its size and the checksum of its footer."""

    rows: int
    bytes: int
    crc: int


@final
class PageWriter:
    """Writes Blocks to a new file.

    Args:
        path: Path of the file, which must not exist yet.
        specs: The specs of the element's components.
        compression: "" or "GZIP".
    """

    def __init__(self, path: Path, specs: Sequence[TypeSpec], compression: str = "") -> None:
        for spec in specs:
            part_to_json(spec)  # raises if a file cannot hold it
        self._file = NewFile(path)
        self._file.write(BEGIN)
        self._compression = compression
        self._kinds = list(map(kind_of, specs))
        self._layouts: dict[Layout, int] = {}
        self._table: list[tuple[int, ...]] = []
        self._held: list[Block] = []
        self._bytes = 0

    def add(self, block: Block) -> None:
        """Add rows. Rows are buffered until a page is full."""
        self._held.append(block)
        self._bytes += _bytes_of(block)
        if self._bytes >= _PAGE_BYTES:
            self._write(all_rows=False)

    def finish(self, about: Mapping[str, Any] | None = None) -> WrittenPages:
        """Write the remaining rows and the footer, and sync to disk. `about` is stored as JSON."""
        self._write(all_rows=True)
        table = np.array(self._table, TABLE)
        description = {
            "compression": self._compression,
            "layouts": list(map(layout_to_json, self._layouts)),
            "about": about or {},
        }
        end = table.tobytes() + json.dumps(description).encode()
        at, crc = self._file.size, zlib.crc32(end)
        self._file.write(end + END.pack(at, at + table.nbytes, crc, END_MARK))
        self._file.finish()
        return WrittenPages(int(table["rows"].sum()), self._file.size, crc)

    def close(self) -> None:
        """Stop writing. Without `finish` the file is incomplete."""
        self._file.close()

    def _write(self, *, all_rows: bool) -> None:
        if not self._held:
            return
        block = concatenated(self._held)
        # If all rows have the same size, this number is the same for all pages.
        most = max(1, _PAGE_BYTES * block.length // self._bytes)
        at = 0
        while block.length - at >= (1 if all_rows else most):
            self._write_page(block.cut(at, at + most), most)
            at += most
        rest = block.cut(at, block.length) if at < block.length else None
        self._held = [] if rest is None else [rest]
        self._bytes = 0 if rest is None else _bytes_of(rest)

    def _write_page(self, block: Block, most: int) -> None:
        layout = layout_of(block, self._kinds)
        room = most if is_even(layout) and self._table else block.length
        raw = page_bytes(_padded(block, room), layout)
        stored = zlib.compress(raw, wbits=GZIP) if self._compression else raw
        first = self._table[0][0] if self._table else ALIGNMENT
        gap = (first - self._file.size) % spacing(layout, len(raw))
        number = self._layouts.setdefault(layout, len(self._layouts))
        sizes = (self._file.size + gap, len(stored), len(raw), block.length, room)
        self._file.write(bytes(gap) + stored)
        self._table.append((*sizes, number, zlib.crc32(stored)))


def _padded(block: Block, room: int) -> Block:
    """Pad a block with rows of zeros, because pages of equal size are found without a search."""
    missing = room - block.length
    if missing <= 0:
        return block
    zeros = [
        np.zeros((missing, *column.shape[1:]), column.dtype)
        if isinstance(column, np.ndarray)
        else None
        for column in block.columns
    ]
    return concatenated([block, Block(tuple(zeros), missing)])


def _bytes_of(block: Block) -> int:
    """Estimate the size of a block in a file, at least one byte per row."""
    return max(block.length, sum(map(_column_bytes, block.columns)))


def _column_bytes(column: Column | SparseTensor) -> int:
    if isinstance(column, list):
        return sum(map(_column_bytes, column))
    if isinstance(column, RaggedTensor):
        return sum(map(_column_bytes, (column.splits, column.held)))
    if isinstance(column, SparseTensor):
        return sum(map(_column_bytes, (column.indices, column.values)))
    if isinstance(column, Texts):
        return column.nbytes
    if column is None or column.dtype != dtypes.string:
        return 0 if column is None else column.nbytes
    return sum(map(len, column.reshape(-1).tolist()))
