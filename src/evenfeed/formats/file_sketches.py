"""Tells files apart by a few of their bytes, without reading them whole."""

import os
import stat
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from evenfeed.core.doors import hashlib
from evenfeed.core.errors import EvenfeedError
from evenfeed.formats.bytes_ahead import file_threads
from evenfeed.formats.filesystems import is_remote, local, open_file, remote

_EDGE: Final = 1 << 12  # so many bytes at the beginning, and at the end
_AT_ONCE: Final = 64  # files that a thread looks at in one go

MISSING: Final = b"missing"


def sketches(paths: Sequence[str]) -> list[bytes] | None:
    """Return for each file what its length and its first and last 4 KB make; None where a network does not tell."""
    found: dict[str, bytes] = {}
    far = [path for path in paths if is_remote(path)]
    try:
        found.update(_remote_sketches(far))
    except Exception:  # noqa: BLE001 - each filesystem has errors of its own
        return None
    here = [path for path in paths if not is_remote(path)]
    pieces = [here[at : at + _AT_ONCE] for at in range(0, len(here), _AT_ONCE)]
    if len(pieces) > 1:  # a disk may be far away too
        waiting = [file_threads().submit(partial(_local_sketches, piece)) for piece in pieces]
        parts = [part.result() for part in waiting]
    else:
        parts = list(map(_local_sketches, pieces))
    for part in parts:
        found.update(part)
    return [found[path] for path in paths]


def _local_sketches(paths: list[str]) -> dict[str, bytes]:
    return {path: _local_sketch(path) for path in paths}


def _local_sketch(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(local(path)).st_mode):
            return b"stream"  # to open a pipe would wait for its writer
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(_EDGE)
            file.seek(max(0, size - _EDGE))
            return _sketch(size, first, file.read(_EDGE))
    except (OSError, EvenfeedError):
        return MISSING


def _remote_sketches(paths: list[str]) -> dict[str, bytes]:
    """Ask each filesystem for all its files in a few calls, which many of them answer at once."""
    systems: dict[int, tuple[Any, list[str], list[str]]] = {}
    for path in paths:
        system, inner = remote(path)
        _, outer, inners = systems.setdefault(id(system), (system, [], []))
        outer.append(path)
        inners.append(inner)
    found: dict[str, bytes] = {}
    for system, outer, inners in systems.values():
        sizes = list(map(int, system.sizes(inners)))
        firsts = system.cat_ranges(inners, [0] * len(sizes), [min(s, _EDGE) for s in sizes])
        lasts = system.cat_ranges(inners, [max(0, s - _EDGE) for s in sizes], sizes)
        found.update(zip(outer, map(_sketch, sizes, firsts, lasts), strict=True))
    return found


def _sketch(size: int, first: bytes, last: bytes) -> bytes:
    digest = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
    digest.update(first)
    digest.update(last)
    return digest.digest()
