"""ArrayRecord files, read by record number with the array-record package."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, final

from evenfeed.core.block import Block, Positions
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.core.lazy import array_record, installed
from evenfeed.formats.bytes.byte_windows import ByteFile
from evenfeed.formats.bytes.filesystems import local, naming
from evenfeed.formats.bytes.open_files import Reopened
from evenfeed.formats.reader import Reader, bytes_column

_MOST: Final = 1024  # records per read, all in memory at once


@final
@dataclass(frozen=True)
class ArrayRecordFile(ByteFile):
    """An ArrayRecord file, which stores its own record count."""

    read_by: ClassVar[str] = "from_array_record"

    @property
    def rows(self) -> int | None:
        """The number of records; None if the file is damaged, which raises when the file is read."""
        try:
            return self.open().count
        except EvenfeedError:
            return None

    @property
    def extent(self) -> tuple[int, int]:
        return 0, self.bytes

    def open(self) -> "ArrayRecordReader":
        return ArrayRecordReader(self.path)


@final
class ArrayRecordReader(Reader):
    """Reads records by number.

    Attributes:
        count: Number of records.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with naming(path):
            os.stat(local(path))  # the library would notice a missing file only at the first record
        self._file = Reopened(partial(_opened, path))
        with _explained(path):
            self.count: int = self._file.opened().num_records()

    @property
    def goes_on(self) -> bool:
        return True

    def read(self, start: int, count: int) -> Block | None:
        stop = min(start + min(count, _MOST), self.count)
        if start >= stop:
            return None
        with _explained(self.path):
            return _block(self._file.opened().read(start, stop))

    def fetch(self, positions: Positions) -> Block:
        with _explained(self.path):
            return _block(self._file.opened().read(positions.tolist()))

    def close(self) -> None:
        self._file.close()


def _opened(path: str) -> Any:
    with _explained(path):
        records: Any = _library().ArrayRecordReader(local(path))
        if records.ok():
            return records
    raise DataLossError(
        f"{path} is not a complete ArrayRecord file.", fix="write the file again."
    ).in_file(path)


def _block(records: list[bytes]) -> Block:
    return Block((bytes_column(records),), len(records))


@contextmanager
def _explained(path: str) -> Generator[None]:
    try:
        yield
    except RuntimeError as error:  # the only class that the library raises
        raise DataLossError(
            f"{path} cannot be read: {error}", fix="check the file, or write it again."
        ).in_file(path) from error


def _library() -> Any:
    return installed(
        array_record,
        "Reading ArrayRecord files needs the array-record package.",
        "pip install 'evenfeed[array-record]'.",
    )
