"""Compiled loops that shift and scale the values of images by their means. Importing this module imports Numba.

Each loop computes what the NumPy code of `levels.py` does, to the last bit: LLVM keeps the order of operations.
"""

from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false

_ZERO: Final = np.float32(0)
_FRACTION: Final = np.float32(1 / 255)
_BYTE: Final = np.float32(255.5)
_MOST: Final = np.float32(255)


@compiled
def stretch(
    images: Array, channels: int, factors: Array, memory: tuple[Array, Array], out: Array
) -> None:
    """Scale the distances of bytes, as floats from 0 to 1, from the means of their channels, and clip them.

    Args:
        images: The rows of each image.
        channels: The numbers of a pixel.
        factors: The factor of each image.
        memory: Memory for a row of sums, and for a row of means.
        out: The new rows of each image.
    """
    sums, wide = memory
    _, height, length = images.shape
    count = 255 * height * (length // channels)
    for number in range(len(images)):
        image, new, factor = images[number], out[number], factors[number]
        sums[:] = 0
        for row in range(height):
            for at in range(length):
                sums[at] = np.uint32(sums[at] + np.uint32(image[row, at]))
        for channel in range(channels):
            total = np.int64(0)
            for at in range(channel, length, channels):
                total += np.int64(sums[at])
            wide[channel::channels] = np.float32(np.float64(total) / np.float64(count))
        for row in range(height):
            for at in range(length):
                value, mean = np.float32(image[row, at]) * _FRACTION, wide[at]
                scaled = ((value - mean) * factor + mean) * _BYTE
                scaled = scaled if scaled > _ZERO else _ZERO
                new[row, at] = np.uint8(np.int32(scaled if scaled < _MOST else _MOST))


@compiled
def stretch_floats(images: Array, channels: int, factors: Array, wide: Array, out: Array) -> None:
    """Scale the distances of floats from the means of their channels.

    Args:
        images: The rows of each image.
        channels: The numbers of a pixel.
        factors: The factor of each image.
        wide: Memory for a row.
        out: The new rows of each image.
    """
    _, height, length = images.shape
    count = np.float32(height * (length // channels))
    for number in range(len(images)):
        image, new, factor = images[number], out[number], factors[number]
        wide[:] = _ZERO
        for row in range(height):
            for at in range(length):
                wide[at] += image[row, at]
        for channel in range(channels):
            total = _ZERO
            for at in range(channel, length, channels):
                total += wide[at]
            wide[channel::channels] = total / count
        for row in range(height):
            for at in range(length):
                new[row, at] = (image[row, at] - wide[at]) * factor + wide[at]


@compiled
def standardize(images: Array, least: Any, out: Array) -> None:
    """Shift and scale the bytes of each image to mean 0 and variance 1.

    Args:
        images: The values of each image.
        least: The least deviation to divide by.
        out: The new values.
    """
    count = images.shape[1]
    for number in range(len(images)):
        image, new = images[number], out[number]
        some, squares = _sum_and_squares(image)
        mean = np.float32(np.float64(some) / np.float64(count))
        above = np.float64(np.uint64(count) * squares - some * some)
        spread = max(np.sqrt(np.float32(above / np.float64(count * count))), least)
        for at in range(count):
            new[at] = (np.float32(image[at]) - mean) / spread


@compiled
def _sum_and_squares(values: Array) -> Any:
    sum_, squares = np.uint64(0), np.uint64(0)
    for first in range(0, values.shape[0], 4096):  # Short runs fit into 32 bits, which are faster.
        some, more = np.uint32(0), np.uint32(0)
        for at in range(first, min(first + 4096, values.shape[0])):
            value = np.uint32(values[at])
            some = np.uint32(some + value)
            more = np.uint32(more + np.uint32(value * value))
        sum_ += np.uint64(some)
        squares += np.uint64(more)
    return sum_, squares


@compiled
def standardize_floats(images: Array, least: Any, sums: Array, out: Array) -> None:
    """Shift and scale the floats of each image to mean 0 and variance 1.

    Args:
        images: The rows of each image.
        least: The least deviation to divide by.
        sums: Memory for a row.
        out: The new rows.
    """
    _, height, length = images.shape
    for number in range(len(images)):
        image, new = images[number], out[number]
        sums[:] = _ZERO
        for row in range(height):
            for at in range(length):
                sums[at] += image[row, at]
        mean = _mean(sums, height)
        sums[:] = _ZERO
        for row in range(height):
            for at in range(length):
                distance = image[row, at] - mean
                sums[at] += distance * distance
        spread = np.sqrt(_mean(sums, height))
        spread = least if spread < least else spread
        for row in range(height):
            for at in range(length):
                new[row, at] = (image[row, at] - mean) / spread


@compiled
def _mean(sums: Array, height: int) -> Any:
    total = np.float64(0)
    for at in range(len(sums)):
        total += np.float64(sums[at])
    return np.float32(total / np.float64(height * len(sums)))
