"""Files that are known by their names alone, before they are read."""

import os
from dataclasses import dataclass
from typing import Final, Protocol, final

from evenfeed.formats.bytes.filesystems import is_remote, local, size_of
from evenfeed.formats.bytes.inflating import open_bytes
from evenfeed.formats.bytes.mapped_files import Held, MappedFile
from evenfeed.formats.reader import DataFile


@dataclass(frozen=True)
class ByteFile(DataFile):
    """A file whose rows are bytes, perhaps compressed. Nothing is asked of it before it is read."""

    compression: str = ""

    @property
    def bytes(self) -> int:
        """How long the file is, now."""
        return size_of(self.path)

    @property
    def is_read_again(self) -> bool:
        """Whether a row is found only by reading all before it: where bytes must be decompressed."""
        return bool(self.compression)

    @property
    def fingerprint(self) -> str:
        """The name of the file, not its folder: a state holds where the files were moved."""
        return f"{self._kind} {os.path.basename(self.path)}"

    @property
    def identity(self) -> str:
        """Its whole path, and when it was last written: what is kept of its rows holds no longer than they."""
        return f"{self._kind} {self.path} {written(self.path)}"

    @property
    def _kind(self) -> str:
        return f"{type(self).__name__} {self.compression}"


@dataclass(frozen=True)
class UncountedFile(ByteFile):
    """A file of which only reading tells how many rows it has."""

    @property
    def rows(self) -> None:
        """Only reading it tells."""
        return None

    @property
    def extent(self) -> tuple[int, int]:
        """The whole file."""
        return 0, self.bytes


def written(path: str) -> str:
    """Return how long a file is and when it was last written, where it is on this machine."""
    if is_remote(path):
        return ""
    try:
        found = os.stat(local(path))
    except OSError:
        return "missing"
    return f"{found.st_size} {found.st_mtime_ns}"


# The first read is short, so that the first record comes soon; longer ones cost less for each.
_FIRST_READ: Final = 1 << 16
_LONGEST_READ: Final = 1 << 18
# A length that is damaged may say that any number of bytes is needed.
_MOST_READ: Final = 1 << 20


class ByteWindow(Protocol):
    """The bytes of a file, of which some are in memory."""

    @property
    def held(self) -> Held:
        """Those that are."""
        ...

    @property
    def first(self) -> int:
        """The place in the file at which they begin."""
        ...

    def reaches(self, stop: int) -> bool:
        """Have all bytes up to `stop` in memory, and tell whether there are so many; others may be held after."""
        ...

    def forget(self, start: int) -> None:
        """Say that nobody asks any more for what comes before `start`."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@final
class Mapped:
    """A file in memory as it is."""

    first: int = 0

    def __init__(self, path: str) -> None:
        self._file = MappedFile(path)

    @property
    def held(self) -> Held:
        """All of them."""
        return self._file.bytes

    def reaches(self, stop: int) -> bool:
        """Tell whether the file has `stop` bytes or more; raise where it was cut short."""
        self._file.check()
        return stop <= len(self.held)

    def forget(self, start: int) -> None:
        """Do nothing: the system keeps what it has room for."""

    def close(self) -> None:
        """Forget the file; it is unmapped when nobody looks at it any more."""
        self._file.close()


@final
class Streamed:
    """What is read from a file one piece after the other, of which a window is in memory.

    It begins at a byte, which is the first where the file is compressed.
    """

    held: bytes

    def __init__(self, path: str, compression: str, start: int = 0) -> None:
        start = 0 if compression else start
        self.held = b""
        self.first = start
        self._bytes = open_bytes(path, compression, start)
        self._needed = start
        self._next_read = _FIRST_READ

    def reaches(self, stop: int) -> bool:
        """Read on until `stop`, and tell whether there is so much."""
        size = self.first + len(self.held)
        if size >= stop:
            return True
        parts = [self.held[self._needed - self.first :]]
        try:
            while size < stop and (more := self._bytes.read(self._size(stop - size))):
                parts.append(more)
                size += len(more)
        finally:  # what came before an error is whole
            self.held, self.first = b"".join(parts), self._needed
        return size >= stop

    def _size(self, missing: int) -> int:
        """Return how much to read at once: more each time, and more where it is said to be needed."""
        size, self._next_read = self._next_read, min(2 * self._next_read, _LONGEST_READ)
        return max(size, min(missing, _MOST_READ))

    def forget(self, start: int) -> None:
        """Drop what comes before `start` when more is read."""
        self._needed = start

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()
