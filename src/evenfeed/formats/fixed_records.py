"""Files of fixed-length records: `tf.data.FixedLengthRecordDataset`."""

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError, EvenfeedError, InvalidArgumentError
from evenfeed.core.text.text_columns import Origins, Texts
from evenfeed.formats.bytes.byte_windows import ByteFile
from evenfeed.formats.bytes.filesystems import is_remote
from evenfeed.formats.bytes.inflating import open_bytes
from evenfeed.formats.bytes.mapped_files import MappedFile
from evenfeed.formats.reader import ChunkReader, Reader, bytes_column

_READ: Final = 1 << 20


@final
@dataclass(frozen=True)
class FixedRecordFile(ByteFile):
    """A file of records of `record_bytes` each, between a header and a footer that are skipped."""

    read_by: ClassVar[str] = "FixedLengthRecordDataset"

    record_bytes: int = 1
    header_bytes: int = 0
    footer_bytes: int = 0

    @property
    def rows(self) -> int | None:
        """The number of records; None if the file must be read to count them, or has a wrong length."""
        if self.compression or is_remote(self.path):
            return None
        try:
            return self.whole_records()
        except EvenfeedError:
            return None  # raised again when the file is read

    @property
    def extent(self) -> tuple[int, int]:
        """The bytes between header and footer."""
        return self.header_bytes, self.bytes - self.footer_bytes

    @property
    def _kind(self) -> str:
        sizes = (self.record_bytes, self.header_bytes, self.footer_bytes)
        return f"{super()._kind} {sizes}"

    def whole_records(self) -> int:
        """Return the number of records in an uncompressed file; raise if its length does not fit."""
        body = self.bytes - self.header_bytes - self.footer_bytes
        if body < 0 or body % self.record_bytes:
            raise InvalidArgumentError(self.misfit(body), fix=_FIX).in_file(self.path)
        return body // self.record_bytes

    def byte_of(self, row: int) -> int:
        """Return the byte at which a record starts, after decompression."""
        return self.header_bytes + row * self.record_bytes

    def misfit(self, body: int) -> str:
        """Return the error text for a file whose length is not a multiple of the record size."""
        return (
            f"{self.path} has {body} bytes between its header ({self.header_bytes} bytes) and footer "
            f"({self.footer_bytes} bytes), which is not a multiple of record_bytes, {self.record_bytes}."
        )

    def open(self) -> Reader:
        """Open the file; an uncompressed local one is memory-mapped."""
        if self.compression:
            return StreamedRecords(self)
        rows = self.whole_records()
        return StreamedRecords(self) if is_remote(self.path) else MappedRecords(self, rows)


_FIX: Final = "check record_bytes, header_bytes and footer_bytes, and that the file is complete."


@final
class MappedRecords(Reader):
    """Reads records by number from a memory-mapped file."""

    def __init__(self, file: FixedRecordFile, rows: int) -> None:
        self.path = file.path
        self._byte_of = file.byte_of
        self._file = MappedFile(file.path)
        self._shape = rows, file.record_bytes
        self._first = file.header_bytes

    def _records(self) -> Array:
        """Return the records, one row of bytes each; raise if the file was truncated."""
        self._file.check()
        (rows, length), first = self._shape, self._first
        joined = np.frombuffer(self._file.bytes, np.uint8, rows * length, first if rows else 0)
        return joined.reshape(rows, length)

    def read(self, start: int, count: int) -> Block | None:
        rows = self._records()[start : start + count]
        return self._block(rows.copy(), start + np.arange(len(rows))) if len(rows) else None

    def byte_of(self, row: int) -> int | None:
        return self._byte_of(row)

    def fetch(self, positions: Positions) -> Block:
        return self._block(self._records()[positions], positions)

    def _block(self, records: Array, numbers: Positions) -> Block:
        """Return a freshly copied matrix of bytes as a string column."""
        places = self._first + numbers * records.shape[1]
        return Block(
            (_texts(self.path, records.reshape(-1), places, records.shape[1]),), len(records)
        )


def _texts(path: str, data: Array, places: Positions, length: int) -> Texts:
    """Return concatenated records as a column; `places` are their offsets in the file."""
    starts = length * np.arange(len(places))
    return Texts(data, starts, starts + length, Origins.in_file(path, starts, places))


@final
class StreamedRecords(ChunkReader):
    """Reads records sequentially from a compressed or remote file."""

    def __init__(self, file: FixedRecordFile) -> None:
        super().__init__(file.path)
        self._file = file
        self._start()

    def _rewind(self) -> None:
        self.close()
        self._start()

    def _byte(self, row: int) -> int | None:
        return self._file.byte_of(self._first + row)

    def _start(self) -> None:
        self._bytes = open_bytes(self.path, self._file.compression)
        self._rest = b""  # bytes that may belong to the footer or to an incomplete record
        self._header_left = self._file.header_bytes
        self._place = self._file.header_bytes  # where the next record starts
        self._body = -self._file.footer_bytes  # how many bytes of records were read

    def _more(self) -> Array | Texts | None:
        if self._header_left > 0:
            return self._after_header()
        more = self._bytes.read(_READ)
        self._body += len(more)
        if not more:
            self._check_end()
            return None
        self._rest += more
        whole = max(0, len(self._rest) - self._file.footer_bytes)
        whole -= whole % self._file.record_bytes
        records, self._rest = self._rest[:whole], self._rest[whole:]
        first, self._place = self._place, self._place + whole
        length = self._file.record_bytes
        places = np.arange(first, self._place, length)
        return _texts(self.path, np.frombuffer(records, np.uint8), places, length)

    def _after_header(self) -> Array:
        passed = len(self._bytes.read(self._header_left))
        self._header_left = self._header_left - passed if passed else -1  # -1: it ends too early
        return bytes_column([])

    def _check_end(self) -> None:
        short = self._header_left < 0 or self._body < 0
        if short or self._body % self._file.record_bytes:
            raise DataLossError(self._file.misfit(self._body), fix=_FIX).in_file(self.path)

    def close(self) -> None:
        self._bytes.close()
