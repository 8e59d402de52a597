"""TFRecord files: records of bytes, each behind its length and before its checksum.

A record is its length (8 bytes), the checksum of these 8 (4 bytes), the payload, and its checksum (4).
"""

import struct
from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.formats.byte_files import ByteFile
from evenfeed.formats.byte_windows import ByteWindow, open_window
from evenfeed.formats.checksums import all_masked, masked
from evenfeed.formats.chunks import bytes_column
from evenfeed.formats.filesystems import is_remote
from evenfeed.formats.reader import Reader

HEADER: Final = struct.Struct("<QI")
FOOTER: Final = struct.Struct("<I")
_AROUND: Final = HEADER.size + FOOTER.size

# Of a file that is larger, only reading it tells how many records it has: to look at all of them first
# would keep the first element waiting.
_MOST_COUNTED: Final = 1 << 28
# A record of a compressed file must fit into memory, whatever its length says.
_LONGEST: Final = 1 << 31
_HEADERS_KEPT: Final = 1 << 16


@final
@dataclass(frozen=True)
class RecordFile(ByteFile):
    """A TFRecord file."""

    read_by: ClassVar[str] = "TFRecordDataset"

    @property
    def rows(self) -> None:
        """Not known before the file is looked at."""

    def counted(self) -> int | None:
        """Return how many records it has, where it is plain, here, and not large."""
        if self.compression or is_remote(self.path) or self.extent[1] > _MOST_COUNTED:
            return None
        return self.index.rows

    @cached_property
    def index(self) -> "RecordIndex":
        """Where each record begins, found at first use."""
        return RecordReader(self).indexed()

    @property
    def extent(self) -> tuple[int, int]:
        """The whole file, as long as it is now; nothing where it cannot be found."""
        try:
            return 0, self.bytes
        except EvenfeedError:
            return 0, 0

    def open(self) -> "RecordReader":
        """Open it; at the first read, in truth."""
        return RecordReader(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordFile, (self.path, self.compression)


@final
@dataclass(frozen=True)
class RecordIndex:
    """Where the records of a file begin, and where the last one ends.

    Attributes:
        places: The first byte of each record, and the one behind the last.
        is_whole: Whether the file ends there; else there is one row more, which cannot be read.
    """

    places: Positions
    is_whole: bool

    @property
    def rows(self) -> int:
        """How many rows there are to be read, one that fails among them."""
        return len(self.places) - self.is_whole


@final
class RecordReader(Reader):
    """Reads records one after the other, or by position where the file has an index."""

    def __init__(self, file: RecordFile) -> None:
        self.path = file.path
        self._file = file
        self._opened: ByteWindow | None = None
        self._row = 0  # the next one
        self._place = 0  # where it begins
        self._passed = False  # only a payload was damaged, when `read` last raised
        self._ended = False  # a length is damaged: nobody knows where the next record begins
        self._lengths: dict[bytes, int] = {}  # of headers whose checksum was right

    @property
    def goes_on(self) -> bool:
        """Whether only a payload was damaged, so that the place of the next record is known."""
        return self._passed

    def read(self, start: int, count: int) -> Block | None:
        """Return the next records."""
        self._passed = False
        self._go_to(start)
        if self._ended:
            return None
        places, lengths = self._spans(count)
        if not places:
            return None
        try:
            block = self._block(places, lengths)
        except DataLossError:
            self._step(places[:1], lengths[:1])
            self._passed = True
            raise
        self._step(places[: block.length], lengths[: block.length])
        return block

    def fetch(self, positions: Positions) -> Block:
        """Return the records at `positions`, by the index of the file."""
        places = self._file.index.places
        if not self._file.index.is_whole and positions.max() == len(places) - 1:
            self._ended, self._row, self._place = False, len(places) - 1, int(places[-1])
            self._spans(1)  # raises what is wrong there
            raise self._damaged(self._place, "it changed while it was read")
        found = places[positions].tolist()
        lengths = (places[positions + 1] - places[positions] - _AROUND).tolist()
        block = self._block(found, lengths)
        if block.length < len(found):
            self._block(found[block.length :], lengths[block.length :])  # raises
        return block

    def whole(self, start: int, count: int) -> Block:
        """Return all of `count` records from `start` on, by the index of the file."""
        return self.fetch(np.arange(start, start + count, dtype=np.int64))

    def indexed(self) -> RecordIndex:
        """Look at all lengths."""
        places = [0]
        try:
            while True:
                found, lengths = self._spans(1 << 16)
                if not found:
                    break
                self._step(found, lengths)
                places += [*found[1:], self._place]
        except EvenfeedError:
            return RecordIndex(np.array(places, np.int64), is_whole=False)
        finally:
            self.close()
        return RecordIndex(np.array(places, np.int64), is_whole=True)

    def mark(self) -> Any:
        """Return the next row and its place, -1 behind a damaged length; None where bytes cannot be found again."""
        if self._file.compression and not self._ended:
            return None
        return [self._row, -1 if self._ended else self._place]

    def seek(self, mark: Any) -> None:
        """Go to a place at which a record begins."""
        if mark is not None:
            self.close()
            self._row, self._place = mark
            self._ended = self._place < 0

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    @property
    def _source(self) -> ByteWindow:
        if self._opened is None:
            self._opened = open_window(self.path, self._file.compression, self._place)
        return self._opened

    def _go_to(self, row: int) -> None:
        if row < self._row:
            self.close()
            self._row, self._place, self._ended = 0, 0, False
        while self._row < row and not self._ended:
            places, lengths = self._spans(min(row - self._row, 1 << 10))
            if not places:
                return
            self._step(places, lengths)

    def _step(self, places: list[int], lengths: list[int]) -> None:
        """Go behind records."""
        self._row += len(places)
        self._place = places[-1] + lengths[-1] + _AROUND
        self._source.forget(self._place)

    def _spans(self, count: int) -> tuple[list[int], list[int]]:
        """Return where the next records begin and how long they are, without a look at them."""
        place, source = self._place, self._source
        reaches, cut, known = source.reaches, source.cut, self._lengths
        places: list[int] = []
        lengths: list[int] = []
        try:
            while len(places) < count and reaches(place + 1):
                header = cut(place, place + HEADER.size)
                # Most have a length that another had, checksum and all.
                length = known.get(header)
                if length is None:
                    length = self._length(header, place)
                stop = place + length + _AROUND
                if not reaches(stop):
                    raise self._damaged(place, f"the record there, of {length} bytes, is cut off")
                places.append(place)
                lengths.append(length)
                place = stop
        except DataLossError:
            if not places:  # else they come first, and the error again at the next read
                self._ended = True
                self._row += 1
                raise
        return places, lengths

    def _length(self, header: bytes, place: int) -> int:
        if len(header) < HEADER.size:
            raise self._damaged(place, "the length there is cut off")
        length, crc = HEADER.unpack(header)
        if masked(header[:8]) != crc:
            hint = " (is it a TFRecord file, and not compressed?)" if place == 0 else ""
            raise self._damaged(place, f"the checksum of the length there is another{hint}")
        if self._file.compression and length > _LONGEST:
            raise self._damaged(place, f"the record there is to have {length} bytes")
        if len(self._lengths) < _HEADERS_KEPT:
            self._lengths[header] = length
        return length

    def _block(self, places: list[int], lengths: list[int]) -> Block:
        """Return records; those before the first whose checksum is wrong, an error where that is the first."""
        starts = [place + HEADER.size for place in places]
        stops = list(map(add, starts, lengths))
        records = self._source.cuts(starts, stops)
        said = b"".join(self._source.cuts(stops, [stop + FOOTER.size for stop in stops]))
        if len(said) < FOOTER.size * len(stops):
            raise self._damaged(places[0], "it became shorter while it was read")
        wrong = np.flatnonzero(np.frombuffer(said, "<u4") != all_masked(records))
        if len(wrong):
            if wrong[0] == 0:
                raise self._damaged(
                    places[0] + HEADER.size, "the checksum of the record there is another"
                )
            records = records[: wrong[0]]
        return Block((bytes_column(records),), len(records))

    def _damaged(self, place: int, why: str) -> DataLossError:
        unpacked = " of what it holds" if self._file.compression else ""
        return DataLossError(
            f"{self.path} is damaged at byte {place}{unpacked}: {why}.",
            fix="write it anew; dataset.ignore_errors() reads what is whole.",
        )
