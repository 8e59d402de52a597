"""Files that are known by their names alone, before they are read."""

import os
from dataclasses import dataclass

from evenfeed.formats.filesystems import is_remote, local, size_of
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
