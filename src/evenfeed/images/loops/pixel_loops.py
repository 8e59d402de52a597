"""Compiled loops over the values and pixels of images. Importing this module imports Numba.

Each loop computes what the NumPy code of its caller does, to the last bit: LLVM keeps the order of operations.
"""

from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false

_F32 = np.float32
_U64 = np.uint64
# From the first number of a pixel to the second and to the third.
_NEXT: Final = np.uint64(1)
_LAST: Final = np.uint64(2)
_ZERO: Final = np.float32(0)
_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1)
_TWO: Final = np.float32(2)
_THREE: Final = np.float32(3)
_FOUR: Final = np.float32(4)
_FIVE: Final = np.float32(5)
_SIX: Final = np.float32(6)
_THIRD: Final = np.float32(2 / 6)
_TWO_THIRDS: Final = np.float32(4 / 6)
_FRACTION: Final = np.float32(1 / 255)
_BYTE: Final = np.float32(255.5)
_MOST: Final = np.float32(255)
_WIDE: Final = np.float32(2**31)


@compiled
def look_up(values: Array, table: Array, out: Array) -> None:
    """Write the entry of each byte in a table."""
    for at in range(values.shape[0]):
        out[at] = table[values[at]]


@compiled
def to_floats(values: Array, out: Array) -> None:
    """Scale bytes to floats from 0 to 1."""
    for at in range(values.shape[0]):
        out[at] = np.float32(values[at]) * _FRACTION


@compiled
def brighten(values: Array, delta: Any, out: Array) -> None:
    """Add a number to bytes, as floats from 0 to 1, and clip them."""
    for at in range(values.shape[0]):
        out[at] = _clipped_byte(np.float32(values[at]) * _FRACTION + delta)


@compiled
def _clipped_byte(value: Any) -> Any:
    scaled = value * _BYTE
    scaled = scaled if scaled > _ZERO else _ZERO
    return np.uint8(np.int32(scaled if scaled < _MOST else _MOST))


@compiled
def to_bytes(values: Array, out: Array) -> bool:
    """Scale floats to bytes, which wrap around; return False if a value is too large for that."""
    fits = True
    for at in range(values.shape[0]):
        scaled = values[at] * _BYTE
        fits &= abs(scaled) < _WIDE
        out[at] = np.uint8(np.int32(scaled))
    return fits


@compiled
def to_clipped_bytes(values: Array, out: Array) -> None:
    """Scale floats to bytes, and clip them; NaN becomes 0."""
    for at in range(values.shape[0]):
        out[at] = _clipped_byte(values[at])


@compiled
def _hsv(red: Any, green: Any, blue: Any) -> Any:
    # Without branches, which the processor would guess wrong for every other pixel.
    value = max(red, green, blue)
    spread = value - min(red, green, blue)
    saturation = spread / value if value > _ZERO else _ZERO
    norm = _ONE / (_SIX * spread)
    one, other = (red - green, _TWO_THIRDS)
    one, other = (blue - red, _THIRD) if green == value else (one, other)
    one, other = (green - blue, _ZERO) if red == value else (one, other)
    hue = norm * one + other
    hue = hue if spread > _ZERO else _ZERO
    hue = hue + _ONE if hue < _ZERO else hue
    return hue, saturation, value


@compiled
def _split(pixels: Array, first: int, count: int, planes: Array) -> bool:
    """Copy some pixels to one row for each channel, where LLVM computes eight at once; return False if one is odd."""
    finite = True
    for at in range(count):
        red, green, blue = pixels[first + at, 0], pixels[first + at, 1], pixels[first + at, 2]
        finite &= (red - red) + (green - green) + (blue - blue) == _ZERO
        planes[0, at], planes[1, at], planes[2, at] = red, green, blue
    return finite


@compiled
def _join(planes: Array, first: int, count: int, out: Array) -> None:
    for at in range(count):
        out[first + at, 0], out[first + at, 1] = planes[0, at], planes[1, at]
        out[first + at, 2] = planes[2, at]


@compiled
def to_hsv(pixels: Array, planes: Array, out: Array) -> bool:
    """Convert RGB to hue, saturation and value; return False if a value is not finite."""
    finite, most = True, planes.shape[1]
    for first in range(0, pixels.shape[0], most):
        count = min(most, pixels.shape[0] - first)
        finite &= _split(pixels, first, count, planes)
        _plane_hsv(planes[0], planes[1], planes[2], count)
        _join(planes, first, count, out)
    return finite


@compiled
def _plane_hsv(reds: Array, greens: Array, blues: Array, count: int) -> None:
    for at in range(count):
        reds[at], greens[at], blues[at] = _hsv(reds[at], greens[at], blues[at])


@compiled
def from_hsv(pixels: Array, planes: Array, out: Array) -> bool:
    """Convert hue, saturation and value to RGB; return False if a value is not finite."""
    finite, most = True, planes.shape[1]
    for first in range(0, pixels.shape[0], most):
        count = min(most, pixels.shape[0] - first)
        finite &= _split(pixels, first, count, planes)
        _plane_rgb(planes[0], planes[1], planes[2], count)
        _join(planes, first, count, out)
    return finite


@compiled
def _plane_rgb(hues: Array, saturations: Array, values: Array, count: int) -> None:
    for at in range(count):
        sixths, saturation, value = hues[at] * _SIX, saturations[at], values[at]
        rest = _ONE - saturation
        red = abs(sixths - _THREE) - _ONE
        green = _TWO - abs(sixths - _TWO)
        blue = _TWO - abs(sixths - _FOUR)
        hues[at] = (rest + saturation * min(max(red, _ZERO), _ONE)) * value
        saturations[at] = (rest + saturation * min(max(green, _ZERO), _ONE)) * value
        values[at] = (rest + saturation * min(max(blue, _ZERO), _ONE)) * value


@compiled
def _in_order(sixths: Any, most: Any, middle: Any, least: Any) -> Any:
    """Return red, green and blue: the largest, middle and smallest colour where the hue wants them."""
    red = middle if (sixths < _TWO) | (sixths >= _FOUR) else least
    red = most if (sixths < _ONE) | (sixths >= _FIVE) else red
    green = middle if sixths < _FOUR else least
    green = most if (sixths >= _ONE) & (sixths < _THREE) else green
    blue = middle if sixths >= _TWO else least
    blue = most if (sixths >= _THREE) & (sixths < _FIVE) else blue
    return red, green, blue


@compiled
def saturate(pixels: Array, factor: Any, planes: Array, out: Array) -> bool:
    """Multiply saturations; return False if a value is not finite."""
    finite, most = True, planes.shape[1]
    for first in range(0, pixels.shape[0], most):
        count = min(most, pixels.shape[0] - first)
        finite &= _split(pixels, first, count, planes)
        finite &= _saturate(planes[0], planes[1], planes[2], count, factor)
        _join(planes, first, count, out)
    return finite


@compiled
def _saturate(reds: Array, greens: Array, blues: Array, count: int, factor: Any) -> bool:
    finite = True
    for at in range(count):
        hue, saturation, value = _hsv(reds[at], greens[at], blues[at])
        finite &= hue - hue == _ZERO
        saturation = min(max(saturation * factor, _ZERO), _ONE)
        chroma = saturation * value
        sixths = hue * _SIX
        # Exact, as the remainder is: the numbers are near to each other.
        rest = sixths - _TWO * np.float32(np.int32(sixths * _HALF))
        middle = chroma * (_ONE - abs(rest - _ONE))
        grey = value - chroma
        reds[at], greens[at], blues[at] = _in_order(sixths, chroma + grey, middle + grey, grey)
    return finite


@compiled
def turn(pixels: Array, turned: Any, planes: Array, out: Array) -> bool:
    """Turn hues by sixths of a circle, from -6 to 6; return False if a value is not finite."""
    finite, most = True, planes.shape[1]
    for first in range(0, pixels.shape[0], most):
        count = min(most, pixels.shape[0] - first)
        finite &= _split(pixels, first, count, planes)
        finite &= _turn(planes[0], planes[1], planes[2], count, turned)
        _join(planes, first, count, out)
    return finite


@compiled
def _turn(reds: Array, greens: Array, blues: Array, count: int, turned: Any) -> bool:
    finite = True
    for at in range(count):
        red, green, blue = reds[at], greens[at], blues[at]
        most, least = max(red, green, blue), min(red, green, blue)
        middle = max(min(red, green), min(max(red, green), blue))
        # Without branches, which the processor would guess wrong for every other pixel.
        below = _ONE if blue < red else (_THREE if blue > green else _TWO)
        above = _ZERO if blue < green else (_FOUR if blue > red else _FIVE)
        sixth = below if red < green else above
        share = (middle - least) / (most - least)
        share = _ONE - share if _is_odd(sixth) else share
        hue = (sixth + share if most != least else _ZERO) + turned
        finite &= hue - hue == _ZERO
        hue = hue + _SIX if hue < _ZERO else (hue - _SIX if hue >= _SIX else hue)
        hue = _ZERO if (hue >= _SIX) & (turned > _ZERO) else hue
        sixth = min(np.float32(np.int32(hue)), _FIVE)
        share = hue - sixth
        share = _ONE - share if _is_odd(sixth) else share
        middle = least + share * (most - least)
        reds[at], greens[at], blues[at] = _in_order(hue, most, middle, least)
    return finite


@compiled
def _is_odd(sixth: Any) -> bool:
    return (sixth == _ONE) | (sixth == _THREE) | (sixth == _FIVE)


@compiled
def mix(pixels: Array, matrix: Array, out: Array) -> None:
    """Multiply pixels by a matrix, whose first axis has three entries."""
    if matrix.shape[1] == 3:
        _mix_three(pixels.reshape(-1), matrix, out.reshape(-1))
        return
    for channel in range(matrix.shape[1]):
        first, second, third = matrix[0, channel], matrix[1, channel], matrix[2, channel]
        for at in range(pixels.shape[0]):
            out[at, channel] = (
                pixels[at, 0] * first + pixels[at, 1] * second + pixels[at, 2] * third
            )


# LLVM shuffles the three numbers of eight pixels at once if they have one index each, and knows that it is not negative.


@compiled
def _mix_three(numbers: Array, matrix: Array, out: Array) -> None:
    red, green, blue = matrix[0], matrix[1], matrix[2]
    for start in range(0, len(numbers), 3):
        at = _U64(start)
        one, two, three = numbers[at], numbers[at + _NEXT], numbers[at + _LAST]
        out[at] = one * red[0] + two * green[0] + three * blue[0]
        out[at + _NEXT] = one * red[1] + two * green[1] + three * blue[1]
        out[at + _LAST] = one * red[2] + two * green[2] + three * blue[2]


@compiled
def mirror(rows: Array, channels: int, out: Array) -> None:
    """Reverse the pixels of each row of numbers."""
    length = rows.shape[1]
    for row in range(rows.shape[0]):
        old, new = rows[row], out[row]
        if channels == 3:
            for start in range(0, length, 3):
                at, to = _U64(start), _U64(length - 3 - start)
                one, two, three = old[at], old[at + _NEXT], old[at + _LAST]
                new[to], new[to + _NEXT], new[to + _LAST] = one, two, three
        else:
            for start in range(0, length, channels):
                for channel in range(channels):
                    new[length - channels - start + channel] = old[start + channel]


@compiled
def mirror_some(images: Array, flips: Array, channels: int, out: Array) -> None:
    """Reverse the pixels of each row of some images, and copy the others."""
    for number in range(len(images)):
        old, new = images[number], out[number]
        if flips[number]:
            mirror(old, channels, new)
            continue
        for row in range(old.shape[0]):
            for at in range(old.shape[1]):
                new[row, at] = old[row, at]


@compiled
def swap(images: Array, channels: int, downward: bool, rightward: bool, out: Array) -> None:
    """Exchange the rows and columns of images, which may be read in reverse. Small squares stay in the cache.

    Args:
        images: The rows of numbers of each image.
        channels: The numbers of a pixel.
        downward: False to read the rows from the last to the first.
        rightward: False to read the columns so.
        out: The new rows of numbers of each image.
    """
    for number in range(len(images)):
        _swap(images[number], channels, downward, rightward, out[number])


@compiled
def _swap(rows: Array, channels: int, downward: bool, rightward: bool, out: Array) -> None:
    height, width = rows.shape[0], out.shape[0]
    for top in range(0, height, 16):
        for left in range(0, width, 16):
            for column in range(left, min(left + 16, width)):
                new = out[column if rightward else width - 1 - column]
                for row in range(top, min(top + 16, height)):
                    old, at = rows[row], _U64(column * channels)
                    to = _U64((row if downward else height - 1 - row) * channels)
                    if channels == 3:
                        new[to] = old[at]
                        new[to + _NEXT] = old[at + _NEXT]
                        new[to + _LAST] = old[at + _LAST]
                    else:
                        for channel in range(channels):
                            new[to + _U64(channel)] = old[at + _U64(channel)]


@compiled
def reverse_colours(rows: Array, upward: bool, out: Array) -> None:
    """Write pixels of blue, green and red as red, green and blue; `upward` reads the last row first."""
    for row in range(out.shape[0]):
        old, new = rows[len(rows) - 1 - row if upward else row], out[row]
        for start in range(0, len(new), 3):
            at = _U64(start)
            blue, green, red = old[at], old[at + _NEXT], old[at + _LAST]
            new[at], new[at + _NEXT], new[at + _LAST] = red, green, blue


@compiled
def pad_pixels(numbers: Array, out: Array) -> None:
    """Write three numbers of each pixel, and 0."""
    for pixel in range(len(out) // 4):
        at, to = _U64(3 * pixel), _U64(4 * pixel)
        out[to], out[to + _NEXT] = numbers[at], numbers[at + _NEXT]
        out[to + _LAST], out[to + _U64(3)] = numbers[at + _LAST], np.uint8(0)


@compiled
def triple(numbers: Array, out: Array) -> None:
    """Write each number three times."""
    for start in range(len(numbers)):
        at = _U64(3 * start)
        out[at] = out[at + _NEXT] = out[at + _LAST] = numbers[start]
