"""TFRecord files: records of bytes, each behind its length and before its checksum."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.formats.bytes.byte_windows import ByteFile, ByteWindow, Mapped, Streamed, written
from evenfeed.formats.bytes.filesystems import is_remote
from evenfeed.formats.reader import Reader
from evenfeed.formats.tfrecord.framing import (
    AROUND,
    HEADER_BYTES,
    LENGTH,
    first_wrong,
    header_of,
    payloads_of,
    walked,
)

# Of a file that is larger, only reading it tells how many records it has: to look at all of them first
# would keep the first element waiting.
_MOST_COUNTED: Final = 1 << 28
# So many bytes of records are in memory at once, if more are asked for.
_MOST_AT_ONCE: Final = 1 << 21
_SHORT: Final = 1 << 12
# A record of a compressed file must fit into memory, whatever its length says.
_LONGEST: Final = 1 << 31


@final
@dataclass(frozen=True)
class RecordFile(ByteFile):
    """A TFRecord file."""

    read_by: ClassVar[str] = "TFRecordDataset"

    @property
    def rows(self) -> None:
        """Not known before the file is looked at."""

    def counted(self) -> int | None:
        """Return how many records it has, where it is plain, here, not large, and whole.

        Nobody knows how many records follow a damaged length. So a file that has one is read from its
        beginning on, and everybody meets the error: whoever skips its records, and every shard.
        """
        if self.compression or is_remote(self.path) or self.extent[1] > _MOST_COUNTED:
            return None
        places = self.index.looked_up()
        return None if places is None else len(places) - 1

    @cached_property
    def index(self) -> "RecordIndex":
        """Where each record begins, found at first use."""
        return RecordIndex(self)

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
class RecordIndex:
    """Where the records of a file begin, and where the last one ends."""

    def __init__(self, file: RecordFile) -> None:
        self._file = file
        self._written: str | None = None  # when it was looked at last
        self._places: Positions | None = None

    def looked_up(self) -> Positions | None:
        """Return `places`, after another look at the file if it was written since the last one."""
        now = written(self._file.path)
        if now != self._written:
            self._places, self._written = RecordReader(self._file).indexed(), now
        return self._places

    @property
    def places(self) -> Positions | None:
        """The first byte of each record, and the one behind the last; None where the file is damaged."""
        return self.looked_up() if self._written is None else self._places


@final
class RecordReader(Reader):
    """Reads records one after the other, or by position where the file has an index."""

    def __init__(self, file: RecordFile) -> None:
        self.path = file.path
        self._file = file
        self._opened: Streamed | None = None
        self._mapped: Mapped | None = None  # for those who ask by position
        self._row = 0  # the next one
        self._place = 0  # where it begins
        self._usual = 0.0  # how many bytes a record takes, a little more than lately
        self._passed = False  # only a payload was damaged, when `read` last raised
        self._ended = False  # a length is damaged: nobody knows where the next record begins
        self._last: tuple[int, Positions] = 0, np.zeros(0, np.int64)  # what was passed last

    @property
    def goes_on(self) -> bool:
        """Whether only a payload was damaged, so that the place of the next record is known."""
        return self._passed

    def read(self, start: int, count: int) -> Block | None:
        """Return the next records."""
        self._passed = False
        self._go_to(start)
        places = self._places(count)
        if len(places) == 1:
            return None
        try:
            block = self._block(self._source, places[:-1], places[1:])
        except DataLossError:
            self._step(places[:2])
            self._passed = True
            raise
        self._step(places[: block.length + 1])
        return block

    def fetch(self, positions: Positions) -> Block:
        """Return the records at `positions`, by the index of the file."""
        places = self._file.index.places
        if places is None or positions.max() + 1 >= len(places):
            raise self._damaged(0, "it changed while it was read")
        starts, stops = places[positions], places[positions + 1]
        if self._mapped is None:
            self._mapped = Mapped(self.path)
        if not self._mapped.reaches(int(stops.max())):
            raise self._damaged(int(starts[0]), "it became shorter while it was read")
        block = self._block(self._mapped, starts, stops)
        if block.length < len(starts):
            self._block(self._mapped, starts[block.length :], stops[block.length :])  # raises
        return block

    def whole(self, start: int, count: int) -> Block:
        """Return all of `count` records from `start` on, by the index of the file."""
        return self.fetch(np.arange(start, start + count, dtype=np.int64))

    def byte_of(self, row: int) -> int | None:
        """Return where a record begins, of those that were read last or by an index."""
        first, places = self._last
        if self._mapped is not None and self._file.index.places is not None:
            first, places = 0, self._file.index.places
        return int(places[row - first]) if first <= row < first + len(places) else None

    def indexed(self) -> Positions | None:
        """Look at all lengths, and return where records begin and the last one ends; None if one is damaged."""
        parts = [np.zeros(1, np.int64)]
        try:
            while len(places := self._places(1 << 16)) > 1:
                self._step(places)
                parts.append(places[1:])
        except EvenfeedError:
            return None  # whoever reads the records meets it again
        finally:
            self.close()
        return np.concatenate(parts)

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
        """Go behind records."""
        self._last = self._row, places[:-1]
        self._row += len(places) - 1
        self._place = int(places[-1])
        self._source.forget(self._place)

    def _places(self, count: int) -> Positions:
        """Return where the next records begin and the last one ends, one place alone behind the last of all.

        All of them are in memory then, and nobody has looked at what they hold.
        """
        place = self._place
        if self._ended or not self._source.reaches(place + 1):
            return np.array([place])
        self._reach_for(count)
        found = self._walked(count)
        if len(found) == 1:
            try:
                self._reach_behind_next()
            except DataLossError:
                self._ended = True
                self._row += 1
                raise
            found = self._walked(count)
        return found

    def _reach_for(self, count: int) -> None:
        """Have about so many short records in memory, of a plain file: to join them later takes longer."""
        wanted = min(_MOST_AT_ONCE, int(count * self._usual))
        if wanted and self._usual < _SHORT and not self._file.compression:
            with suppress(EvenfeedError):  # it is met again when those before it are delivered
                self._source.reaches(self._place + wanted)

    def _walked(self, count: int) -> Positions:
        source = self._source
        at, held = self._place - source.first, source.held
        found = walked(held, at, len(held), count) + source.first
        self._usual = 1.05 * (found[-1] - found[0]) / max(1, len(found) - 1)
        return found

    def _reach_behind_next(self) -> None:
        """Have the next record in memory; raise if it is not there."""
        place, source = self._place, self._source
        if not source.reaches(place + HEADER_BYTES):
            raise self._damaged(place, "the length there is cut off")
        at = place - source.first
        length: int = LENGTH.unpack_from(source.held, at)[0]
        if source.held[at : at + HEADER_BYTES] != header_of(length):
            hint = " (is it a TFRecord file, and not compressed?)" if place == 0 else ""
            raise self._damaged(place, f"the checksum of the length there is another{hint}")
        if self._file.compression and length > _LONGEST:
            raise self._damaged(place, f"the record there is to have {length} bytes")
        if not source.reaches(place + length + AROUND):
            raise self._damaged(place, f"the record there, of {length} bytes, is cut off")

    def _block(self, window: ByteWindow, starts: Positions, stops: Positions) -> Block:
        """Return records; those before the first whose checksum is wrong, an error where that is the first."""
        column = payloads_of(self.path, window, starts, stops)
        wrong = first_wrong(column)
        if wrong is None:
            return Block((column,), len(column))
        if wrong == 0:
            raise self._damaged(
                int(starts[0]) + HEADER_BYTES, "the checksum of the record there is another"
            )
        return Block((column[:wrong],), wrong)

    def _damaged(self, place: int, why: str) -> DataLossError:
        unpacked = " of what it holds" if self._file.compression else ""
        return DataLossError(
            f"{self.path} is damaged at byte {place}{unpacked}: {why}.",
            fix="write it anew; dataset.ignore_errors() reads what is whole.",
        ).in_file(self.path, place)
