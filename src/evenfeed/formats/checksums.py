"""The checksums of TFRecord files: CRC32C, turned and shifted so that it differs from one inside a payload.

Those of many records of one length are verified together. The checksum of records one behind the other
follows from theirs: appending as many bytes as a record has changes a checksum by a linear map, bit by bit. So
one call computes it for all of them, and what was written for each must add up to it. A record that is
damaged alone always shows; several may hide each other once in 2³² times, as one may from its own.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenfeed.core.conversion import Array
from evenfeed.core.lazy import google_crc32c

# The library says nothing of its types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

Checksums = NDArray[np.uint32]

_ADDED: Final = 0xA282EAD8
# How many records are verified by one call: their maps take 32 kB for each length.
_TOGETHER: Final = 256


def masked(data: bytes) -> int:
    """Return the checksum of `data` as it is written."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _ADDED) & 0xFFFFFFFF


def all_masked(parts: Sequence[bytes | Array]) -> Checksums:
    """Return the checksum of each part as it is written."""
    crcs = np.fromiter(map(google_crc32c.value, parts), np.uint32, len(parts))
    return (crcs >> np.uint32(15) | crcs << np.uint32(17)) + np.uint32(_ADDED)


def are_right(rows: Array, said: Checksums) -> bool:
    """Tell whether the checksums of records are what was written.

    Args:
        rows: The records, a row of bytes for each; they have at least one.
        said: What was written for each.
    """
    turned = said - np.uint32(_ADDED)
    crcs = turned << np.uint32(15) | turned >> np.uint32(17)
    return all(
        _joined(crcs[start : start + _TOGETHER], rows.shape[1])
        == google_crc32c.value(rows[start : start + _TOGETHER])
        for start in range(0, len(rows), _TOGETHER)
    )


def _joined(crcs: Checksums, length: int) -> int:
    """Return the checksum of records one behind the other."""
    maps = _maps(length)[_TOGETHER - len(crcs) :]
    return int(np.bitwise_xor.reduce(_bits(crcs) * maps, axis=None))


@lru_cache(maxsize=64)
def _maps(length: int) -> Checksums:
    """Return what each bit of a checksum becomes when records of a length follow: none behind the last row."""
    nothing = bytes(length)
    zero = google_crc32c.extend(0, nothing)
    one_more = [google_crc32c.extend(1 << bit, nothing) ^ zero for bit in range(32)]
    step = np.array(one_more, np.uint32)  # for as many records as there are maps already
    maps = np.uint32(1) << np.arange(32, dtype=np.uint32)[None]
    while len(maps) < _TOGETHER:
        maps = np.concatenate([_mapped(maps, step), maps])
        step = _mapped(step, step)
    return maps


def _mapped(values: Checksums, by: Checksums) -> Checksums:
    return np.bitwise_xor.reduce(_bits(values) * by, axis=-1)


def _bits(values: Checksums) -> Array:
    """Return the bits of numbers, the lowest first, along a further axis."""
    flat = np.ascontiguousarray(values, "<u4").view(np.uint8)
    return np.unpackbits(flat, bitorder="little").reshape(*values.shape, 32)
