"""Encodes PNG files of 8 or 16 bits per channel, without the GIL. Files are about as large as TensorFlow's."""

import struct
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy import LazyModule
from evenfeed.images import hot_loops

if TYPE_CHECKING:
    from evenfeed.images.loops import png_loops
else:
    png_loops = LazyModule("evenfeed.images.loops.png_loops")

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
# The colour type in a PNG header, by the number of channels.
_KINDS: Final = {1: 0, 2: 4, 3: 2, 4: 6}
# How zlib is set up for filtered bytes by libpng.
_WINDOW, _MEMORY = 15, 8


def png_file(pixels: Array, level: int) -> bytes:
    """Encode a uint8 or uint16 image with 1 to 4 channels, at a zlib compression level; -1 for zlib's default."""
    height, width, channels = pixels.shape
    size = pixels.dtype.itemsize
    about = struct.pack(">IIBBBBB", width, height, 8 * size, _KINDS[channels], 0, 0, 0)
    rows = np.ascontiguousarray(pixels.astype(f">u{size}", copy=False)).view(np.ndarray)
    packer = zlib.compressobj(level, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_FILTERED)
    filtered = _filtered(rows.reshape(height, -1).view(np.uint8), channels * size)
    packed = packer.compress(filtered.tobytes()) + packer.flush()
    parts = (b"IHDR", about), (b"IDAT", packed), (b"IEND", b"")
    return _SIGNATURE + b"".join(_chunk(*part) for part in parts)


def _filtered(rows: Array, step: int) -> Array:
    """Return each row as the differences to its neighbours that have the smallest sum, after the number of its filter.

    Args:
        rows: The bytes of the rows.
        step: The number of bytes of a pixel.
    """
    out = np.empty((len(rows), 1 + rows.shape[1]), np.uint8)
    if hot_loops.are_worth_it(rows.size):
        png_loops.filter_rows(rows, step, np.zeros(rows.shape[1], np.uint8), out)
        return out
    found = _by_every_filter(rows, step)
    # The size of a difference is that of a signed byte.
    sums = np.abs(found.view(np.int8)).view(np.uint8).sum(axis=2, dtype=np.int64)
    out[:, 0] = sums.argmin(axis=0)
    out[:, 1:] = found[out[:, 0], np.arange(len(rows))]
    return out


def _by_every_filter(rows: Array, step: int) -> Array:
    height, length = rows.shape
    around = np.zeros((height + 1, step + length), np.uint8)
    around[1:, step:] = rows
    above, left, corner = around[:-1, step:], around[1:, :-step], around[:-1, :-step]
    right, down = (one.astype(np.int16) - corner for one in (left, above))
    found = np.empty((5, height, length), np.uint8)
    found[0] = rows
    np.subtract(rows, left, out=found[1])
    np.subtract(rows, above, out=found[2])
    np.subtract(rows, (left.astype(np.int16) + above >> 1).astype(np.uint8), out=found[3])
    # Paeth's filter: the neighbour that is nearest to left + above - corner.
    from_left, from_above, from_corner = np.abs(down), np.abs(right), np.abs(down + right)
    nearer = np.where(from_above <= from_corner, above, corner)
    is_left = from_left <= np.minimum(from_above, from_corner)
    np.subtract(rows, np.where(is_left, left, nearer), out=found[4])
    return found


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(content, zlib.crc32(name))
    return b"".join((struct.pack(">I", len(content)), name, content, struct.pack(">I", check)))
