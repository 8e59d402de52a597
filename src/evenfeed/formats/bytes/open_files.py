"""Bounds how many files are open: those used longest ago are closed, and opened again when they are used.

A dataset may have any number of files, and `shuffle` or `interleave` reads many of them in turn. A process may
have about a thousand open, sockets and what the program opens itself among them.
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

# Of all files that the system lets a process have open, evenfeed keeps this part at most.
_PART: Final = 4
_FEWEST: Final = 8
_MOST: Final = 2048
# Where the system does not say how many a process may have.
_UNTOLD: Final = 512
# What the system says where no more files can be opened.
TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)

Result = TypeVar("Result")


class ClosableFile(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Close it."""
        ...


Opened = TypeVar("Opened", bound=ClosableFile)


def most_open() -> int:
    """Return how many files evenfeed keeps open: a part of what the process may have open just now."""
    if sys.platform == "win32":
        return _UNTOLD // _PART
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return _MOST
    return max(_FEWEST, min(_MOST, allowed // _PART))


def with_room(open_: Callable[[], Result]) -> Result:
    """Return what `open_` returns; where the process may have no more files open, close those not in use first."""
    try:
        return open_()
    except OSError as error:
        if error.errno not in TOO_MANY:
            raise
    _FILES.close_down_to(0)
    return open_()


@final
class Reopened(Generic[Opened]):
    """An open file that may be closed between two uses, and is opened again by the next.

    Whoever uses it holds it: a file that is let go while a thread reads it stays open for as long. So there is
    no lock, which an interruption could leave taken.

    Args:
        open_: Opens it where it was left. What it returns closes the file when nobody holds it.
        keep: Tells of an open file that it cannot be opened again, such as a pipe.

    Examples:
        >>> import io
        >>> file = Reopened(lambda: io.BytesIO(b"bytes"))
        >>> file.opened().read()
        b'bytes'
    """

    def __init__(
        self, open_: Callable[[], Opened], keep: Callable[[Opened], bool] | None = None
    ) -> None:
        self._opened: Opened | None = None  # first: Ctrl-C may come here, and `close` asks for it
        self._open = open_
        self._keep = keep
        self._number = next(_NUMBERS)
        self._files = (
            _FILES  # by a name of its own: when the program ends, the module's may be gone
        )

    def opened(self) -> Opened:
        """Return the open file, to be used at once and not kept."""
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
        """Have the file closed until its next use, as soon as nobody uses it."""
        self._opened = None

    def close(self) -> None:
        """Close the file, which nobody uses any more."""
        opened, self._opened = self._opened, None
        if opened is not None:
            self._files.remove(self._number)
            opened.close()

    def __del__(self) -> None:
        self.close()  # iterators are dropped in the middle of files: that is no leak to warn of


@final
class _Files:
    """The files that are open, in the order of their last use."""

    def __init__(self) -> None:
        self._lock = RLock()  # collecting garbage may close a file while this thread holds it
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
        """Close those used longest ago until `left` are open."""
        while len(self._held) > left:
            with self._lock:
                file = self._held.popitem(last=False)[1]() if self._held else None
            if file is not None:
                file.let_go()


_FILES: Final = _Files()
_NUMBERS: Final = count()
