"""The bytes of a file by place: mapped into memory, or a window on what is read from it."""

import mmap
import os
from collections.abc import Sequence
from typing import Final, Protocol, final

from evenfeed.formats.filesystems import is_remote, open_file
from evenfeed.formats.inflating import open_bytes

_READ: Final = 1 << 18


class ByteWindow(Protocol):
    """The bytes of a file, by place."""

    def cut(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` up to `stop`, or to the end of the file."""
        ...

    def cuts(self, starts: Sequence[int], stops: Sequence[int]) -> list[bytes]:
        """Return many pieces, which the file must have."""
        ...

    def reaches(self, stop: int) -> bool:
        """Tell whether the file has `stop` bytes or more."""
        ...

    def forget(self, start: int) -> None:
        """Say that nobody asks any more for what comes before `start`."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def open_window(path: str, compression: str, start: int = 0) -> ByteWindow:
    """Open a file at a byte, which is the first where it is compressed."""
    if compression or is_remote(path):
        return Streamed(path, compression, 0 if compression else start)
    return Mapped(path)


@final
class Mapped:
    """A file in memory as it is."""

    def __init__(self, path: str) -> None:
        with open_file(path) as file:
            self._size = os.fstat(file.fileno()).st_size
            self._bytes = (
                mmap.mmap(file.fileno(), self._size, access=mmap.ACCESS_READ) if self._size else b""
            )

    def cut(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` up to `stop`."""
        return self._bytes[start:stop]

    def cuts(self, starts: Sequence[int], stops: Sequence[int]) -> list[bytes]:
        """Return many pieces."""
        held = self._bytes  # a name of its own: this runs for every record
        return [held[start:stop] for start, stop in zip(starts, stops, strict=True)]

    def reaches(self, stop: int) -> bool:
        """Tell whether the file has `stop` bytes or more."""
        return stop <= self._size

    def forget(self, start: int) -> None:
        """Do nothing: the system keeps what it has room for."""

    def close(self) -> None:
        """Unmap the file."""
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()


@final
class Streamed:
    """What is read from a file that is compressed or far away, of which a window is in memory."""

    def __init__(self, path: str, compression: str, start: int) -> None:
        self._bytes = open_bytes(path, compression, start)
        self._window = bytearray()
        self._first = start  # where in the file the window begins

    def cut(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` up to `stop`, which must not have been forgotten."""
        self.reaches(stop)
        return bytes(self._window[start - self._first : stop - self._first])

    def cuts(self, starts: Sequence[int], stops: Sequence[int]) -> list[bytes]:
        """Return many pieces."""
        return list(map(self.cut, starts, stops))

    def reaches(self, stop: int) -> bool:
        """Read on until `stop`, and tell whether there is so much."""
        while self._first + len(self._window) < stop:
            more = self._bytes.read(_READ)
            if not more:
                return False
            self._window += more
        return True

    def forget(self, start: int) -> None:
        """Drop what comes before `start`, a piece at a time: each time moves what stays."""
        if start - self._first > _READ:
            del self._window[: start - self._first]
            self._first = start

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()
