"""The bytes of files, decompressed on the way where they are compressed."""

import os
import zlib
from typing import IO, Any, Final, final

from evenfeed.core.errors import DataLossError
from evenfeed.formats.bytes_ahead import Ahead, Bytes
from evenfeed.formats.filesystems import is_remote, naming, open_file
from evenfeed.formats.mapped_files import cut_short

# How the library zlib is told which of the two forms to expect.
FORMS: Final = {"GZIP": 31, "ZLIB": 15}
_READ: Final = 1 << 16


def open_bytes(path: str, compression: str, start: int = 0) -> Bytes:
    """Open a file at a byte, which is the first where it is compressed."""
    if compression:
        return Ahead(Inflated(path, compression))
    file = open_file(path)
    if start:
        file.seek(start)
    plain = Plain(path, file)
    return Ahead(plain) if is_remote(path) else plain


@final
class Plain:
    """The bytes of a file as they are."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._file = file
        self._path = path
        self._size = 0 if is_remote(path) else self._length()

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes; none at the end, which must not have come nearer."""
        with naming(self._path):
            piece = self._file.read(most)
            if not piece and self._size and (now := self._length()) < self._size:
                raise cut_short(self._path, self._size, now)
            return piece

    def _length(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __del__(self) -> None:
        self.close()  # iterators are dropped in the middle of files: that is no leak to warn of


@final
class Inflated:
    """What a GZIP or ZLIB file holds, decompressed. Several one after the other count as one."""

    def __init__(self, path: str, compression: str) -> None:
        self._path = path
        self._kind = compression
        self._file = Plain(path, open_file(path))
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
