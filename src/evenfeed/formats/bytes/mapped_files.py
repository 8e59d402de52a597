"""Memory-mapped files. They notice if the file is replaced or truncated while it is being read."""

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
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.formats.bytes.filesystems import naming, open_file
from evenfeed.formats.bytes.open_files import Reopened, most_open, with_room


class SameFile(NamedTuple):
    """The identity of a local file, and its size when it was first opened."""

    device: int
    number: int
    size: int

    @classmethod
    def checked(cls, path: str, descriptor: int, before: Self | None) -> Self:
        """Return the identity of an open file; raise if it was replaced or truncated since `before`."""
        found = os.fstat(descriptor)
        if before is None:
            return cls(found.st_dev, found.st_ino, found.st_size)
        if (found.st_dev, found.st_ino) != before[:2]:
            raise DataLossError(
                f"{path} was replaced while it was being read.",
                fix="finish writing files before reading them, or write them under new names.",
            ).in_file(path)
        if found.st_size < before.size:
            raise cut_short(path, before.size, found.st_size)
        return before


def cut_short(path: str, before: int, now: int) -> DataLossError:
    """Return the error for a file that was truncated."""
    return DataLossError(
        f"{path} was truncated from {before} to {now} bytes while it was being read.",
        fix="write to a temporary name, then rename the file.",
    ).in_file(path, now)


Held: TypeAlias = bytes | mmap.mmap
View = TypeVar("View")

# Every mapping keeps its file open, even if only a view keeps the mapping alive.
_ALIVE: Final = weakref.WeakSet[mmap.mmap]()


@final
class MappedFile:
    """The bytes of a file, mapped into memory without a copy.

    Reading mapped bytes beyond the end of a truncated file kills the process (SIGBUS). Readers must therefore
    call `check` first, once for many rows.

    Attributes:
        path: Path of the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = Reopened(_Mapper(path))
        self.check()  # raises if the file cannot be opened

    @property
    def bytes(self) -> Held:
        """The mapped bytes. The file may have been unmapped to make room for others; this maps it again."""
        return self._file.opened().bytes

    def view(self, make: Callable[[Held], View]) -> View:
        """Return `make(bytes)`, cached for as long as the file stays mapped."""
        mapping = self._file.opened()
        if mapping.view is None:
            mapping.view = make(mapping.bytes)
        return mapping.view

    def check(self) -> None:
        """Raise if the file was truncated since it was opened."""
        check_length(self.path, self.bytes)

    def close(self) -> None:
        """Drop the mapping. It is unmapped once no view of it is left."""
        self._file.close()


@final
class _Mapper:
    """Maps a file; later calls map the same bytes, and raise if the file changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity: SameFile | None = None

    def __call__(self) -> "_Mapping":
        with naming(self._path):
            return with_room(self._mapped)

    def _mapped(self) -> "_Mapping":
        with open_file(self._path) as file:
            self._identity = SameFile.checked(self._path, file.fileno(), self._identity)
            if not self._identity.size:  # an empty file cannot be mapped
                return _Mapping(b"")
            mapped = mmap.mmap(file.fileno(), self._identity.size, access=mmap.ACCESS_READ)
        _ALIVE.add(mapped)
        return _Mapping(mapped)


@final
class _Mapping:
    """Mapped bytes, and the cached view of them."""

    def __init__(self, held: Held) -> None:
        self.bytes = held
        self.view: Any = None

    def close(self) -> None:
        """Do nothing: the bytes are unmapped once no view of them is left."""


def check_length(path: str, held: Held) -> None:
    """Raise if a file was truncated since it was mapped."""
    if isinstance(held, bytes):
        return
    current, mapped = held.size(), len(held)
    if current < mapped:
        raise cut_short(path, mapped, current)


def many_are_mapped() -> bool:
    """Return True if so many files are mapped that no more views, which keep files open, should be handed out."""
    return len(_ALIVE) > most_open() // 2


def without_views(block: Block) -> Block:
    """Return the rows with every view of a file replaced by a copy."""
    return Block(tuple(map(_copied, block.columns)), block.length)


def _copied(column: Column) -> Column:
    if isinstance(column, RaggedTensor):
        return ragged_columns.copied(column)
    if isinstance(column, list):
        return [cast("Array", _copied(item)) for item in column]
    if isinstance(column, np.ndarray) and column.dtype != dtypes.string:
        return column.copy()
    return column
