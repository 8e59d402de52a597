"""The weights of old pixels in the new ones of a resized image, with the numerics of TensorFlow.

Most methods are kernels: a weight as a function of the distance to the centre of the new pixel. `area` weights
an old pixel by its overlap with the new one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np

from evenfeed.core.conversion import Array

_ONE: Final = np.float32(1)
# Without antialiasing, TensorFlow looks up cubic weights in a table with this many distances.
_CUBIC_STEPS: Final = 1024


def _triangle(x: Array) -> Array:
    return np.maximum(0, _ONE - x)


def _keys(x: Array) -> Array:
    near = ((1.5 * x - 2.5) * x) * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _mitchell(x: Array) -> Array:
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x <= 2, far, 0))


def _gaussian(x: Array) -> Array:
    return np.where(x < 1.5, np.exp(-2 * x * x), 0)


def _lanczos(radius: int) -> Callable[[Array], Array]:
    pi, wide = np.float32(np.pi), np.float32(radius)

    def curve(x: Array) -> Array:
        # In single precision, as in TensorFlow: the zeros of the curve are not exactly zero.
        waves = wide * np.sin(pi * x) * np.sin(pi * x / wide)
        near = np.maximum(x, np.float32(1e-3))
        return np.where(x > radius, 0, np.where(x <= 1e-3, _ONE, waves / (pi * pi * near * near)))

    return curve


# The curve and its radius for each method.
_CURVES: Final[dict[str, tuple[Callable[[Array], Array], float]]] = {
    "bilinear": (_triangle, 1),
    "bicubic": (_keys, 2),
    "mitchellcubic": (_mitchell, 2),
    "gaussian": (_gaussian, 1.5),
    "lanczos3": (_lanczos(3), 3),
    "lanczos5": (_lanczos(5), 5),
}


@lru_cache(maxsize=64)
def weights(method: str, old: int, new: int, *, antialias: bool) -> Array:
    """Return a matrix with a row of weights for each new pixel. Each row sums to 1.

    Args:
        method: The interpolation method.
        old: The number of old pixels.
        new: The number of new pixels.
        antialias: When downscaling, widen the curve to the width of the new pixels.
    """
    scale = np.float32(old) / np.float32(new)
    if method == "area":
        found = _overlaps(old, new, scale)
    elif method == "bicubic" and not antialias:
        found = _cubic_by_table(old, new, scale)
    else:
        found = _by_curve(method, old, new, antialias=antialias)
    return (found / found.sum(axis=1, keepdims=True)).astype(np.float32)


@final
@dataclass(frozen=True)
class Band:
    """The non-zero weights of a resize: a run of consecutive old pixels for each new one.

    Attributes:
        places: The indices of the old pixels; one row for each member of the run.
        weights: Their weights.
    """

    places: Array
    weights: Array


@lru_cache(maxsize=64)
def band(method: str, old: int, new: int, channels: int = 1, *, antialias: bool) -> Band:
    """Return the non-zero weights. With channels, indices are those of the values of a row, not of its pixels."""
    all_of = weights(method, old, new, antialias=antialias)
    first = (all_of != 0).argmax(axis=1)
    count = int((old - (all_of != 0)[:, ::-1].argmax(axis=1) - first).max())
    places = np.minimum(first, old - count)[None, :] + np.arange(count)[:, None]
    found = np.take_along_axis(all_of, places.T, axis=1).T
    numbers = (places[..., None] * channels + np.arange(channels)).reshape(count, -1)
    return Band(numbers, np.ascontiguousarray(np.repeat(found, channels, axis=1)))


@lru_cache(maxsize=64)
def runs_of_pixels(
    method: str, old: int, new: int, channels: int, *, antialias: bool
) -> tuple[Array, Array]:
    """Return where the run of each new pixel starts in a row of numbers, and a row of weights for each run."""
    found = band(method, old, new, antialias=antialias)
    return found.places[0] * channels, np.ascontiguousarray(found.weights.T)


def middles(count: int) -> Array:
    """Return the centres of pixels."""
    return np.arange(count, dtype=np.float32) + np.float32(0.5)


def _by_curve(method: str, old: int, new: int, *, antialias: bool) -> Array:
    """Return weights by distance.

    Each step is rounded as in TensorFlow; otherwise pixels at the ends of curves would differ.
    """
    curve, radius = _CURVES[method]
    scale = _ONE / (np.float32(new) / np.float32(old))
    width = np.maximum(scale, _ONE) if antialias else _ONE
    places, reach = (middles(new) * scale)[:, None], np.float32(radius) * width
    pixels, half = np.arange(old, dtype=np.float32)[None, :], np.float32(0.5)
    inside = (pixels >= np.ceil(places - reach - half)) & (
        pixels <= np.floor(places + reach - half)
    )
    return np.where(inside, curve(np.abs((pixels + half - places) * (_ONE / width))), 0)


def _overlaps(old: int, new: int, scale: np.float32) -> Array:
    """Return the overlap of each new pixel with each old one."""
    starts = (np.arange(new, dtype=np.float32) * scale)[:, None]
    stops = (np.arange(1, new + 1, dtype=np.float32) * scale)[:, None]
    pixels = np.arange(old, dtype=np.float32)[None, :]
    return np.maximum(0, np.minimum(stops, pixels + 1) - np.maximum(starts, pixels))


def _cubic_by_table(old: int, new: int, scale: np.float32) -> Array:
    """Return the weights of the four old pixels around each new one, with rounded distances."""
    places = middles(new) * scale - np.float32(0.5)
    below = np.floor(places)
    near = np.rint((places - below) * _CUBIC_STEPS) / np.float32(_CUBIC_STEPS)
    pixels = np.arange(old, dtype=np.float32)[None, :]
    distance = np.abs(pixels - below[:, None] - near[:, None])
    around = np.abs(pixels - below[:, None] - np.float32(0.5)) < 2
    return np.where(around, _keys(distance), 0)
