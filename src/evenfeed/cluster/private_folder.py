"""A folder for sockets that only this user can reach."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_LONG: Final = 60  # the path of a socket may have about a hundred letters


@contextmanager
def private_folder() -> Generator[str]:
    """Make a folder that only this user can enter, and remove it afterwards."""
    usual = tempfile.gettempdir()
    parent = usual if len(usual) < _LONG else "/tmp"
    with tempfile.TemporaryDirectory(
        prefix="evenfeed-", dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield folder
