"""Opening a file several times, and noticing that it is no longer the same one."""

from typing import IO, cast, final

from evenfeed.formats.bytes.filesystems import is_remote, open_file, open_remote
from evenfeed.formats.bytes.mapped_files import SameFile
from evenfeed.formats.bytes.remote_files import FileVersion, RemoteFile


@final
class SameFileOpener:
    """Opens a file for reading. Later calls raise DataLossError if it was replaced or truncated since the first.

    Attributes:
        path: Path of the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._identity: SameFile | None = None
        self._version: FileVersion | None = None

    def open(self, place: int = 0) -> IO[bytes]:
        """Open the file at a byte."""
        if is_remote(self.path):
            far = open_remote(self.path, self._version)
            self._version = far.version
            file = cast("IO[bytes]", far)
        else:
            file = open_file(self.path)
        try:
            if self._version is None:
                self._identity = SameFile.checked(self.path, file.fileno(), self._identity)
            if place:
                file.seek(place)
        except BaseException:
            file.close()
            raise
        return file

    def check_end(self, file: IO[bytes]) -> None:
        """Raise if an open file was truncated. A remote one has checked that itself, before its last bytes."""
        if self._version is None:
            SameFile.checked(self.path, file.fileno(), self._identity)

    def check(self, file: IO[bytes]) -> None:
        """Raise if an open file was truncated, or, on a remote filesystem, rewritten."""
        if self._version is None:
            self.check_end(file)
        else:
            cast("RemoteFile", file).check()
