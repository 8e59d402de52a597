"""Remote Parquet files, for pyarrow."""

from typing import final

from evenfeed.formats.bytes.filesystems import open_remote
from evenfeed.formats.bytes.remote_files import RemoteFile


@final
class RemoteParquet:
    """One version of a remote file, as a filesystem of fsspec: pyarrow reads it through evenfeed's retries."""

    protocol = "evenfeed"

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = open_remote(path).version

    def isfile(self, path: str) -> bool:
        del path
        return True

    def open(self, path: str, mode: str) -> RemoteFile:
        del path, mode
        return open_remote(self._path, self._version)
