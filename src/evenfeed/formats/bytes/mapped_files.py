"""Finds out whether a file that is opened again is the one that was open before."""

import mmap
import os
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError
from evenfeed.formats.bytes.filesystems import naming, open_file
from evenfeed.formats.bytes.open_files import Reopened, most_open, with_room


class SameFile(NamedTuple):
    """What tells a file of this machine from another one in its place, and how long it was when it was first opened."""

    device: int
    number: int
    size: int

    @classmethod
    def checked(cls, path: str, descriptor: int, before: Self | None) -> Self:
        """Return what tells an open file apart; raise if it is not the one that was open before, or shorter."""
        found = os.fstat(descriptor)
        if before is None:
            return cls(found.st_dev, found.st_ino, found.st_size)
        if (found.st_dev, found.st_ino) != before[:2]:
            raise DataLossError(
                f"{path} was replaced while it was read.",
                fix="write the files of a dataset before they are read, or under other names.",
            ).in_file(path)
        if found.st_size < before.size:
            raise cut_short(path, before.size, found.st_size)
        return before


def cut_short(path: str, before: int, now: int) -> DataLossError:
    """Return the error for a file that became shorter."""
    return DataLossError(
        f"{path} was cut from {before} to {now} bytes while it was read.",
        fix="write a file that others may read under another name, and rename it then.",
    ).in_file(path, now)


Held: TypeAlias = bytes | mmap.mmap
View = TypeVar("View")

# Each keeps its file open, also one that only somebody's view of it keeps alive.
_ALIVE: Final = weakref.WeakSet[mmap.mmap]()


@final
class MappedFile:
    """The bytes of a file as they are, without a copy.

    The system kills a process that reads mapped bytes which the file has no longer. So who reads asks
    `check` before, once for many rows.

    Attributes:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = Reopened(_Mapper(path))
        self.check()  # that it can be opened at all

    @property
    def bytes(self) -> Held:
        """What is in it. Many files that are used later may unmap it; then it is mapped again."""
        return self._file.opened().bytes

    def view(self, make: Callable[[Held], View]) -> View:
        """Return what `make` makes of the bytes: always the same as long as they are mapped."""
        mapping = self._file.opened()
        if mapping.view is None:
            mapping.view = make(mapping.bytes)
        return mapping.view

    def check(self) -> None:
        """Raise where the file was cut short since it was opened."""
        check_length(self.path, self.bytes)

    def close(self) -> None:
        """Forget the file; it is unmapped when nobody looks at it any more."""
        self._file.close()


@final
class _Mapper:
    """Maps a file, and when it is asked again, the same bytes of the same file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._which: SameFile | None = None

    def __call__(self) -> "_Mapping":
        with naming(self._path):
            return with_room(self._mapped)

    def _mapped(self) -> "_Mapping":
        with open_file(self._path) as file:
            self._which = SameFile.checked(self._path, file.fileno(), self._which)
            if not self._which.size:  # an empty file cannot be mapped
                return _Mapping(b"")
            mapped = mmap.mmap(file.fileno(), self._which.size, access=mmap.ACCESS_READ)
        _ALIVE.add(mapped)
        return _Mapping(mapped)


@final
class _Mapping:
    """Bytes that are mapped, and what somebody made of them."""

    def __init__(self, held: Held) -> None:
        self.bytes = held
        self.view: Any = None

    def close(self) -> None:
        """Leave it to those who look at it: what nobody does any more is unmapped."""


def check_length(path: str, held: Held) -> None:
    """Raise where a file was cut short since it was mapped."""
    if isinstance(held, bytes):
        return
    there, mapped = held.size(), len(held)
    if there < mapped:
        raise cut_short(path, mapped, there)


def many_are_mapped() -> bool:
    """Return True if so many files are mapped that nobody may get views of more: these keep files open."""
    return len(_ALIVE) > most_open() // 2


def without_views(block: Block) -> Block:
    """Return rows that are no views of a file."""
    return Block(tuple(map(_copied, block.columns)), block.length)


def _copied(column: Column) -> Column:
    if isinstance(column, list):
        return [cast("Array", _copied(item)) for item in column]
    if isinstance(column, np.ndarray) and column.dtype != dtypes.string:
        return column.copy()
    return column
