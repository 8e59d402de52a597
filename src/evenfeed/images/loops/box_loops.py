"""Compiled loops over boxes. Importing this module imports Numba.

Each loop decides what the NumPy code of `overlapping_boxes.py` does, with the same operations in the same order.
"""

from typing import Any

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false

_ZERO = np.float32(0)


@compiled
def keep(sides: Array, order: Array, threshold: Any, out: Array) -> int:
    """Write the boxes that overlap no kept one, in the order given, until `out` is full; return their number.

    Args:
        sides: The first rows, first columns, last rows, last columns and areas of all boxes.
        order: The boxes that may be kept, the best first.
        threshold: The largest overlap of two kept boxes.
        out: The kept boxes.
    """
    top, left, bottom, right, areas = sides[0], sides[1], sides[2], sides[3], sides[4]
    count = 0
    for at in range(len(order)):
        if count == len(out):
            break
        one, overlaps = order[at], False
        for place in range(count):
            other = out[place]
            if areas[one] <= _ZERO or areas[other] <= _ZERO:
                continue
            height = min(bottom[one], bottom[other]) - max(top[one], top[other])
            width = min(right[one], right[other]) - max(left[one], left[other])
            shared = max(height, _ZERO) * max(width, _ZERO)
            if shared / (areas[one] + areas[other] - shared) > threshold:
                overlaps = True
                break
        if not overlaps:
            out[count] = one
            count += 1
    return count


@compiled
def keep_each(  # noqa: PLR0913, PLR0917 - Numba takes arrays, not objects
    sides: Array, orders: Array, candidates: Array, threshold: Any, out: Array, counts: Array
) -> None:
    """Do the same for each class of each image.

    Args:
        sides: The boxes of each class of each image; a single class stands for all.
        orders: All boxes of each class, the best first.
        candidates: How many of them may be kept.
        threshold: The largest overlap of two kept boxes.
        out: The kept boxes.
        counts: How many are kept.
    """
    for image in range(out.shape[0]):
        for kind in range(out.shape[1]):
            boxes = sides[:, image, kind if sides.shape[2] > 1 else 0]
            order = orders[image, kind, : candidates[image, kind]]
            counts[image, kind] = keep(boxes, order, threshold, out[image, kind])
