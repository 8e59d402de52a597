"""Reads the bytes of a file a piece ahead, in a thread: where they must be decompressed, or come from far away.

Several files that are open at a time are then read in parallel, and whoever uses what was read need not wait.
"""

import os
from concurrent.futures import CancelledError
from functools import cache, partial
from typing import Protocol, final

from evenfeed.core.errors import EvenfeedError
from evenfeed.core.thread_pool import ThreadPool
from evenfeed.core.waiting import Pending


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
