"""Files of this machine, mapped into memory."""

import mmap
import os
from typing import TypeAlias, final

from evenfeed.core.errors import DataLossError
from evenfeed.formats.filesystems import open_file

Held: TypeAlias = bytes | mmap.mmap


@final
class MappedFile:
    """The bytes of a file as they are, without a copy.

    The system kills a process that reads mapped bytes which the file has no longer. So who reads asks
    `check` before, once for many rows.

    Attributes:
        path: The file.
        bytes: What is in it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.bytes: Held = b""
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size:  # an empty file cannot be mapped
                self.bytes = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)

    def check(self) -> None:
        """Raise where the file was cut short since it was opened."""
        if isinstance(self.bytes, bytes):
            return
        there, mapped = self.bytes.size(), len(self.bytes)
        if there < mapped:
            raise cut_short(self.path, mapped, there)

    def close(self) -> None:
        """Forget the file; it is unmapped when nobody looks at it any more."""
        self.bytes = b""


def cut_short(path: str, before: int, now: int) -> DataLossError:
    """Return the error for a file that became shorter."""
    return DataLossError(
        f"{path} was cut from {before} to {now} bytes while it was read.",
        fix="write a file that others may read under another name, and rename it then.",
    ).in_file(path, now)
