"""Files that are written from their first byte to their last."""

import os
from functools import partial
from pathlib import Path
from typing import IO, Any, final

from evenfeed.formats.filesystems import naming
from evenfeed.formats.open_files import Reopened, with_room


@final
class NewFile:
    """A file that is written once. Between two pieces it may be closed, where many are written in turn.

    Args:
        path: Where; there must be no file yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = Reopened(_Opener(path))
        self.size = 0
        self.write(b"")

    def write(self, data: bytes) -> None:
        """Append bytes, and hand them to the system: where the disk is full, it is this file that is told."""
        with naming(str(self._path)):
            self._file.opened().write(data)
        self.size += len(data)

    def finish(self) -> None:
        """Close the file when the disk has it."""
        with naming(str(self._path)):
            self._file.opened().finish()
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@final
class _Opener:
    """Makes a file, and opens it at its end when it is asked again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mode = "xb"

    def __call__(self) -> "_Opened":
        mode, self._mode = self._mode, "r+b"
        return _Opened(with_room(partial(self._path.open, mode)))


@final
class _Opened:
    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        file.seek(0, os.SEEK_END)

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    def finish(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        self.close()
