"""Files of bytes in a plan, and windows over their bytes: memory-mapped or streamed."""

import os
from dataclasses import dataclass
from typing import Final, Protocol, final

from evenfeed.formats.bytes.filesystems import is_remote, local, size_of
from evenfeed.formats.bytes.inflating import Plain, open_bytes
from evenfeed.formats.bytes.mapped_files import Held, MappedFile
from evenfeed.formats.reader import DataFile


@dataclass(frozen=True)
class ByteFile(DataFile):
    """A file whose rows are bytes, possibly compressed. Creating one does not touch the file."""

    compression: str = ""

    @property
    def bytes(self) -> int:
        """The current size of the file in bytes."""
        return size_of(self.path)

    @property
    def is_read_again(self) -> bool:
        """True for compressed files: reaching a row means decompressing everything before it."""
        return bool(self.compression)

    @property
    def fingerprint(self) -> str:
        """The file name without its directory, so that a state stays valid after the files are moved."""
        return f"{self._kind} {os.path.basename(self.path)}"

    @property
    def identity(self) -> str:
        """The full path and modification time, so that rewriting the file invalidates anything cached from it."""
        return f"{self._kind} {self.path} {written(self.path)}"

    @property
    def _kind(self) -> str:
        return f"{type(self).__name__} {self.compression}"


@dataclass(frozen=True)
class UncountedFile(ByteFile):
    """A file whose row count is unknown until it has been read."""

    @property
    def rows(self) -> None:
        return None

    @property
    def extent(self) -> tuple[int, int]:
        return 0, self.bytes


def written(path: str) -> str:
    """Return the size and modification time of a local file as text; "" for a remote one."""
    if is_remote(path):
        return ""
    try:
        found = os.stat(local(path))
    except OSError:
        return "missing"
    return f"{found.st_size} {found.st_mtime_ns}"


# The first read is short, so that the first record arrives soon; longer reads cost less per record.
_FIRST_READ: Final = 1 << 16
_LONGEST_READ: Final = 1 << 18
# A damaged length may ask for any number of bytes.
_MOST_READ: Final = 1 << 21
# Up to this many bytes are read again, so that one read returns the whole window: joining would copy all of it.
_MOST_READ_AGAIN: Final = 1 << 20


class ByteWindow(Protocol):
    """The bytes of a file, some of which are in memory."""

    @property
    def held(self) -> Held:
        """The bytes in memory."""
        ...

    @property
    def first(self) -> int:
        """The offset in the file at which `held` starts."""
        ...

    def reaches(self, stop: int) -> bool:
        """Load all bytes up to `stop`. Return True if the file has that many. May replace `held`."""
        ...

    def forget(self, start: int) -> None:
        """Declare that bytes before `start` are no longer needed."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@final
class Mapped:
    """A memory-mapped file."""

    first: int = 0

    def __init__(self, path: str) -> None:
        self._file = MappedFile(path)

    @property
    def held(self) -> Held:
        return self._file.bytes

    def reaches(self, stop: int) -> bool:
        """Return True if the file has at least `stop` bytes; raise if it was truncated."""
        self._file.check()
        return stop <= len(self.held)

    def forget(self, start: int) -> None:
        """Do nothing: the operating system manages mapped pages."""

    def close(self) -> None:
        """Drop the mapping. It is unmapped once no view of it is left."""
        self._file.close()


@final
class Streamed:
    """A file read sequentially, with a window of it in memory.

    Reading starts at byte `start`, or at the first byte if the file is compressed.
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
        size = self.first + len(self.held)
        if size >= stop:
            return True
        left = self.held[self._needed - self.first :]
        if self._reads_again(len(left)):
            size, left = size - len(left), b""
        parts = [left]
        try:
            while size < stop and (more := self._bytes.read(self._size(stop - size))):
                parts.append(more)
                size += len(more)
        finally:  # the bytes read before an error are good
            self.held, self.first = b"".join(filter(None, parts)), self._needed
        return size >= stop

    def _reads_again(self, count: int) -> bool:
        """Move back by `count` bytes if they are few and the file allows it."""
        plain = self._bytes
        return 0 < count <= _MOST_READ_AGAIN and isinstance(plain, Plain) and plain.back(count)

    def _size(self, missing: int) -> int:
        """Return how much to read next: twice as much each time, or more if more is missing."""
        size, self._next_read = self._next_read, min(2 * self._next_read, _LONGEST_READ)
        return max(size, min(missing, _MOST_READ))

    def forget(self, start: int) -> None:
        """Drop the bytes before `start` at the next read."""
        self._needed = start

    def close(self) -> None:
        self._bytes.close()
