"""Compiled loops that apply and undo the filters of PNG files. Importing this module imports Numba."""

from typing import Any

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false

_NONE, _LEFT, _ABOVE, _AVERAGE, _PAETH = range(5)


@compiled
def unfilter(rows: Array, step: int, above: Array, out: Array) -> bool:
    """Write the bytes of all rows; return False if a row has an unknown filter.

    Args:
        rows: The filtered rows. Each starts with the number of its filter.
        step: The number of bytes of a pixel.
        above: A row of zeros.
        out: The rows without that number.
    """
    for row in range(out.shape[0]):
        kind, given, here = rows[row, 0], rows[row, 1:], out[row]
        if kind == _NONE:
            for at in range(len(here)):
                here[at] = given[at]
        elif kind == _LEFT:
            _add_left(given, step, here)
        elif kind == _ABOVE:
            for at in range(len(here)):
                here[at] = given[at] + above[at]
        elif kind == _AVERAGE:
            _add_average(given, above, step, here)
        elif kind == _PAETH:
            _add_paeth(given, above, step, here)
        else:
            return False
        above = here
    return True


@compiled
def filter_rows(rows: Array, step: int, above: Array, out: Array) -> None:
    """Write the differences of each row to its neighbours, with the filter whose differences have the smallest sum.

    Args:
        rows: The bytes of the rows.
        step: The number of bytes of a pixel.
        above: A row of zeros.
        out: The filtered rows. Each starts with the number of its filter.
    """
    for row in range(rows.shape[0]):
        given, here = rows[row], out[row, 1:]
        best, least = _NONE, np.int64(1 << 62)
        for kind in range(5):
            _subtract(kind, given, above, step, here)
            some = _size(here)
            if some < least:
                best, least = kind, some
        if best != _PAETH:  # the last one is there already
            _subtract(best, given, above, step, here)
        out[row, 0] = best
        above = given


@compiled
def _subtract(kind: int, given: Array, above: Array, step: int, here: Array) -> None:
    for at in range(step):
        guess = above[at] >> 1 if kind == _AVERAGE else above[at]
        here[at] = given[at] if kind <= _LEFT else given[at] - guess
    left, corner, top = given[: len(given) - step], above[: len(above) - step], above[step:]
    new, old = here[step:], given[step:]
    if kind == _NONE:
        for at in range(len(new)):
            new[at] = old[at]
    elif kind == _LEFT:
        for at in range(len(new)):
            new[at] = old[at] - left[at]
    elif kind == _ABOVE:
        for at in range(len(new)):
            new[at] = old[at] - top[at]
    elif kind == _AVERAGE:
        for at in range(len(new)):
            new[at] = old[at] - np.uint8((np.int32(left[at]) + np.int32(top[at])) >> 1)
    else:
        for at in range(len(new)):
            new[at] = old[at] - np.uint8(
                _nearest(np.int16(left[at]), np.int16(top[at]), np.int16(corner[at]))
            )


@compiled
def _size(differences: Array) -> int:
    """Return the sum of the sizes of signed bytes."""
    found = np.int32(0)
    for at in range(len(differences)):
        found += abs(np.int32(np.int8(differences[at])))
    return found


@compiled
def _add_left(given: Array, step: int, here: Array) -> None:
    for at in range(step):
        here[at] = given[at]
    for at in range(step, len(here)):
        here[at] = given[at] + here[at - step]


@compiled
def _add_average(given: Array, above: Array, step: int, here: Array) -> None:
    for at in range(step):
        here[at] = given[at] + (above[at] >> 1)
    for at in range(step, len(here)):
        here[at] = given[at] + ((np.int32(here[at - step]) + np.int32(above[at])) >> 1)


@compiled
def _add_paeth(given: Array, above: Array, step: int, here: Array) -> None:
    if step == 3:  # Three colours at a time: the processor computes them side by side.
        _add_paeth_of_three(given, above, here)
        return
    for at in range(step):
        here[at] = given[at] + above[at]
    for at in range(step, len(here)):
        here[at] = given[at] + _nearest(
            np.int32(here[at - step]), np.int32(above[at]), np.int32(above[at - step])
        )


@compiled
def _add_paeth_of_three(given: Array, above: Array, here: Array) -> None:
    red, green, blue = np.int32(0), np.int32(0), np.int32(0)
    old_red, old_green, old_blue = np.int32(0), np.int32(0), np.int32(0)
    for at in range(0, len(here) - 2, 3):
        top_red, top_green, top_blue = (
            np.int32(above[at]),
            np.int32(above[at + 1]),
            np.int32(above[at + 2]),
        )
        red = (np.int32(given[at]) + _nearest(red, top_red, old_red)) & 255
        green = (np.int32(given[at + 1]) + _nearest(green, top_green, old_green)) & 255
        blue = (np.int32(given[at + 2]) + _nearest(blue, top_blue, old_blue)) & 255
        here[at], here[at + 1], here[at + 2] = np.uint8(red), np.uint8(green), np.uint8(blue)
        old_red, old_green, old_blue = top_red, top_green, top_blue


@compiled
def _nearest(left: Any, above: Any, corner: Any) -> Any:
    """Return the neighbour that is nearest to left + above - corner."""
    down, right = above - corner, left - corner
    from_left, from_above, from_corner = abs(down), abs(right), abs(down + right)
    nearer = above if from_above <= from_corner else corner
    return left if from_left <= min(from_above, from_corner) else nearer
