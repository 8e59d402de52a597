"""Reads many small files at once. Opening each for a reader of its own takes longer than reading its rows."""

import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from evenfeed.formats.bytes.byte_windows import ByteFile
from evenfeed.formats.bytes.filesystems import is_remote, local
from evenfeed.formats.bytes.inflating import FORMS

# As much as the first read of a larger file.
_LARGEST: Final = 1 << 16
_MOST_TOGETHER: Final = 1 << 20


def contents_of(files: Sequence[ByteFile]) -> list[bytes]:
    """Return the decompressed bytes of the first files, up to the first that is not plainly small and whole.

    That one is missing, empty, large, damaged, remote or a pipe. It is read as any other file, which also raises its
    error.
    """
    found: list[bytes] = []
    size = 0
    for content in map(_content, files):
        if content is None:
            break
        found.append(content)
        size += len(content)
        if size > _MOST_TOGETHER:
            break
    return found


def _content(file: ByteFile) -> bytes | None:
    if is_remote(file.path):
        return None
    try:
        raw = _read(local(file.path))
    except (OSError, ValueError):  # ValueError: a path with a null byte
        return None
    return _inflated(raw, file.compression) if raw and file.compression else raw or None


def _read(path: str) -> bytes | None:
    found = os.stat(path)  # before it is opened: opening a pipe would wait for its writer
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        return None
    descriptor = os.open(path, _FLAGS)
    try:
        content = os.read(descriptor, found.st_size + 1)
    finally:
        os.close(descriptor)
    return content if len(content) == found.st_size else None


_FLAGS: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def _inflated(raw: bytes, compression: str) -> bytes | None:
    stream = zlib.decompressobj(wbits=FORMS[compression])
    try:
        content = stream.decompress(raw, _LARGEST)
    except zlib.error:
        return None
    return content if stream.eof and not stream.unused_data and not stream.unconsumed_tail else None


def ends_of(contents: Sequence[bytes]) -> Iterator[int]:
    """Yield where each content ends if all are joined."""
    end = 0
    for content in contents:
        end += len(content)
        yield end
