"""The checksums of TFRecord files: CRC32C, turned and shifted so that it differs from one inside a payload."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenfeed.core.doors import google_crc32c

# The library says nothing of its types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

_ADDED: Final = 0xA282EAD8


def masked(data: bytes) -> int:
    """Return the checksum of `data` as it is written."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _ADDED) & 0xFFFFFFFF


def all_masked(parts: list[bytes]) -> NDArray[np.uint32]:
    """Return the checksum of each part as it is written."""
    crc = np.fromiter(map(google_crc32c.value, parts), np.uint32, len(parts))
    return (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(_ADDED)
