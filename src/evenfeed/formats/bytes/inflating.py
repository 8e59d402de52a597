"""Reads the bytes of a file a piece ahead, in a thread: where they must be decompressed, or come from far away.

Several files that are open at a time are then read in parallel, and whoever uses what was read need not wait.
"""

import os
import zlib
from concurrent.futures import CancelledError
from functools import cache, partial
from typing import IO, Any, Final, Protocol, final

from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.formats.bytes.filesystems import is_remote, naming, open_file
from evenfeed.formats.bytes.mapped_files import SameFile
from evenfeed.formats.bytes.open_files import Reopened


class Bytes(Protocol):
    """An open file that is read from its beginning on."""

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes; none at the end."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@final
class Ahead:
    """What a file holds, the next piece of which is read while the last one is used.

    It begins with the third piece: who wants little waits for that alone, and needs no thread.
    """

    def __init__(self, inner: Bytes) -> None:
        self._inner = inner
        self._begun = 0
        self._next: Pending[bytes] | None = None
        self._left = b""  # of a piece that was longer than what is asked for now

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes; none at the end."""
        piece = self._left or self._piece(most)
        self._left = piece[most:]
        return piece[:most]

    def _piece(self, most: int) -> bytes:
        piece = self._inner.read(most) if self._next is None else self._waited(self._next, most)
        self._begun += 1
        if self._begun > 1 and piece:
            self._next = file_threads().submit(partial(self._inner.read, most))
        return piece

    def _waited(self, following: Pending[bytes], most: int) -> bytes:
        # Where Ctrl-C comes here, the thread is still at work, and its piece is the next one.
        try:
            piece = following.result()
        except CancelledError:  # the program ends, and no thread had begun with it
            piece = self._inner.read(most)
        except EvenfeedError as error:
            self._next = None
            raise error.asked_for_here() from error.__cause__
        self._next = None
        return piece

    def close(self) -> None:
        """Close the file, at once or when the thread has let go of it."""
        following, self._next = self._next, None
        if following is None or following.cancel():
            self._inner.close()
        else:
            following.when_done(self._inner.close)


@cache
def file_threads() -> ThreadPool:
    """Return the threads that read files for others."""
    # Some wait for a network.
    return ThreadPool(4 * (os.cpu_count() or 1), "evenfeed-files")


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
