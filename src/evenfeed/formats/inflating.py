"""The bytes of files, decompressed on the way where they are compressed."""

import zlib
from typing import IO, Any, Final, final

from evenfeed.core.errors import DataLossError
from evenfeed.formats.bytes_ahead import Ahead, Bytes
from evenfeed.formats.filesystems import is_remote, naming, open_file
from evenfeed.formats.open_files import Reopened
from evenfeed.formats.same_file import SameFile

# How the library zlib is told which of the two forms to expect.
FORMS: Final = {"GZIP": 31, "ZLIB": 15}
_READ: Final = 1 << 16


def open_bytes(path: str, compression: str, start: int = 0) -> Bytes:
    """Open a file at a byte, which is the first where it is compressed."""
    if compression:
        return Ahead(Inflated(path, compression))
    plain = Plain(path, start)
    return Ahead(plain) if is_remote(path) else plain


@final
class Plain:
    """The bytes of a file as they are, from one of them on."""

    def __init__(self, path: str, start: int = 0) -> None:
        self._path = path
        self._file = Reopened(_Opener(path, start), keep=_Opened.is_stream)
        self._file.opened()  # it is an error here where it cannot be

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes; none at the end, which must not have come nearer."""
        with naming(self._path):
            return self._file.opened().read(most)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@final
class _Opener:
    """Opens a file at the byte behind the last one that was read."""

    def __init__(self, path: str, start: int) -> None:
        self.path = path
        self.place = start
        self.which: SameFile | None = None

    def __call__(self) -> "_Opened":
        file = open_file(self.path)
        try:
            if not is_remote(self.path):
                self.which = SameFile.checked(self.path, file.fileno(), self.which)
            if self.place:
                file.seek(self.place)
        except BaseException:
            file.close()
            raise
        return _Opened(self, file)


@final
class _Opened:
    def __init__(self, opener: _Opener, file: IO[bytes]) -> None:
        self._opener = opener
        self._file = file

    def read(self, most: int) -> bytes:
        piece = self._file.read(most)
        self._opener.place += len(piece)
        if not piece and self._opener.which is not None:
            SameFile.checked(self._opener.path, self._file.fileno(), self._opener.which)
        return piece

    def is_stream(self) -> bool:
        return not self._file.seekable()

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        self.close()


@final
class Inflated:
    """What a GZIP or ZLIB file holds, decompressed. Several one after the other count as one."""

    def __init__(self, path: str, compression: str) -> None:
        self._path = path
        self._kind = compression
        self._file = Plain(path)
        self._stream = self._fresh()
        self._begun = False
        self._passed = 0  # compressed bytes that were read

    def _fresh(self) -> Any:
        return zlib.decompressobj(wbits=FORMS[self._kind])

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes, so that a small file cannot fill the memory; none at the end."""
        while True:
            waiting = self._waiting()
            data = waiting or self._file.read(_READ)
            self._passed += 0 if waiting else len(data)
            if not data and not self._begun:
                return b""
            out = self._inflated(data, most)
            if out:
                return out
            if not data and not self._stream.eof:
                raise self._damaged("it ends within compressed data", 0)

    def _waiting(self) -> bytes:
        """Return what was read but not decompressed."""
        if not self._stream.eof:
            return self._stream.unconsumed_tail
        waiting = self._stream.unused_data
        self._stream, self._begun = self._fresh(), False
        return waiting

    def _inflated(self, data: bytes, most: int) -> bytes:
        self._begun = True
        try:
            return self._stream.decompress(data, most)
        except zlib.error as error:
            raise self._damaged(f"it is no good {self._kind} file ({error})", len(data)) from error

    def _damaged(self, why: str, behind: int) -> DataLossError:
        return DataLossError(
            f"{self._path} cannot be decompressed from byte {self._passed - behind} on: {why}.",
            fix="check compression_type, and whether the file was copied whole.",
        ).in_file(self._path, self._passed - behind)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
