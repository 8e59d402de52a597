"""Where the records of a TFRecord file begin, found without a look at what they hold.

A record is its length (8 bytes), the checksum of these 8 (4 bytes), the payload, and its checksum (4).
"""

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np

from evenfeed.core.compiling import is_worth_it
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.cutting import pieces
from evenfeed.formats.checksums import masked
from evenfeed.formats.kernel_doors import record_kernels
from evenfeed.formats.mapped_files import Held

LENGTH: Final = struct.Struct("<Q")
FOOTER: Final = struct.Struct("<I")
HEADER_BYTES: Final = LENGTH.size + FOOTER.size
AROUND: Final = HEADER_BYTES + FOOTER.size

# After so many records of one length, the next ones are expected to have it too.
_FEW: Final = 16
_MOST_ALIKE: Final = 1 << 12


def header_of(length: int) -> bytes:
    """Return what stands before a payload."""
    return LENGTH.pack(length) + FOOTER.pack(checksum_of(length))


@lru_cache(maxsize=1 << 16)
def checksum_of(length: int) -> int:
    """Return the checksum of a length, as it is written."""
    return masked(LENGTH.pack(length))


def walked(held: Held, start: int, stop: int, count: int) -> Positions:
    """Return where records begin, and where the last one ends: `start` alone where there is none.

    Args:
        held: Bytes of a file.
        start: Where the first record begins.
        stop: Where the last one must end at the latest.
        count: How many to find at most; fewer where no whole one follows, or its length is damaged.
    """
    if is_worth_it(min(count, _expected(held, start, stop))):
        found = np.empty(min(count, (stop - start) // AROUND) + 1, np.int64)
        return found[: record_kernels.walk(np.frombuffer(held, np.uint8), start, stop, found)]
    places = np.concatenate([[start], *_ends(held, start, stop, count)])
    if len(places) == 1:
        return places
    said = pieces(held, places[:-1] + LENGTH.size, FOOTER.size).view("<u4")
    wrong = np.flatnonzero(said != _checksums_of(places[1:] - places[:-1] - AROUND))
    return places[: wrong[0] + 1] if len(wrong) else places


def _expected(held: Held, start: int, stop: int) -> int:
    """Return how many records there are if all are as long as the first."""
    if start + AROUND > stop:
        return 0
    return (stop - start) // (LENGTH.unpack_from(held, start)[0] + AROUND)


def _checksums_of(lengths: Positions) -> Array:
    if (lengths == lengths[0]).all():
        return np.array(checksum_of(int(lengths[0])), np.uint32)
    return np.array(list(map(checksum_of, lengths.tolist())), np.uint32)


def _ends(held: Held, at: int, stop: int, count: int) -> Iterator[Positions]:
    """Yield where the next records end: some one by one, then as many as are equally long."""
    few = _FEW
    while count > 0:
        some = _some(held, at, stop, min(count, few))
        yield np.array(some, np.int64)
        if len(some) < few:
            return
        step, count = some[0] - at, count - few
        at = some[-1]
        if some == list(range(some[0], at + 1, step)):
            alike = _alike(held, at, stop, min(count, _MOST_ALIKE), step)
            yield alike
            at, count = at + step * len(alike), count - len(alike)
        else:
            few = min(2 * few, _MOST_ALIKE)


def _some(held: Held, at: int, stop: int, count: int) -> list[int]:
    ends: list[int] = []
    length_at = LENGTH.unpack_from
    for _ in range(count):
        if at + AROUND > stop:
            break
        at += length_at(held, at)[0] + AROUND
        if at > stop:
            break
        ends.append(at)
    return ends


def _alike(held: Held, at: int, stop: int, count: int, step: int) -> Positions:
    """Return where the records end that are as long as `step` says."""
    count = min(count, (stop - at) // step)
    others = np.flatnonzero(np.ndarray(count, "<u8", held, at, (step,)) != step - AROUND)
    return at + step * np.arange(1, (int(others[0]) if len(others) else count) + 1)
