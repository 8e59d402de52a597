"""Finds out whether a file that is opened again is the one that was open before."""

import os
from typing import NamedTuple, Self

from evenfeed.core.errors import DataLossError


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
