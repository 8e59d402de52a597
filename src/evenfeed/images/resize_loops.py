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

# The old rows (or the numbers of a row) below and above each new one, and the weight of the second.
Between: TypeAlias = tuple[Array, Array, Array]


@compiled
def interpolate(image: Array, rows: Between, columns: Between, line: Array, out: Array) -> None:
    """Interpolate between rows, then between the numbers of a row. An empty tuple entry keeps rows or numbers.

    Args:
        image: The rows of numbers.
        rows: The rows around each new row; empty arrays if the height stays.
        columns: The numbers around each new number; empty arrays if the width stays.
        line: Memory for an old row of floats.
        out: The new rows.
    """
    above, below, heights = rows
    left, right, widths = columns
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
        if len(left):
            for at in range(out.shape[1]):
                first = line[_U64(left[at])]
                out[row, at] = (line[_U64(right[at])] - first) * widths[at] + first
        else:
            for at in range(out.shape[1]):
                out[row, at] = line[at]


@compiled
def weigh(
    image: Array, rows: tuple[Array, Array], columns: tuple[Array, Array], line: Array, out: Array
) -> None:
    """Add up weighted rows, then weighted numbers of a row: places and weights have a row for each term."""
    row_places, row_weights = rows
    places, weights = columns
    for row in range(out.shape[0]):
        old, weight = image[row_places[0, row]], row_weights[0, row]
        for at in range(len(line)):
            line[at] = np.float32(old[at]) * weight
        for term in range(1, row_places.shape[0]):
            old, weight = image[row_places[term, row]], row_weights[term, row]
            for at in range(len(line)):
                line[at] += np.float32(old[at]) * weight
        for at in range(out.shape[1]):
            found = line[_U64(places[0, at])] * weights[0, at]
            for term in range(1, places.shape[0]):
                found += line[_U64(places[term, at])] * weights[term, at]
            out[row, at] = found
