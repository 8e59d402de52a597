"""TFRecord checksums: CRC32C, masked so that it differs from a CRC stored inside a payload.

Records of equal length are verified together. The CRC of concatenated records follows from their own CRCs:
appending a record's worth of bytes changes a CRC by a map that is linear in its bits. So one call computes the CRC
of all records, and the stored checksums must combine to the same value. A single damaged record is always found;
several can cancel out once in 2³² times, the same odds as a damaged record that matches its own checksum.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenfeed.core.conversion import Array
from evenfeed.core.lazy import google_crc32c

# The library has no type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

Checksums = NDArray[np.uint32]

_ADDED: Final = 0xA282EAD8
# Records verified by one call: their maps take 32 kB per length.
_TOGETHER: Final = 256


def masked(data: bytes) -> int:
    """Return the masked checksum of `data`, as stored in a file."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _ADDED) & 0xFFFFFFFF


def all_masked(parts: Sequence[bytes | Array]) -> Checksums:
    """Return the masked checksum of each part, as stored in a file."""
    crcs = np.fromiter(map(google_crc32c.value, parts), np.uint32, len(parts))
    return (crcs >> np.uint32(15) | crcs << np.uint32(17)) + np.uint32(_ADDED)


def are_right(rows: Array, stored: Checksums) -> bool:
    """Return True if the checksums of all records match the stored ones.

    Args:
        rows: The records, one row of bytes each, at least one byte long.
        stored: The stored checksum of each record.
    """
    rotated = stored - np.uint32(_ADDED)
    crcs = rotated << np.uint32(15) | rotated >> np.uint32(17)
    return all(
        _joined(crcs[start : start + _TOGETHER], rows.shape[1])
        == google_crc32c.value(rows[start : start + _TOGETHER])
        for start in range(0, len(rows), _TOGETHER)
    )


def _joined(crcs: Checksums, length: int) -> int:
    """Return the CRC of the concatenated records."""
    maps = _maps(length)[_TOGETHER - len(crcs) :]
    return int(np.bitwise_xor.reduce(_bits(crcs) * maps, axis=None))


@lru_cache(maxsize=64)
def _maps(length: int) -> Checksums:
    """Return, per row, what each bit of a CRC becomes after the records that follow; none follow the last row."""
    nothing = bytes(length)
    zero = google_crc32c.extend(0, nothing)
    one_more = [google_crc32c.extend(1 << bit, nothing) ^ zero for bit in range(32)]
    step = np.array(one_more, np.uint32)  # the map for as many records as `maps` has rows
    maps = np.uint32(1) << np.arange(32, dtype=np.uint32)[None]
    while len(maps) < _TOGETHER:
        maps = np.concatenate([_mapped(maps, step), maps])
        step = _mapped(step, step)
    return maps


def _mapped(values: Checksums, by: Checksums) -> Checksums:
    return np.bitwise_xor.reduce(_bits(values) * by, axis=-1)


def _bits(values: Checksums) -> Array:
    """Return the bits of each number along a new last axis, lowest first."""
    flat = np.ascontiguousarray(values, "<u4").view(np.uint8)
    return np.unpackbits(flat, bitorder="little").reshape(*values.shape, 32)
