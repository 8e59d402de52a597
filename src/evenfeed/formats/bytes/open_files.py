"""Limits the number of open files: closes the least recently used, and reopens them on their next use.

A dataset can have any number of files, and `shuffle` or `interleave` reads many of them in turn. A process can
have about a thousand open, including sockets and the files that user code opens.
"""

import errno
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from threading import RLock
from typing import Any, Final, Generic, Protocol, TypeVar, final

from evenfeed.core.lazy import resource

# evenfeed keeps at most 1/_PART of the open files that the system allows a process.
_PART: Final = 4
_FEWEST: Final = 8
_MOST: Final = 2048
# The assumed limit if the system reports none.
_ASSUMED_LIMIT: Final = 512
# The error numbers for too many open files.
TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)

Result = TypeVar("Result")


class ClosableFile(Protocol):
    """An object with a `close` method."""

    def close(self) -> None:
        """Close it."""
        ...


Opened = TypeVar("Opened", bound=ClosableFile)


def most_open() -> int:
    """Return how many files evenfeed may keep open, given the current limit of the process."""
    if sys.platform == "win32":
        return _ASSUMED_LIMIT // _PART
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return _MOST
    return max(_FEWEST, min(_MOST, allowed // _PART))


def with_room(open_: Callable[[], Result]) -> Result:
    """Call `open_`; if the process has too many files open, close evenfeed's idle files and call it again."""
    try:
        return open_()
    except OSError as error:
        if error.errno not in TOO_MANY:
            raise
    _FILES.close_down_to(0)
    return open_()


@final
class Reopened(Generic[Opened]):
    """An open file that may be closed between two uses; the next use reopens it.

    A reader holds a reference, so a file that is released while a thread reads it stays open until the thread is
    done. That needs no lock, which an interrupt could leave locked.

    Args:
        open_: Opens the file at its last position. The returned object must close the file when it is collected.
        keep: Returns True for an open file that cannot be reopened, such as a pipe.

    Examples:
        >>> import io
        >>> file = Reopened(lambda: io.BytesIO(b"bytes"))
        >>> file.opened().read()
        b'bytes'
    """

    def __init__(
        self, open_: Callable[[], Opened], keep: Callable[[Opened], bool] | None = None
    ) -> None:
        self._opened: Opened | None = None  # set first: `close` reads it, even after Ctrl-C here
        self._open = open_
        self._keep = keep
        self._number = next(_NUMBERS)
        self._files = _FILES  # a reference of its own: at exit the module's global may be gone

    def opened(self) -> Opened:
        """Return the open file. Use it at once and do not keep it."""
        opened = self._opened
        if opened is not None:
            self._files.use(self._number)
            return opened
        self._files.close_down_to(most_open() - 1)
        opened = self._opened = self._open()
        if self._keep is None or not self._keep(opened):
            self._files.add(self._number, self)
        return opened

    def let_go(self) -> None:
        """Release the file: it closes once no thread uses it, until its next use."""
        self._opened = None

    def close(self) -> None:
        """Close the file. It must not be in use."""
        opened, self._opened = self._opened, None
        if opened is not None:
            self._files.remove(self._number)
            opened.close()

    def __del__(self) -> None:
        self.close()  # dropping an iterator in the middle of a file is not a leak


@final
class _Files:
    """The open files, least recently used first."""

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant: garbage collection may close a file within this lock
        self._held: OrderedDict[int, weakref.ref[Reopened[Any]]] = OrderedDict()

    def add(self, number: int, file: Reopened[Any]) -> None:
        with self._lock:
            self._held[number] = weakref.ref(file)

    def use(self, number: int) -> None:
        with self._lock:
            if number in self._held:
                self._held.move_to_end(number)

    def remove(self, number: int) -> None:
        with self._lock:
            self._held.pop(number, None)

    def close_down_to(self, left: int) -> None:
        """Close the least recently used files until `left` are open."""
        while len(self._held) > left:
            with self._lock:
                file = self._held.popitem(last=False)[1]() if self._held else None
            if file is not None:
                file.let_go()


_FILES: Final = _Files()
_NUMBERS: Final = count()
