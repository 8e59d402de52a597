"""Decodes PNG files of 8 bits per channel with isal and compiled loops, without the GIL.

Whatever is unusual in a file, damage among it, is left to Pillow, which holds the GIL.
"""

import importlib
import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy import LazyModule
from evenfeed.images import hot_loops

if TYPE_CHECKING:
    from evenfeed.images.loops import png_loops
else:
    png_loops = LazyModule("evenfeed.images.loops.png_loops")

_SIGNATURE: Final = 8
# The number of channels by the colour type of a header. A palette is left to Pillow.
_CHANNELS: Final = {0: 1, 2: 3, 4: 2, 6: 4}
# A width, a height, 8 bits, a colour type; then the only methods of compression and filters, and no interlacing.
_HEADER: Final = struct.Struct(">IIBBBBB")
_MOST_PIXELS: Final = 1 << 26
# Chunks that change no pixel, and those that hold them.
_HARMLESS: Final = frozenset(
    (b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"pHYs", b"tEXt", b"zTXt", b"iTXt", b"tIME", b"bKGD")
)


def plain_pixels(content: bytes, channels: int) -> Array | None:
    """Return the pixels of a file with that many channels, 0 for its own; None if Pillow must decode it."""
    parts = _parts(content)
    if parts is None:
        return None
    width, height, step, packed = parts
    if channels not in (0, step, 3) or (channels == 3 and step == 2):
        return None
    if not hot_loops.are_worth_it(width * height * step):
        return None
    row = width * step
    size = height * (row + 1)
    raw = _unpacked(packed, size)
    if raw is None:
        return None
    out = np.empty((height, row), np.uint8)
    rows = np.frombuffer(raw, np.uint8).reshape(height, row + 1)
    if not png_loops.unfilter(rows, step, np.zeros(row, np.uint8), out):
        return None
    pixels = out.reshape(height, width, step)
    if channels in (0, step):
        return pixels
    return pixels[..., :3].copy() if step == 4 else np.repeat(pixels, 3, axis=-1)


def _unpacked(packed: bytes, size: int) -> bytes | None:
    """Decompress bytes; None if they are damaged, or more or fewer than `size`."""
    library = _library()
    inflater = library.decompressobj()
    try:
        raw = inflater.decompress(packed, size + 1)
    except library.error:
        return None
    return raw if inflater.eof and len(raw) == size else None


@cache
def _library() -> Any:
    """Return isal, which takes two thirds of zlib's time, or zlib if it is not installed."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def _parts(content: bytes) -> tuple[int, int, int, bytes] | None:
    """Return the width, height, channels and compressed pixels; None if anything is unusual."""
    at, packed = _SIGNATURE, list[bytes]()
    header: tuple[int, ...] | None = None
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, stop = content[at + 4 : at + 8], at + 8 + length
        if stop + 4 > len(content):
            return None
        if kind == b"IEND":
            break
        if kind == b"IDAT" and header:
            packed.append(content[at + 8 : stop])
        elif kind == b"IHDR" and length == _HEADER.size and not header:
            header = _HEADER.unpack_from(content, at + 8)
        elif kind not in _HARMLESS or packed:
            return None
        if zlib.crc32(content[at + 4 : stop]) != int.from_bytes(content[stop : stop + 4], "big"):
            return None
        at = stop + 4
    else:
        return None
    if not packed or header is None:
        return None
    width, height, bits, colours, *methods = header
    if bits != 8 or any(methods) or colours not in _CHANNELS:
        return None
    if not 0 < width * height <= _MOST_PIXELS:
        return None
    return width, height, _CHANNELS[colours], b"".join(packed)
