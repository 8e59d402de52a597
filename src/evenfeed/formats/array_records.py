"""ArrayRecord files: records by their numbers, through the package array-record."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, final

from evenfeed.core.block import Block, Positions
from evenfeed.core.errors import DataLossError, EvenfeedError, described
from evenfeed.core.lazy import array_record
from evenfeed.formats.bytes.byte_windows import ByteFile
from evenfeed.formats.bytes.filesystems import local, naming
from evenfeed.formats.bytes.open_files import Reopened
from evenfeed.formats.chunks import bytes_column
from evenfeed.formats.reader import Reader

_MOST: Final = 1024  # records that are read at once, in one piece of memory


@final
@dataclass(frozen=True)
class ArrayRecordFile(ByteFile):
    """A file that says itself how many records it has."""

    read_by: ClassVar[str] = "from_array_record"

    @property
    def rows(self) -> int | None:
        """How many records; None where the file is no good, which is said when its turn comes."""
        try:
            return self.open().count
        except EvenfeedError:
            return None

    @property
    def extent(self) -> tuple[int, int]:
        """The whole file."""
        return 0, self.bytes

    def open(self) -> "ArrayRecordReader":
        """Open it."""
        return ArrayRecordReader(self.path)


@final
class ArrayRecordReader(Reader):
    """Reads records by their numbers.

    Attributes:
        count: How many there are.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with naming(path):
            os.stat(local(path))  # the library waits with that until a record is read
        self._file = Reopened(partial(_opened, path))
        with _explained(path):
            self.count: int = self._file.opened().num_records()

    @property
    def goes_on(self) -> bool:
        """Each record has a place of its own."""
        return True

    def read(self, start: int, count: int) -> Block | None:
        """Return records from `start` on."""
        stop = min(start + min(count, _MOST), self.count)
        if start >= stop:
            return None
        with _explained(self.path):
            return _block(self._file.opened().read(start, stop))

    def fetch(self, positions: Positions) -> Block:
        """Return the records at `positions`, in that order."""
        with _explained(self.path):
            return _block(self._file.opened().read(positions.tolist()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _opened(path: str) -> Any:
    with _explained(path):
        records: Any = _library().ArrayRecordReader(local(path))
        if records.ok():
            return records
    raise DataLossError(f"{path} is no whole ArrayRecord file.", fix="write it anew.")


def _block(records: list[bytes]) -> Block:
    return Block((bytes_column(records),), len(records))


@contextmanager
def _explained(path: str) -> Generator[None]:
    try:
        yield
    except RuntimeError as error:  # all that the library raises
        raise DataLossError(f"{path}: {error}", fix="check the file, or write it anew.") from error


def _library() -> Any:
    library: Any = array_record
    try:
        library.ArrayRecordReader  # noqa: B018 - the door opens here
    except ImportError as error:
        raise ImportError(
            described(
                "ArrayRecord files are read by the package array-record.",
                fix="pip install 'evenfeed[array-record]'.",
            )
        ) from error
    return library
