"""A remote filesystem that fails as it is told: `faulty://name`, over files in memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import fsspec
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem


@dataclass
class Storage:
    """The files, and what goes wrong with them.

    Attributes:
        files: The content of each file, and the number of its version.
        errors: Raised by the next calls, one each.
        every: Every n-th range fails; 0 if none does.
        most: The most bytes that a range returns; 0 for all.
        stalled: How many of the next ranges do not return until `released`.
        ranges: How many ranges were asked for.
    """

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)
    every: int = 0
    most: int = 0
    stalled: int = 0
    ranges: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    numbers: Iterator[int] = field(default_factory=count)

    def write(self, name: str, content: bytes) -> str:
        """Write a file, and return its path."""
        self.files[name] = content, next(self.numbers)
        return f"faulty://{name}"

    def fetch(self, name: str, start: int, end: int) -> bytes:
        """Return a range of a file, if nothing goes wrong."""
        self.ranges += 1
        if self.stalled:
            self.stalled -= 1
            self.released.wait()
        if self.errors:
            raise self.errors.pop(0)
        if self.every and self.ranges % self.every == 0:
            raise ConnectionResetError("the connection was reset")
        end = min(end, start + self.most) if self.most else end
        return self.files[name][0][start:end]


class FaultyFile(AbstractBufferedFile):
    """A file that reads each range from the storage, without a cache."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return FaultyFileSystem.storage.fetch(self.path, start, end)

    def read(self, length: int = -1) -> bytes:
        """Read a range: like a raw file, maybe fewer bytes than asked for."""
        end = self.size if length < 0 else min(self.size, self.loc + length)
        piece = self._fetch_range(self.loc, end) if end > self.loc else b""
        self.loc += len(piece)
        return piece


class FaultyFileSystem(AbstractFileSystem):
    """The filesystem; its storage is that of the test."""

    protocol = "faulty"
    cachable = False
    storage: ClassVar[Storage] = Storage()

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """Return the size and version of a file."""
        name = self._strip_protocol(path)
        if name not in self.storage.files:
            raise FileNotFoundError(name)
        content, number = self.storage.files[name]
        return {"name": name, "size": len(content), "type": "file", "ETag": number}

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """List all files."""
        names = sorted(self.storage.files)
        return [self.info(name) for name in names] if detail else names

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> FaultyFile:
        return FaultyFile(self, path, mode, cache_type="none")


fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)


@contextmanager
def storage() -> Iterator[Storage]:
    """Yield an empty storage. When it ends, no call stays stalled."""
    FaultyFileSystem.storage = found = Storage()
    try:
        yield found
    finally:
        found.released.set()
