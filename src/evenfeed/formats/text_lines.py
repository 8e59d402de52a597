"""Text files, read line by line: `tf.data.TextLineDataset`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, ClassVar, Final, Self, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.bytes.byte_windows import UncountedFile
from evenfeed.formats.bytes.inflating import open_bytes
from evenfeed.formats.bytes.small_files import contents_of
from evenfeed.formats.reader import ChunkReader, Together, bytes_column

# The first read is short, so that the first line arrives soon; longer reads cost less per line.
_FIRST_READ: Final = 1 << 15
_LONGEST_READ: Final = 1 << 18
# A binary file may have no line ending at all, and /dev/zero never ends.
LONGEST: Final = 1 << 28
GZIP_MAGIC: Final = b"\x1f\x8b\x08"


@dataclass(frozen=True)
class FileOfLines(UncountedFile):
    """A file of lines, or those of its lines that begin in a range of bytes."""

    within: tuple[int, int] | None = field(default=None, kw_only=True)

    @property
    def extent(self) -> tuple[int, int]:
        return self.within or super().extent

    def part(self, start: int, stop: int) -> Self | None:
        return None if self.compression else replace(self, within=(start, stop))

    def named(self, row: int) -> str:
        after = f" after byte {self.within[0]}" if self.within and self.within[0] else ""
        return f"{super().named(row)}{after}"

    @property
    def _kind(self) -> str:
        return (
            f"{super()._kind} {self.within[0]}-{self.within[1]}" if self.within else super()._kind
        )


@final
@dataclass(frozen=True)
class LineFile(FileOfLines):
    """A file whose rows are its lines."""

    read_by: ClassVar[str] = "TextLineDataset"
    reads_together: ClassVar[bool] = True

    def open(self) -> "LineReader":
        """Open the file for one iterator: the reader has a position."""
        return LineReader(self.path, self.compression, within=self.within)

    @classmethod
    def read_together(cls, files: Sequence["LineFile"]) -> Together | None:
        undivided = list(takewhile(lambda file: file.within is None, files))
        whole = takewhile(_is_plain, contents_of(undivided))
        contents = [text if not text or text.endswith(b"\n") else text + b"\n" for text in whole]
        if not contents:
            return None
        lines = _cut(b"".join(contents))
        ends = np.cumsum([text.count(b"\n") for text in contents])
        return Together(Block((lines,), len(lines)), ends)


def _is_plain(text: bytes) -> bool:
    r"""Return True for text that may be joined with more. A `\r` at the end would become part of a line ending."""
    return not text.startswith(GZIP_MAGIC) and not text.endswith(b"\r")


@final
class LineReader(ChunkReader):
    r"""Reads lines without their line endings, `\n` or `\r\n`; the last line may have none.

    With `within`, it reads the lines whose first byte is in that range, so neighbouring ranges share no line. With
    `uncut`, lines are Texts that follow each other in one buffer, with a `\n` between them.
    """

    def __init__(  # noqa: PLR0913 - keyword-only arguments
        self,
        path: str,
        compression: str = "",
        first_read: int = _FIRST_READ,
        *,
        within: tuple[int, int] | None = None,
        longest_read: int = _LONGEST_READ,
        uncut: bool = False,
    ) -> None:
        super().__init__(path)
        self._compression = compression
        self._next_read = first_read
        self._longest_read = longest_read
        self._column = _uncut if uncut else _cut
        self._begin, self._end = within or (0, None)
        self._rest = b""  # the start of a line whose end is not read yet
        self._text = b""  # the bytes of the chunk
        self._start = 0  # the byte at which the chunk starts
        self._stop = 0  # and the byte after it
        self._is_inside_line = False  # the first line belongs to the range before, up to its end
        self._bytes = open_bytes(path, compression, self._before)
        self._place_at(self._before)

    @property
    def _before(self) -> int:
        """The byte from which the first line of the range is found: after the next line ending, unless it is 0."""
        return max(0, self._begin - 1)

    def mark(self) -> Any:
        """Return the byte and row at which the chunk starts; None for compressed files, which cannot seek."""
        return None if self._compression or self._is_inside_line else [self._start, self._first]

    def _byte(self, row: int) -> int | None:
        return self._start + behind_lines(self._text, row)

    def seek(self, mark: Any) -> None:
        """Go to the start of a line."""
        if mark is not None:
            self._go_to(mark[0])
            self._is_inside_line = False
            self._start_at(mark[1])

    def _rewind(self) -> None:
        self._go_to(self._before)

    def _go_to(self, byte: int) -> None:
        self._bytes.close()
        self._bytes = open_bytes(self.path, self._compression, byte)
        self._place_at(byte)

    def _place_at(self, byte: int) -> None:
        self._rest, self._start, self._stop = b"", byte, byte
        self._is_inside_line = self._begin > 0

    def _more(self) -> Array | Texts | None:
        if self._end is not None and self._stop >= self._end:
            return None
        text = self._whole_lines()
        if self._is_inside_line:
            self._is_inside_line = False
            first = text.find(b"\n") + 1 or len(text)
            self._stop, text = self._stop + first, text[first:]
            if not text:  # the range before has all of it
                return self._more()
        if not text or (self._end is not None and self._stop >= self._end):
            return None
        if self._end is not None and self._stop + len(text) > self._end:
            text = text[: text.find(b"\n", self._end - 1 - self._stop) + 1 or len(text)]
        self._text, self._start, self._stop = text, self._stop, self._stop + len(text)
        return self._column(text)

    def _whole_lines(self) -> bytes:
        """Return bytes up to the end of a line, or of the file."""
        parts, length = [self._rest], len(self._rest)
        while True:
            more = self._bytes.read(self._next_read)
            if self._stop == 0 and not self._compression and len(parts) == 1:
                self._check_plain(more)
            self._next_read = min(2 * self._next_read, self._longest_read)
            end = more.rfind(b"\n") + 1
            if end or not more:
                self._rest = more[end:]
                return b"".join([*parts, more[:end]])
            parts.append(more)  # joined once: a line may span many reads
            if (length := length + len(more)) > LONGEST:
                raise endless(self.path, "line", self._stop)

    def _check_plain(self, start: bytes) -> None:
        if start.startswith(GZIP_MAGIC):
            raise DataLossError(
                f"{self.path} is not plain text: it starts with a GZIP header.",
                fix='pass compression_type="GZIP".',
            ).in_file(self.path, 0)

    def close(self) -> None:
        self._bytes.close()


def endless(path: str, what: str, byte: int) -> DataLossError:
    """Return the error for a line or record that is too long."""
    return DataLossError(
        f"{path}: the {what} at byte {byte} does not end within {LONGEST} bytes.",
        fix="check that this is a text file, and that compression_type is right.",
    ).in_file(path, byte)


def behind_lines(text: bytes, count: int) -> int:
    r"""Return the offset after the first `count` lines of a text, each ending with `\n`."""
    if not count:
        return 0
    return int(np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))[count - 1]) + 1


def _cut(text: bytes) -> Array:
    lines = _with_short_endings(text).split(b"\n")
    if not lines[-1]:
        del lines[-1]  # after the last line ending
    return bytes_column(lines)


def _uncut(text: bytes) -> Texts:
    data = np.frombuffer(_with_short_endings(text), np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if data[-1] != ord("\n"):
        ends = np.append(ends, len(data))
    return Texts(data, np.append(np.int64(0), ends[:-1] + 1), ends)


def _with_short_endings(text: bytes) -> bytes:
    # Searching for one byte is ten times faster than for two.
    return text.replace(b"\r\n", b"\n") if b"\r" in text else text
