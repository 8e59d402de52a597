"""Files of lines."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError
from evenfeed.formats.bytes.byte_windows import UncountedFile
from evenfeed.formats.bytes.inflating import open_bytes
from evenfeed.formats.chunks import ChunkReader, bytes_column

# The first read is short, so that the first line comes soon; longer ones cost less for each line.
_FIRST_READ: Final = 1 << 15
_LONGEST_READ: Final = 1 << 18
# A file that is no text may have no end of line in all its bytes, and /dev/zero has no end either.
LONGEST: Final = 1 << 28
_GZIP_BEGINS: Final = b"\x1f\x8b\x08"


@final
@dataclass(frozen=True)
class LineFile(UncountedFile):
    """A file whose rows are its lines."""

    read_by: ClassVar[str] = "TextLineDataset"

    def open(self) -> "LineReader":
        """Open it, for one iterator: a reader has a position."""
        return LineReader(self.path, self.compression)


@final
class LineReader(ChunkReader):
    r"""Reads lines without what ends them, `\n` or `\r\n`; the last line may have no end."""

    def __init__(self, path: str, compression: str = "", first_read: int = _FIRST_READ) -> None:
        super().__init__(path)
        self._compression = compression
        self._next_read = first_read
        self._bytes = open_bytes(path, compression)
        self._rest = b""  # the beginning of a line whose end is not read yet
        self._text = b""  # what the chunk is made of
        self._begin = 0  # the byte at which the chunk begins
        self._behind = 0  # and the one behind it

    def mark(self) -> Any:
        """Return the byte and the row at which the chunk begins; None where bytes cannot be found again."""
        return None if self._compression else [self._begin, self._first]

    def _byte(self, row: int) -> int | None:
        return self._begin + behind_lines(self._text, row)

    def seek(self, mark: Any) -> None:
        """Go to a byte at which a line begins."""
        if mark is not None:
            self._go_to(mark[0])
            self._begin_at(mark[1])

    def _rewind(self) -> None:
        self._go_to(0)

    def _go_to(self, byte: int) -> None:
        self._bytes.close()
        self._bytes = open_bytes(self.path, self._compression, byte)
        self._rest, self._begin, self._behind = b"", byte, byte

    def _more(self) -> Array | None:
        text = self._whole_lines()
        if not text:
            return None
        self._text, self._begin, self._behind = text, self._behind, self._behind + len(text)
        return bytes_column(_split(text))

    def _whole_lines(self) -> bytes:
        """Return bytes up to the end of some line, or of the file."""
        parts, length = [self._rest], len(self._rest)
        while True:
            more = self._bytes.read(self._next_read)
            if self._behind == 0 and not self._compression and len(parts) == 1:
                self._check_plain(more)
            self._next_read = min(2 * self._next_read, _LONGEST_READ)
            end = more.rfind(b"\n") + 1
            if end or not more:
                self._rest = more[end:]
                return b"".join([*parts, more[:end]])
            parts.append(more)  # joined once: a line may be longer than many reads
            if (length := length + len(more)) > LONGEST:
                raise endless(self.path, "line", self._behind)

    def _check_plain(self, beginning: bytes) -> None:
        if beginning.startswith(_GZIP_BEGINS):
            raise DataLossError(
                f"{self.path} has no lines: a GZIP file begins at byte 0.",
                fix='pass compression_type="GZIP".',
            ).in_file(self.path, 0)

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()


def endless(path: str, what: str, byte: int) -> DataLossError:
    """Return the error for a line or record that does not end."""
    return DataLossError(
        f"{path}: the {what} at byte {byte} does not end within {LONGEST} bytes.",
        fix="check whether it is a text file, and how it is compressed.",
    ).in_file(path, byte)


def behind_lines(text: bytes, count: int) -> int:
    r"""Return the place behind the first `count` lines of a text, each of which ends at `\n`."""
    if not count:
        return 0
    return int(np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))[count - 1]) + 1


def _split(text: bytes) -> list[bytes]:
    if b"\r" in text:  # one byte is found ten times faster than two
        text = text.replace(b"\r\n", b"\n")
    lines = text.split(b"\n")
    if not lines[-1]:
        del lines[-1]  # behind the last end of line
    return lines
