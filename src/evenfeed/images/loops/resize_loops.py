"""Compiled loops that resize images. Importing this module imports Numba.

Each loop computes what the NumPy code of `resizing.py` does, to the last bit: LLVM keeps the order of operations.
"""

from typing import TypeAlias

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false

_U64 = np.uint64
_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)

# The old rows (or the pixels of a row) before and behind each new one, and the weight of the second.
Between: TypeAlias = tuple[Array, Array, Array]


@compiled
def interpolate(images: Array, rows: Between, columns: Between, line: Array, out: Array) -> None:
    """Interpolate between rows, then between the pixels of a row.

    Args:
        images: The rows of numbers of each image.
        rows: The rows around each new row; empty arrays if the height stays.
        columns: The first numbers of the pixels around each new pixel; empty arrays if the width stays.
        line: Memory for an old row of floats.
        out: The new rows of each image.
    """
    for number in range(len(images)):
        _interpolate(images[number], rows, columns, line, out[number])


@compiled
def _interpolate(image: Array, rows: Between, columns: Between, line: Array, out: Array) -> None:
    above, below, heights = rows
    left = columns[0]
    for row in range(out.shape[0]):
        if len(above):
            upper, lower, weight = image[above[row]], image[below[row]], heights[row]
            for at in range(len(line)):
                first = np.float32(upper[at])
                line[at] = (np.float32(lower[at]) - first) * weight + first
        else:
            upper = image[row]
            for at in range(len(line)):
                line[at] = np.float32(upper[at])
        if not len(left):
            for at in range(out.shape[1]):
                out[row, at] = line[at]
        elif out.shape[1] == 3 * len(left):
            _interpolate_three(line, columns, out[row])
        else:
            _interpolate_pixels(line, columns, out[row])


@compiled
def _interpolate_three(line: Array, columns: Between, out: Array) -> None:
    """Interpolate pixels of three colours, which the processor computes side by side."""
    lefts, rights, weights = columns
    for at in range(len(lefts)):
        left, right, weight = _U64(lefts[at]), _U64(rights[at]), weights[at]
        red, green, blue = line[left], line[left + _ONE], line[left + _TWO]
        out[3 * at] = (line[right] - red) * weight + red
        out[3 * at + 1] = (line[right + _ONE] - green) * weight + green
        out[3 * at + 2] = (line[right + _TWO] - blue) * weight + blue


@compiled
def _interpolate_pixels(line: Array, columns: Between, out: Array) -> None:
    lefts, rights, weights = columns
    channels = len(out) // len(lefts)
    for at in range(len(lefts)):
        for channel in range(channels):
            first = line[lefts[at] + channel]
            last = line[rights[at] + channel]
            out[at * channels + channel] = (last - first) * weights[at] + first


@compiled
def weigh(
    images: Array, rows: tuple[Array, Array], columns: tuple[Array, Array], line: Array, out: Array
) -> None:
    """Add up weighted rows, then weighted pixels of a row.

    Args:
        images: The rows of numbers of each image.
        rows: The old rows of each new one, and their weights; both have a row for each term.
        columns: The first number of the first old pixel of each new one, and a row of weights for each new one.
        line: Memory for an old row of floats.
        out: The new rows of each image.
    """
    for number in range(len(images)):
        _weigh(images[number], rows, columns, line, out[number])


@compiled
def _weigh(
    image: Array, rows: tuple[Array, Array], columns: tuple[Array, Array], line: Array, out: Array
) -> None:
    places, weights = rows
    for row in range(out.shape[0]):
        old, weight = image[places[0, row]], weights[0, row]
        for at in range(len(line)):
            line[at] = np.float32(old[at]) * weight
        for term in range(1, places.shape[0]):
            old, weight = image[places[term, row]], weights[term, row]
            for at in range(len(line)):
                line[at] += np.float32(old[at]) * weight
        if out.shape[1] == 3 * len(columns[0]):
            _weigh_three(line, columns, out[row])
        else:
            _weigh_pixels(line, columns, out[row])


@compiled
def _weigh_three(line: Array, columns: tuple[Array, Array], out: Array) -> None:
    """Add up pixels of three colours, which the processor computes side by side."""
    places, weights = columns
    for at in range(len(places)):
        place, weight = _U64(places[at]), weights[at, 0]
        red, green, blue = (
            line[place] * weight,
            line[place + _ONE] * weight,
            line[place + _TWO] * weight,
        )
        for term in range(1, weights.shape[1]):
            place += _THREE
            weight = weights[at, term]
            red += line[place] * weight
            green += line[place + _ONE] * weight
            blue += line[place + _TWO] * weight
        out[3 * at], out[3 * at + 1], out[3 * at + 2] = red, green, blue


@compiled
def _weigh_pixels(line: Array, columns: tuple[Array, Array], out: Array) -> None:
    places, weights = columns
    channels = len(out) // len(places)
    for at in range(len(places)):
        for channel in range(channels):
            place = places[at] + channel
            found = line[place] * weights[at, 0]
            for term in range(1, weights.shape[1]):
                found += line[place + term * channels] * weights[at, term]
            out[at * channels + channel] = found
