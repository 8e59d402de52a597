"""Remote files, read through fsspec. They notice if the file is replaced or truncated while it is being read."""

import io
import os
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, final

from evenfeed.core.errors import DataLossError, UnavailableError
from evenfeed.formats.bytes.retries import MissingBytesError, retried

_PIECE: Final = 1 << 23  # the most to read in one attempt
_WINDOW: Final = 1 << 16  # the least to read at once: readers ask for single headers and lines
# The fields of fsspec's `info` that change when a file is written; filesystems have some of them.
_WRITTEN: Final = (
    "ETag",
    "etag",
    "generation",
    "md5Hash",
    "md5",
    "crc32c",
    "checksum",
    "Content-MD5",
    "Digest",
    "LastModified",
    "last_modified",
    "Last-Modified",
    "mtime",
    "modified",
    "modify",
    "modificationTime",
    "updated",
    "version_id",
    "VersionId",
    "sha",
    "blob_id",
)
_CREATED: Final = (
    "created"  # on a local disk, a new link changes it, so the fields above come first
)


@final
@dataclass(frozen=True)
class FileVersion:
    """What a filesystem says about the content of a file.

    Attributes:
        size: The size in bytes; None if the filesystem does not know it.
        written: Properties that change when the file is written, as text.
    """

    size: int | None
    written: dict[str, str]

    @classmethod
    def found(cls, system: Any, inner: str, *, fresh: bool = False) -> Self:
        """Ask a filesystem for the version of a file; `fresh` bypasses its cache of listings."""
        try:
            if fresh:
                system.invalidate_cache(inner)
            info = system.info(inner)
        except NotImplementedError:  # it can only open files
            return cls(None, {})
        if info.get("type") == "directory":
            raise IsADirectoryError(inner)
        names = [name for name in _WRITTEN if info.get(name) is not None] or [_CREATED]
        size = info.get("size")
        return cls(
            None if size is None else int(size), {name: str(info.get(name)) for name in names}
        )

    def check(self, path: str, now: Self) -> None:
        """Raise if the file was truncated or rewritten since. A property that only one version has says nothing."""
        if self.size is not None and now.size is not None and now.size < self.size:
            raise DataLossError(
                f"{path} was truncated from {self.size} to {now.size} bytes while it was being read.",
                fix="write to a temporary name, then rename the file.",
            ).in_file(path, now.size)
        both = self.written.keys() & now.written.keys()
        if now.size != self.size or any(self.written[name] != now.written[name] for name in both):
            raise DataLossError(
                f"{path} was replaced while it was being read.",
                fix="finish writing files before reading them, or write them under new names.",
            ).in_file(path)


@final
class RemoteFile(io.RawIOBase):
    """A remote file, open for reading.

    Its version is checked after a failed read and before its last bytes are returned.

    Args:
        path: The full path, for errors.
        system: The fsspec filesystem.
        inner: The path within it.
        version: The version that the file must have; by default its current one.

    Attributes:
        version: The version of the file when it was opened.
    """

    _file: Any = None  # of the class: Python closes an object whose constructor failed

    def __init__(
        self, path: str, system: Any, inner: str, version: FileVersion | None = None
    ) -> None:
        super().__init__()
        self._path = path
        self._system = system
        self._inner = inner
        self._place = 0
        self._window = b""
        self._window_start = 0
        self.version = retried(path, None, partial(FileVersion.found, system, inner))
        if version is not None:
            version.check(path, self.version)
            self.version = version
        if self.version.size is None:  # whether such a file can be opened shows only when it is
            retried(path, 0, partial(self._range, 0, 0))

    def check(self) -> None:
        """Raise if the file was truncated or rewritten since it was opened."""
        retried(self._path, None, self._check_version)

    def _check_version(self) -> None:
        now = FileVersion.found(self._system, self._inner, fresh=True)
        self.version.check(self._path, now)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next `size` bytes, fewer only at the end of the file. After an error, nothing counts as read."""
        parts: list[bytes] = []
        place, stop = self._place, self._stop(size)
        while place < stop:
            piece = self._held(place, stop) or self._fetched(place, stop)
            if not piece:
                break
            parts.append(piece)
            place += len(piece)
        self._place = place
        return b"".join(parts)

    def _stop(self, size: int | None) -> float:
        stop = float("inf") if size is None or size < 0 else self._place + size
        return stop if self.version.size is None else min(stop, self.version.size)

    def _held(self, place: int, stop: float) -> bytes:
        first = place - self._window_start
        if first < 0:
            return b""
        return self._window[first : int(min(stop - self._window_start, len(self._window)))]

    def _fetched(self, place: int, stop: float) -> bytes:
        """Read bytes from `place` on: a long piece as it is, a short one with what follows it."""
        most = self._stop(-1)
        is_short = stop - place < _WINDOW
        end = int(min(place + (_WINDOW if is_short else _PIECE), most if is_short else stop))
        piece = retried(self._path, place, partial(self._range, place, end))
        if not is_short:
            return piece
        self._window, self._window_start = piece, place
        return self._held(place, stop)

    def _range(self, start: int, stop: int) -> bytes:
        """Read some bytes of a range, in a thread. An earlier call that stalled keeps a file of its own."""
        file, self._file = self._file, None
        if file is None:
            file = self._system.open(self._inner, "rb")
        if file.tell() != start:
            if not file.seekable():
                raise UnavailableError(
                    f"{self._path} cannot be read again from byte {start}: its storage only sends whole files.",
                    fix="copy the file to a local disk first.",
                ).in_file(self._path, start)
            file.seek(start)
        piece = file.read(stop - start) if stop > start else b""
        size = self.version.size
        if size is not None and (not piece or start + len(piece) == size):
            self._check_version()
        if size is not None and not piece:
            raise MissingBytesError(f"it ends at byte {start}, but its size is {size} bytes")
        self._file = None if self.closed else file
        return piece

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        piece = self.read(len(view))
        view[: len(piece)] = piece
        return len(piece)

    def readall(self) -> bytes:
        return self.read()

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line with its line ending."""
        first, parts, found = self._place, list[bytes](), 0
        most = float("inf") if size is None or size < 0 else size
        while found < most and (piece := self.read(int(min(_WINDOW // 2, most - found)))):
            line, end, _ = piece.partition(b"\n")
            parts += [line, end]
            found += len(line) + len(end)
            if end:
                break
        self._place = first + found
        return b"".join(parts)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_END and self.version.size is None:
            raise io.UnsupportedOperation(f"the size of {self._path} is unknown")
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}.get(whence, self.version.size or 0)
        self._place = max(0, start + offset)
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.version.size is not None

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
        super().close()
