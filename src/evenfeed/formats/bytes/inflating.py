"""Sequential readers of file bytes: plain, decompressed (GZIP, ZLIB), and read-ahead in a thread.

Read-ahead is for compressed and remote files. It overlaps reading with the consumer's work, and reads several open
files in parallel.
"""

import os
import zlib
from concurrent.futures import CancelledError
from functools import cache, partial
from typing import IO, Any, Final, Protocol, final

from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.formats.bytes.filesystems import is_remote, naming
from evenfeed.formats.bytes.open_files import Reopened
from evenfeed.formats.bytes.same_files import SameFileOpener


class Bytes(Protocol):
    """An open file that is read sequentially."""

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes; b"" at the end."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@final
class Ahead:
    """Reads the next piece of a file in a thread while the last one is being used.

    Starts with the third piece, so that reading little starts no thread.
    """

    def __init__(self, inner: Bytes) -> None:
        self._inner = inner
        self._pieces = 0
        self._next: Pending[bytes] | None = None
        self._left = b""  # the rest of a piece that was longer than requested

    def read(self, most: int) -> bytes:
        piece = self._left or self._piece(most)
        self._left = piece[most:]
        return piece[:most]

    def _piece(self, most: int) -> bytes:
        piece = self._inner.read(most) if self._next is None else self._waited(self._next, most)
        self._pieces += 1
        if self._pieces > 1 and piece:
            self._next = file_threads().submit(partial(self._inner.read, most))
        return piece

    def _waited(self, following: Pending[bytes], most: int) -> bytes:
        # If Ctrl-C interrupts the wait, the thread keeps reading, and its piece is still the next one.
        try:
            piece = following.result()
        except CancelledError:  # the program is exiting, and no thread had started on it
            piece = self._inner.read(most)
        except EvenfeedError as error:
            self._next = None
            raise error.asked_for_here() from error.__cause__
        self._next = None
        return piece

    def close(self) -> None:
        """Close the file, now or when the thread is done with it."""
        following, self._next = self._next, None
        if following is None or following.cancel():
            self._inner.close()
        else:
            following.when_done(self._inner.close)


@cache
def file_threads() -> ThreadPool:
    """Return the thread pool that reads files ahead."""
    # More threads than cores, because some wait for the network.
    return ThreadPool(4 * (os.cpu_count() or 1), "evenfeed-files")


# zlib's `wbits` for each compression format.
FORMS: Final = {"GZIP": 31, "ZLIB": 15}
_READ: Final = 1 << 16


def open_bytes(path: str, compression: str, start: int = 0) -> Bytes:
    """Open a file at byte `start`; a compressed file always opens at its first byte."""
    if compression:
        return Ahead(Inflated(path, compression))
    plain = Plain(path, start)
    return Ahead(plain) if is_remote(path) else plain


@final
class Plain:
    """The bytes of an uncompressed file, starting at byte `start`."""

    def __init__(self, path: str, start: int = 0) -> None:
        self._path = path
        self._file = Reopened(_Opener(path, start), keep=_Opened.is_stream)
        self._file.opened()  # raises if the file cannot be opened

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes; b"" at the end. Raises if the file was truncated."""
        with naming(self._path):
            return self._file.opened().read(most)

    def back(self, count: int) -> bool:
        """Move back by `count` bytes. Return False if the file can only be read forward."""
        with naming(self._path):
            return self._file.opened().back(count)

    def close(self) -> None:
        self._file.close()


@final
class _Opener:
    """Opens a file at the byte after the last one read."""

    def __init__(self, path: str, start: int) -> None:
        self.file = SameFileOpener(path)
        self.place = start

    def __call__(self) -> "_Opened":
        return _Opened(self, self.file.open(self.place))


@final
class _Opened:
    def __init__(self, opener: _Opener, file: IO[bytes]) -> None:
        self._opener = opener
        self._file = file

    def read(self, most: int) -> bytes:
        piece = self._file.read(most)
        self._opener.place += len(piece)
        if not piece:
            self._opener.file.check_end(self._file)
        return piece

    def back(self, count: int) -> bool:
        if self.is_stream():
            return False
        self._file.seek(-count, os.SEEK_CUR)
        self._opener.place -= count
        return True

    def is_stream(self) -> bool:
        return not self._file.seekable()

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        self.close()


@final
class Inflated:
    """The decompressed bytes of a GZIP or ZLIB file. Concatenated streams count as one."""

    def __init__(self, path: str, compression: str) -> None:
        self._path = path
        self._kind = compression
        self._file = Plain(path)
        self._stream = self._fresh()
        self._in_stream = False
        self._bytes_read = 0  # of the compressed file

    def _fresh(self) -> Any:
        return zlib.decompressobj(wbits=FORMS[self._kind])

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes, so that a small file cannot expand to fill the memory; b"" at the end."""
        while True:
            waiting = self._waiting()
            data = waiting or self._file.read(_READ)
            self._bytes_read += 0 if waiting else len(data)
            if not data and not self._in_stream:
                return b""
            out = self._inflated(data, most)
            if out:
                return out
            if not data and not self._stream.eof:
                raise self._damaged("it ends in the middle of compressed data", 0)

    def _waiting(self) -> bytes:
        """Return the bytes that were read but not yet decompressed."""
        if not self._stream.eof:
            return self._stream.unconsumed_tail
        waiting = self._stream.unused_data
        self._stream, self._in_stream = self._fresh(), False
        return waiting

    def _inflated(self, data: bytes, most: int) -> bytes:
        self._in_stream = True
        try:
            return self._stream.decompress(data, most)
        except zlib.error as error:
            raise self._damaged(
                f"it is not a valid {self._kind} file ({error})", len(data)
            ) from error

    def _damaged(self, why: str, unread: int) -> DataLossError:
        return DataLossError(
            f"{self._path} cannot be decompressed at byte {self._bytes_read - unread}: {why}.",
            fix="check compression_type, and that the file was copied completely.",
        ).in_file(self._path, self._bytes_read - unread)

    def close(self) -> None:
        self._file.close()
