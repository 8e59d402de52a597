"""PNG files of 16 bits for each number. Pillow gives the upper eight of several channels, or the lower."""

import struct
import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array

_BEGINNING: Final = b"\x89PNG\r\n\x1a\n"
# The kind of an image, as a PNG file writes it, by the number of its channels.
_KINDS: Final = {1: 0, 2: 4, 3: 2, 4: 6}
# How red, green and blue count in grey, of 2 ** 15.
_GREY: Final = np.array([9797, 19234, 3737], np.int64)


def is_wide(content: bytes) -> bool:
    """Tell whether a PNG file has 16 bits for each number."""
    return content[24:25] == b"\x10"


def wide_pixels(opened: Callable[[], Any], content: bytes) -> Array:
    """Return all bits of a PNG file, which `opened` opens as an image of Pillow's."""
    match content[25]:
        case 0:
            return np.asarray(opened(), np.uint16)[..., None]
        case 4:  # grey and opacity: four bytes for each pixel, as those of four channels
            halves = _as_written(opened(), "RGBA")
            return halves[..., 0::2] << 8 | halves[..., 1::2]
        case kind:
            mode = "RGB" if kind == 2 else "RGBA"
            upper, lower = (_as_written(opened(), f"{mode};16{end}") for end in "BL")
            return upper << 8 | lower


def _as_written(image: Any, raw: str) -> Array:
    """Return the bytes of an image by another reading of what stands in the file."""
    image.tile = [tile._replace(args=raw) for tile in image.tile]
    return np.asarray(image).astype(np.uint16)


def in_channels(pixels: Array, channels: int) -> Array:
    """Return an image of 16 bits with another number of channels, 0 for as many as it has."""
    have = pixels.shape[-1]
    if channels in (0, have):
        return pixels
    colours = pixels[..., : 3 if have > 2 else 1]
    if channels == 1:
        return colours if have == 2 else _grey(colours)
    parts = [np.broadcast_to(colours, (*colours.shape[:-1], 3))]
    if channels == 4:
        opaque = np.full_like(pixels[..., :1], np.iinfo(np.uint16).max)
        parts.append(pixels[..., -1:] if have == 2 else opaque)
    return np.concatenate(parts, axis=-1)


def _grey(colours: Array) -> Array:
    weighed = (colours.astype(np.int64) * _GREY).sum(axis=-1, keepdims=True)
    return (weighed + (1 << 14) >> 15).astype(np.uint16)


def wide_file(pixels: Array, level: int) -> bytes:
    """Return an image of 16 bits and 1 to 4 channels as a PNG file, compressed as zlib does at that level."""
    height, width, channels = pixels.shape
    about = struct.pack(">IIBBBBB", width, height, 16, _KINDS[channels], 0, 0, 0)
    rows = np.zeros(
        (height, 1 + 2 * channels * width), np.uint8
    )  # each behind the number of its filter
    rows[:, 1:] = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    parts = (b"IHDR", about), (b"IDAT", zlib.compress(rows.tobytes(), level)), (b"IEND", b"")
    return _BEGINNING + b"".join(_chunk(*part) for part in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
