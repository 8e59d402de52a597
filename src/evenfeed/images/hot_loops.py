"""Runs compiled loops over images once there are enough of them: Numba takes some time to load and to compile.

Each function returns None while the caller shall compute the same with NumPy.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.numba_loops import is_installed

if TYPE_CHECKING:
    from evenfeed.images import pixel_loops, resize_loops
else:
    pixel_loops = LazyModule("evenfeed.images.pixel_loops")
    resize_loops = LazyModule("evenfeed.images.resize_loops")

# About 50 photographs of 224 x 224 pixels.
_ENOUGH: Final = 1 << 23
# How many pixels are computed at a time: their colours stay in the cache.
_PLANE: Final = 512


class Seen:
    """The number of values of images that this process has computed with NumPy."""

    values = 0


def are_worth_it(values: int) -> bool:
    """Return True if compiled loops shall compute this many values."""
    if Seen.values < _ENOUGH:
        Seen.values += values
        return False
    return is_installed()


def looked_up(image: Array, table: Array) -> Array:
    """Return the entry of each byte in a table."""
    if not are_worth_it(image.size):
        return table.take(image)
    out = np.empty(image.shape, table.dtype)
    pixel_loops.look_up(_flat(image), table, out.reshape(-1))
    return out


def of_bytes(loop: str, image: Any, dtype: Any, *settings: Any) -> Array | None:
    """Return what a loop makes of each byte."""
    if not _is_host_array(image, np.uint8) or not are_worth_it(image.size):
        return None
    out = np.empty(image.shape, dtype)
    run: Callable[..., None] = getattr(pixel_loops, loop)
    run(_flat(image), *settings, out.reshape(-1))
    return out


def stretched(images: Array, means: Array, factor: np.float32) -> Array | None:
    """Return images of bytes or float32 with other distances from the means of the channels of each."""
    if not _has_loops(images):
        return None
    count, height, width, channels = images.shape
    out = np.empty(images.shape, images.dtype)
    run = pixel_loops.stretch if images.dtype == np.uint8 else pixel_loops.stretch_floats
    rows = (count, height, width * channels)
    wide = np.empty((width, channels), means.dtype)
    for image, mean, new in zip(_flat(images).reshape(rows), means, out.reshape(rows), strict=True):
        wide[...] = mean
        run(image, wide.reshape(-1), factor, new)
    return out


def row_sums(image: Array) -> Array:
    """Return the sum of all rows of an image of floats, as float32."""
    rows = image.reshape(len(image), -1)
    if image.dtype != np.float32 or not are_worth_it(image.size):
        return rows.sum(axis=0, dtype=np.float32)
    sums = np.zeros(rows.shape[1], np.float32)
    pixel_loops.add_up_floats(np.ascontiguousarray(rows).view(np.ndarray), sums)
    return sums


def added_up(image: Array) -> Array:
    """Return the sum of the bytes of each channel of an image."""
    height, width, channels = image.shape
    rows = _flat(image).reshape(height, width * channels)
    if are_worth_it(image.size) and height < 1 << 24:  # Longer sums do not fit into 32 bits.
        sums = np.zeros(width * channels, np.uint32)
        pixel_loops.add_up(rows, sums)
    else:
        sums = rows.sum(axis=0, dtype=np.int64)
    return sums.reshape(width, channels).sum(axis=0, dtype=np.int64)


def sum_and_squares(image: Array) -> tuple[int, int]:
    """Return the sum of all bytes of an image, and of their squares."""
    if are_worth_it(image.size):
        some, squares = pixel_loops.add_squares(_flat(image))
        return int(some), int(squares)
    return int(image.sum(dtype=np.int64)), int(np.square(image, dtype=np.int64).sum())


def in_bytes(image: Any, *, saturate: bool) -> Array | None:
    """Return float32 values scaled to bytes."""
    if not _is_host_array(image, np.float32) or not are_worth_it(image.size):
        return None
    out = np.empty(image.shape, np.uint8)
    if saturate:
        pixel_loops.to_clipped_bytes(_flat(image), out.reshape(-1))
        return out
    return out if pixel_loops.to_bytes(_flat(image), out.reshape(-1)) else None


def by_pixel(loop: str, image: Array, *settings: Any) -> Array | None:
    """Return what a loop makes of the three float32 channels of each pixel."""
    if image.dtype != np.float32 or not are_worth_it(image.size):
        return None
    out = np.empty(image.shape, np.float32)
    run: Callable[..., bool] = getattr(pixel_loops, loop)
    planes = np.empty((3, _PLANE), np.float32)
    finite = run(_flat(image).reshape(-1, 3), *settings, planes, out.reshape(-1, 3))
    return out if finite else None


def mixed(image: Array, matrix: Array) -> Array | None:
    """Return the float32 pixels of an image times a matrix."""
    if image.dtype != np.float32 or not are_worth_it(image.size):
        return None
    out = np.empty((*image.shape[:-1], matrix.shape[-1]), np.float32)
    pixel_loops.mix(_flat(image).reshape(-1, 3), matrix, out.reshape(-1, matrix.shape[-1]))
    return out


def mirrored(image: Array) -> Array | None:
    """Return an image, or each image of a batch, with its columns in reverse."""
    if not _has_loops(image):
        return None
    *_, width, channels = image.shape
    out, lines = np.empty(image.shape, image.dtype), (-1, width * channels)
    pixel_loops.mirror(_flat(image).reshape(lines), channels, out.reshape(lines))
    return out


def transposed(image: Array, *, downward: bool, rightward: bool) -> Array | None:
    """Return an image, or each image of a batch, with its rows and columns exchanged.

    Args:
        image: The images.
        downward: False to read the rows from the last to the first.
        rightward: False to read the columns so.
    """
    if not _has_loops(image):
        return None
    *before, height, width, channels = image.shape
    out = np.empty((*before, width, height, channels), image.dtype)
    images = _flat(image).reshape(-1, height, width * channels)
    for one, other in zip(images, out.reshape(-1, width, height * channels), strict=True):
        pixel_loops.swap(one, channels, downward, rightward, other)
    return out


def with_colours_reversed(rows: Array, width: int, *, upward: bool) -> Array | None:
    """Return the pixels of a BMP file in red, green and blue.

    Args:
        rows: The bytes of its rows, each blue, green, red; they may be longer than the image.
        width: The width of the image.
        upward: Whether the last row comes first.
    """
    if not are_worth_it(rows.size):
        return None
    out = np.empty((len(rows), width, 3), np.uint8)
    pixel_loops.reverse_colours(rows, upward, out.reshape(len(rows), 3 * width))
    return out


def tripled(image: Array) -> Array | None:
    """Return an image with each number three times along the last axis, which has one entry."""
    if not _has_loops(image):
        return None
    out = np.empty((*image.shape[:-1], 3), image.dtype)
    pixel_loops.triple(_flat(image), out.reshape(-1))
    return out


def resized(
    loop: str, image: Array, size: tuple[int, int], rows: tuple[Any, ...], columns: tuple[Any, ...]
) -> Array | None:
    """Return a resized image, or batch of images.

    Args:
        loop: The name of the loop.
        image: The images.
        size: The new height and width.
        rows: The old rows of each new one, and their weights.
        columns: The first numbers of the old pixels of each new one, and their weights.
    """
    if not _has_loops(image):
        return None
    *before, height, width, channels = image.shape
    out = np.empty((*before, *size, channels), np.float32)
    line = np.empty(width * channels, np.float32)
    images = _flat(image).reshape(-1, height, width * channels)
    run: Callable[..., None] = getattr(resize_loops, loop)
    for one, other in zip(images, out.reshape(-1, size[0], size[1] * channels), strict=True):
        run(one, rows, columns, line, other)
    return out


def _is_host_array(image: Any, dtype: Any) -> bool:
    """Return True if an image is no tensor that a tape follows."""
    return isinstance(image, np.ndarray) and cast("Array", image).dtype == dtype


def _has_loops(image: Array) -> bool:
    return image.dtype in (dtypes.uint8, dtypes.float32) and are_worth_it(image.size)


def _flat(image: Array) -> Array:
    return np.ascontiguousarray(image).view(np.ndarray).reshape(-1)
