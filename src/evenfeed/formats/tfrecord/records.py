"""Reading TFRecord files: `tf.data.TFRecordDataset`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.concurrency.progress import advance
from evenfeed.core.concurrency.weak_table import WeakTable
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.core.text.text_columns import Origins, Texts
from evenfeed.formats.bytes.byte_windows import ByteFile, ByteWindow, Mapped, Streamed, written
from evenfeed.formats.bytes.filesystems import is_remote
from evenfeed.formats.bytes.small_files import contents_of, ends_of
from evenfeed.formats.reader import Reader, Together
from evenfeed.formats.tfrecord.framing import (
    AROUND,
    FOOTER,
    HEADER_BYTES,
    LENGTH,
    first_wrong,
    header_of,
    payloads_of,
    walked,
)

# Larger files are not counted in advance: scanning them would delay the first element.
_MOST_COUNTED: Final = 1 << 28
# The most bytes of records to load at once.
_MOST_AT_ONCE: Final = 1 << 21
_SHORT: Final = 1 << 16
# The longest record of a compressed file: it must fit in memory, even if its length is damaged.
_LONGEST: Final = 1 << 31


@final
@dataclass(frozen=True)
class RecordFile(ByteFile):
    """A TFRecord file."""

    read_by: ClassVar[str] = "TFRecordDataset"
    reads_together: ClassVar[bool] = True

    @property
    def rows(self) -> None:
        """None: counting takes a scan of the file, see `counted`."""

    @property
    def is_countable(self) -> bool:
        """True if it is uncompressed, local and not too large."""
        remote = self.compression or is_remote(self.path)
        return not remote and self.extent[1] <= _MOST_COUNTED

    def counted(self) -> int | None:
        """Return the number of records; None if it is not countable, or damaged.

        The number of records after a damaged length is unknown. So a damaged file is read sequentially, and every
        shard raises the error, even if it skips these records.
        """
        if not self.is_countable:
            return None
        places = self.index.looked_up()
        return None if places is None else len(places) - 1

    @property
    def index(self) -> "RecordIndex":
        """The places of the records, scanned on first use."""
        return _indices.of(self, lambda: RecordIndex(self.path, self.compression))

    @property
    def extent(self) -> tuple[int, int]:
        """The whole file at its current size; empty if it does not exist."""
        try:
            return 0, self.bytes
        except EvenfeedError:
            return 0, 0

    def open(self) -> "RecordReader":
        """Return a reader, which opens the file at its first read."""
        return RecordReader(self)

    @classmethod
    def read_together(cls, files: Sequence["RecordFile"]) -> Together | None:
        contents = contents_of(files)
        if not contents:
            return None
        data, ends = b"".join(contents), np.array([*ends_of(contents)])
        places = walked(data, 0, len(data), len(data))
        # In a whole file, the last record ends where the file does.
        stops = np.searchsorted(places, ends)
        whole = _leading(places[np.minimum(stops, len(places) - 1)] == ends)
        rows = int(stops[whole - 1]) if whole else 0
        origins = Origins(
            tuple(file.path for file in files[:whole]),
            np.append(np.int64(0), ends[:-1])[:whole],
            np.arange(whole),
            np.full(whole, -HEADER_BYTES),
        )
        payloads = Texts(
            np.frombuffer(data, np.uint8),
            places[:rows] + HEADER_BYTES,
            places[1 : rows + 1] - FOOTER.size,
            origins,
        )
        wrong = first_wrong(payloads) if rows else None
        if wrong is not None:
            whole = int(np.searchsorted(stops[:whole], wrong, "right"))
            rows = int(stops[whole - 1]) if whole else 0
        if not whole:
            return None

        block, ends = Block((payloads[:rows],), rows), stops[:whole]
        if files[0].compression:
            return Together(block, ends)
        return Together(
            block, ends, lambda index, row: [row, origins.of(int(payloads.starts[index]))[1]]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordFile, (self.path, self.compression)


def _leading(are_right: Array) -> int:
    """Return how many values are True before the first False."""
    return len(are_right) if are_right.all() else int(are_right.argmin())


@final
class RecordIndex:
    """Where the records of a file start, and where the last one ends."""

    def __init__(self, path: str, compression: str) -> None:
        self._path = path
        self._compression = compression
        self._written: str | None = None  # the file's state at the last scan
        self._places: Positions | None = None

    def looked_up(self) -> Positions | None:
        """Return `places`, after scanning the file again if it was modified since the last scan."""
        now = written(self._path)
        if now != self._written:
            reader = RecordReader(RecordFile(self._path, self._compression))
            self._places, self._written = reader.indexed(), now
        return self._places

    @property
    def places(self) -> Positions | None:
        """The first byte of each record, and one past the last; None if the file is damaged."""
        return self.looked_up() if self._written is None else self._places


# Kept beside the files, which are parts of plans and never change.
_indices: Final = WeakTable[RecordIndex]()


@final
class RecordReader(Reader):
    """Reads records sequentially, or by position if the file has an index."""

    def __init__(self, file: RecordFile) -> None:
        self.path = file.path
        self._file = file
        self._opened: Streamed | None = None
        self._mapped: Mapped | None = None  # for `fetch`
        self._row = 0  # the next row
        self._place = 0  # where it starts
        self._record_size = 0.0  # bytes per record lately, plus a margin
        self._payload_failed = False  # the last error of `read` was a damaged payload
        self._ended = False  # a length is damaged, so the next record cannot be found
        self._last: tuple[int, Positions] = 0, np.zeros(0, np.int64)  # the rows read last

    @cached_property
    def _index(self) -> RecordIndex:
        return self._file.index

    @property
    def goes_on(self) -> bool:
        """True if only a payload was damaged: then the start of the next record is known."""
        return self._payload_failed

    def read(self, start: int, count: int) -> Block | None:
        self._payload_failed = False
        self._go_to(start)
        places = self._places(count)
        if len(places) == 1:
            return None
        try:
            block = self._block(self._source, places[:-1], places[1:])
        except DataLossError:
            self._step(places[:2])
            self._payload_failed = True
            raise
        self._step(places[: block.length + 1])
        return block

    def fetch(self, positions: Positions) -> Block:
        """Return the records at `positions`, using the index of the file."""
        places = self._index.places
        if places is None or positions.max() + 1 >= len(places):
            raise self._damaged(0, "it changed while it was being read")
        starts, stops = places[positions], places[positions + 1]
        if self._mapped is None:
            self._mapped = Mapped(self.path)
        if not self._mapped.reaches(int(stops.max())):
            raise self._damaged(int(starts[0]), "it was truncated while it was being read")
        block = self._block(self._mapped, starts, stops)
        if block.length < len(starts):
            self._block(self._mapped, starts[block.length :], stops[block.length :])  # raises
        return block

    def whole(self, start: int, count: int) -> Block:
        """Return exactly `count` records from `start` on, using the index of the file."""
        return self.fetch(np.arange(start, start + count, dtype=np.int64))

    def byte_of(self, row: int) -> int | None:
        """Return where a record starts, if it was read last or the file has an index."""
        first, places = self._last
        if self._mapped is not None and self._index.places is not None:
            first, places = 0, self._index.places
        return int(places[row - first]) if first <= row < first + len(places) else None

    def indexed(self) -> Positions | None:
        """Scan all lengths. Return the start of each record and the end of the last; None if a length is damaged."""
        parts = [np.zeros(1, np.int64)]
        try:
            while len(places := self._places(1 << 16)) > 1:
                advance(int(places[-1] - places[0]))
                self._step(places)
                parts.append(places[1:])
        except EvenfeedError:
            return None  # reading the records raises it again
        finally:
            self.close()
        return np.concatenate(parts)

    def mark(self) -> Any:
        """Return the next row and its place, -1 after a damaged length; None for compressed files: they cannot seek."""
        if self._file.compression and not self._ended:
            return None
        return [self._row, -1 if self._ended else self._place]

    def seek(self, mark: Any) -> None:
        """Go to the start of a record."""
        if mark is not None:
            self.close()
            self._row, self._place = mark
            self._ended = self._place < 0

    def close(self) -> None:
        for window in (self._opened, self._mapped):
            if window is not None:
                window.close()
        self._opened = self._mapped = None

    @property
    def _source(self) -> Streamed:
        if self._opened is None:
            self._opened = Streamed(self.path, self._file.compression, self._place)
        return self._opened

    def _go_to(self, row: int) -> None:
        if row < self._row:
            self.close()
            self._row, self._place, self._ended = 0, 0, False
        while self._row < row and len(places := self._places(row - self._row)) > 1:
            self._step(places)

    def _step(self, places: Positions) -> None:
        """Advance past records."""
        self._last = self._row, places[:-1]
        self._row += len(places) - 1
        self._place = int(places[-1])
        self._source.forget(self._place)

    def _places(self, count: int) -> Positions:
        """Return the start of each next record and the end of the last; a single place at the end of the file.

        Loads these records into memory, without verifying their payloads.
        """
        place = self._place
        if self._ended or not self._source.reaches(place + 1):
            return np.array([place])
        self._reach_for(count)
        found = self._walked(count)
        if len(found) == 1:
            try:
                self._reach_next()
            except DataLossError:
                self._ended = True
                self._row += 1
                raise
            found = self._walked(count)
        return found

    def _reach_for(self, count: int) -> None:
        """Load about `count` short records of an uncompressed file at once: joining windows later takes longer."""
        wanted = min(_MOST_AT_ONCE, int(count * self._record_size))
        if wanted and self._record_size < _SHORT and not self._file.compression:
            with suppress(EvenfeedError):  # raised again once the records before it are delivered
                self._source.reaches(self._place + wanted)

    def _walked(self, count: int) -> Positions:
        source = self._source
        at, held = self._place - source.first, source.held
        found = walked(held, at, len(held), count) + source.first
        self._record_size = 1.05 * (found[-1] - found[0]) / max(1, len(found) - 1)
        return found

    def _reach_next(self) -> None:
        """Load the next record; raise if it is damaged or cut off."""
        place, source = self._place, self._source
        if not source.reaches(place + HEADER_BYTES):
            raise self._damaged(place, "the record length is cut off")
        at = place - source.first
        length: int = LENGTH.unpack_from(source.held, at)[0]
        if source.held[at : at + HEADER_BYTES] != header_of(length):
            hint = " (is this an uncompressed TFRecord file?)" if place == 0 else ""
            raise self._damaged(place, f"the checksum of the record length is wrong{hint}")
        if self._file.compression and length > _LONGEST:
            raise self._damaged(place, f"the record declares a length of {length} bytes")
        if not source.reaches(place + length + AROUND):
            raise self._damaged(place, f"the record of {length} bytes is cut off")

    def _block(self, window: ByteWindow, starts: Positions, stops: Positions) -> Block:
        """Return records up to the first with a wrong checksum. Raise if it is the very first."""
        column = payloads_of(self.path, window, starts, stops)
        wrong = first_wrong(column)
        if wrong is None:
            return Block((column,), len(column))
        if wrong == 0:
            raise self._damaged(
                int(starts[0]) + HEADER_BYTES, "the checksum of the record is wrong"
            )
        return Block((column[:wrong],), wrong)

    def _damaged(self, place: int, why: str) -> DataLossError:
        unpacked = " of its decompressed content" if self._file.compression else ""
        return DataLossError(
            f"{self.path} is damaged at byte {place}{unpacked}: {why}.",
            fix="write the file again, or skip damaged records with dataset.ignore_errors().",
        ).in_file(self.path, place)
