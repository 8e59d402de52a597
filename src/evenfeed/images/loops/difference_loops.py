"""Compiled loops over the differences of pixels. Importing this module imports Numba.

Each loop computes what the NumPy code of `differences.py` does, to the last bit: LLVM keeps the order of operations.
"""

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false


@compiled
def add_squares(one: Array, other: Array, sums: Array) -> None:
    """Add up the squares of the differences of two images in each column.

    Args:
        one: The rows of the first image.
        other: The rows of the other image.
        sums: The sums, which begin with 0.
    """
    for row in range(one.shape[0]):
        for at in range(one.shape[1]):
            distance = one[row, at] - other[row, at]
            sums[at] += distance * distance


@compiled
def add_steps(rows: Array, channels: int, down: Array, right: Array) -> None:
    """Add up the differences of neighbouring pixels in each column.

    Args:
        rows: The rows of an image.
        channels: The numbers of a pixel.
        down: The sums of the differences to the next row, which begin with 0.
        right: The sums of the differences to the next pixel, one pixel shorter.
    """
    height, length = rows.shape
    for row in range(height):
        line = rows[row]
        after = line[channels:]
        for at in range(length - channels):
            right[at] += np.abs(after[at] - line[at])
        if row + 1 < height:
            below = rows[row + 1]
            for at in range(length):
                down[at] += np.abs(below[at] - line[at])
