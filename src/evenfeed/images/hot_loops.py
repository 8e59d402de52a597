"""Runs compiled loops over images once there are enough of them: Numba takes some time to load and to compile.

Each function returns None while the caller shall compute the same with NumPy.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.lazy import LazyModule
from evenfeed.core.randomness import philox
from evenfeed.core.text.numba_loops import is_installed

if TYPE_CHECKING:
    from evenfeed.images.loops import (
        difference_loops,
        level_loops,
        pixel_loops,
        random_loops,
        resize_loops,
    )
else:
    difference_loops = LazyModule("evenfeed.images.loops.difference_loops")
    level_loops = LazyModule("evenfeed.images.loops.level_loops")
    pixel_loops = LazyModule("evenfeed.images.loops.pixel_loops")
    random_loops = LazyModule("evenfeed.images.loops.random_loops")
    resize_loops = LazyModule("evenfeed.images.loops.resize_loops")

# About 50 photographs of 224 x 224 pixels.
_ENOUGH: Final = 1 << 23
# The largest images of bytes of which the loops compute the variance: it is up to 127.5 squared.
_MOST_BYTES: Final = 1 << 25
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


def mixed_words(keys: Array, words: Array) -> Array:
    """Mix each row of four random words with its two keys."""
    if not are_worth_it(0):
        return philox.mixed_rows(keys, words)
    out = words.copy()
    random_loops.mix(keys, out)
    return out


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


def some_mirrored(images: Array, flips: Array) -> Array | None:
    """Return a batch of images, some of them with their columns in reverse."""
    if not _has_loops(images):
        return None
    count, height, width, channels = images.shape
    out, lines = np.empty(images.shape, images.dtype), (count, height, width * channels)
    pixel_loops.mirror_some(_flat(images).reshape(lines), flips, channels, out.reshape(lines))
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
    images, new = _flat(image).reshape(-1, height, width * channels), (-1, width, height * channels)
    pixel_loops.swap(images, channels, downward, rightward, out.reshape(new))
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


def in_fours(image: Array) -> Array:
    """Return an image of three bytes for each pixel with a fourth, which is 0."""
    height, width, channels = image.shape
    out = np.empty((height, width, 4), np.uint8)
    if are_worth_it(image.size):
        pixel_loops.pad_pixels(_flat(image), out.reshape(-1))
        return out
    for channel in range(channels):  # NumPy takes longer to copy pixel by pixel.
        out[..., channel] = image[..., channel]
    out[..., channels] = 0
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
    run(images, rows, columns, line, out.reshape(-1, size[0], size[1] * channels))
    return out


def stretched(images: Array, factors: Array) -> Array | None:
    """Return images of bytes or float32 with other distances from the means of the channels of each."""
    count, height, width, channels = images.shape
    if height >= 1 << 24 or not _has_loops(images):  # Longer sums of bytes do not fit into 32 bits.
        return None
    out, length = np.empty(images.shape, images.dtype), width * channels
    rows, new = (array.reshape(count, height, length) for array in (_flat(images), out))
    wide = np.empty(length, np.float32)
    if images.dtype == np.uint8:
        level_loops.stretch(rows, channels, factors, (np.empty(length, np.uint32), wide), new)
    else:
        level_loops.stretch_floats(rows, channels, factors, wide, new)
    return out


def standardized(images: Array, least: np.float32) -> Array | None:
    """Return images of bytes or float32, each with mean 0 and variance 1."""
    count, height, width, channels = images.shape
    # The variance of more bytes would not fit into the 64 bits that the loop has.
    is_large = images.dtype == np.uint8 and height * width * channels > _MOST_BYTES
    if is_large or not _has_loops(images):
        return None
    out, length = np.empty(images.shape, np.float32), width * channels
    if images.dtype == np.uint8:
        level_loops.standardize(_flat(images).reshape(count, -1), least, out.reshape(count, -1))
    else:
        rows, new = (array.reshape(count, height, length) for array in (_flat(images), out))
        level_loops.standardize_floats(rows, least, np.empty(length, np.float32), new)
    return out


def squares_added(one: Array, other: Array) -> Array:
    """Return the sums of the squared differences of two images in each column of float32 numbers."""
    if are_worth_it(one.size):
        sums = np.zeros(one.shape[1], np.float32)
        difference_loops.add_squares(_rows(one), _rows(other), sums)
        return sums
    distances = one - other
    return column_sums(np.square(distances, out=distances))


def steps_added(rows: Array, channels: int) -> tuple[Array, Array]:
    """Return the sums of the absolute differences to the next row, and to the next pixel, in each column of floats."""
    length = rows.shape[1]
    if are_worth_it(rows.size):
        down, right = np.zeros(length, np.float32), np.zeros(max(0, length - channels), np.float32)
        difference_loops.add_steps(_rows(rows), channels, down, right)
        return down, right
    down, right = rows[1:] - rows[:-1], rows[:, channels:] - rows[:, : max(0, length - channels)]
    return column_sums(np.abs(down, out=down)), column_sums(np.abs(right, out=right))


def column_sums(rows: Array) -> Array:
    """Return the sum of all rows of numbers, added from the first to the last, as float32."""
    if rows.shape[1] == 1 and len(rows):  # NumPy adds up a single column in another order.
        return rows.cumsum(axis=0, dtype=np.float32)[-1]
    return rows.sum(axis=0, dtype=np.float32)


def _rows(rows: Array) -> Array:
    return np.ascontiguousarray(rows).view(np.ndarray)


def _is_host_array(image: Any, dtype: Any) -> bool:
    """Return True if an image is no tensor that a tape follows."""
    return isinstance(image, np.ndarray) and cast("Array", image).dtype == dtype


def _has_loops(image: Array) -> bool:
    return image.dtype in (dtypes.uint8, dtypes.float32) and are_worth_it(image.size)


def _flat(image: Array) -> Array:
    return np.ascontiguousarray(image).view(np.ndarray).reshape(-1)
