"""Resizes images: `tf.image.resize`, with the interpolation methods and the numerics of TensorFlow."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images import hot_loops
from evenfeed.images.geometry import check_image, lengths_of, size_of, with_size
from evenfeed.images.resize_weights import band, middles, runs_of_pixels, weights

BILINEAR: Final = "bilinear"
NEAREST: Final = "nearest"
_METHODS: Final = (
    BILINEAR,
    NEAREST,
    "area",
    "bicubic",
    "gaussian",
    "lanczos3",
    "lanczos5",
    "mitchellcubic",
)
# Methods that return the same pixels if the size does not change. The others smooth the image even then.
_EXACT: Final = (BILINEAR, "area", "bicubic")


class ResizeMethod:
    """The names of the interpolation methods of `resize`."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = BILINEAR
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = NEAREST


def resize(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    images: Any,
    size: Any,
    method: str = BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Any:
    """Resize an image, or each image of a batch.

    Args:
        images: An image (height, width, channels), or a batch of images.
        size: The new height and width.
        method: "nearest", which keeps the dtype, or a method that returns float32: "bilinear", "bicubic",
            "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic".
        preserve_aspect_ratio: Keep the aspect ratio; `size` is then the maximum.
        antialias: When downscaling, use all old pixels instead of only the nearest ones.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> image = np.array([[[0], [10]]], np.uint8)
        >>> tf.image.resize(image, [1, 4])[..., 0].tolist()
        [[0.0, 2.5, 7.5, 10.0]]
    """
    del name
    check_method(method)
    height, width = lengths_of(size, "size", 2)
    _check_size(height, width)
    kernel = Resize(height, width, method, bool(preserve_aspect_ratio), bool(antialias))
    return applied(kernel, images)


def check_method(method: str) -> None:
    """Raise ValueError for an unknown method."""
    if method not in _METHODS:
        raise ValueError(
            described(
                f"Resize method is not implemented: {method}.",
                fix=f"pass one of {', '.join(map(repr, _METHODS))}.",
            )
        )


def _check_size(height: int, width: int) -> None:
    if min(height, width) < 1:
        raise InvalidArgumentError(
            f"output dimensions must be positive, but got {height} x {width}.",
            fix="pass a larger height and width.",
        )


@final
@dataclass(frozen=True)
class Resize(RowKernel):
    """Resizes an image by selecting or interpolating pixels."""

    takes_batches = True

    height: int
    width: int
    method: str
    keeps_form: bool
    antialias: bool

    def spec(self, *given: TensorSpec) -> TensorSpec:
        old = given[0]
        dtype = old.dtype if self.method == NEAREST else dtypes.float32
        if not self.keeps_form or old.shape.rank is None:
            return TensorSpec(with_size(old.shape, self.height, self.width), dtype)
        height, width = list(old.shape)[-3:-1]
        size = (None, None) if height is None or width is None else self._size(height, width)
        return TensorSpec(with_size(old.shape, *size), dtype)

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        check_image(image, "images")
        if image.dtype.kind not in "iuf" and image.dtype != dtypes.bfloat16:
            raise InvalidArgumentError(
                f"resize needs numbers, but got {image.dtype.name}.",
                fix="convert the image first: evenfeed.cast(image, evenfeed.float32).",
            )
        if min(size_of(image)) < 1:
            raise InvalidArgumentError(
                f"input image must be of non-zero size, but got {image.shape}.",
                fix="pass an image with at least one pixel.",
            )
        old, new = size_of(image), self._size(*size_of(image))
        _check_size(*new)  # the shorter side of a long image may be rounded to 0
        if self.method == NEAREST:
            return image if old == new else _nearest(image, new)
        if old == new and self.method in _EXACT:
            return image.astype(np.float32)
        if self.method == BILINEAR and not self.antialias:
            return _bilinear(image, new)
        if image.dtype.kind != "u" or image.dtype.itemsize > 2:
            image = image.astype(np.float32, copy=False)  # Other dtypes times float32 give float64.
        return _weighed(image, new, self.method, antialias=self.antialias)

    def differentiable(self, *parts: Any) -> Any:
        image = parts[0]
        check_image(image, "images")
        old, new = size_of(image), self._size(*size_of(image))
        _check_size(*new)  # the shorter side of a long image may be rounded to 0
        if self.method == NEAREST:
            return image if old == new else _nearest(image, new)
        if old == new and self.method in _EXACT:
            return image.astype(np.float32)
        rows, columns = _matrices(image, new, self.method, self.antialias)
        image = image.astype(np.float32)
        flat = image.reshape(*image.shape[:-2], old[1] * image.shape[-1])
        high = (rows @ flat).reshape(*image.shape[:-3], new[0], *image.shape[-2:])
        return columns @ high

    def _size(self, height: int, width: int) -> tuple[int, int]:
        if not self.keeps_form:
            return self.height, self.width
        scale = min(
            np.float32(self.height) / np.float32(height), np.float32(self.width) / np.float32(width)
        )
        return int(np.round(scale * np.float32(height))), int(np.round(scale * np.float32(width)))


def _nearest(image: Array, size: tuple[int, int]) -> Array:
    rows, columns = (
        np.minimum((middles(new) * (np.float32(old) / np.float32(new))).astype(np.int64), old - 1)
        for old, new in zip(size_of(image), size, strict=True)
    )
    return image.take(rows, axis=-3).take(columns, axis=-2)


def _bilinear(image: Array, size: tuple[int, int]) -> Array:
    """Interpolate rows, then columns: the values of a row are contiguous, so whole rows are computed at once."""
    (height, width), channels = size_of(image), image.shape[-1]
    found = hot_loops.resized(
        "interpolate",
        image,
        size,
        _around(height, size[0]) if height != size[0] else _KEPT,
        _around(width, size[1], channels) if width != size[1] else _KEPT,
    )
    if found is not None:
        return found
    numbers = image.reshape(*image.shape[:-2], width * channels)
    if height != size[0]:
        rows = _between(height, size[0])
        upper, lower = (numbers.take(one, axis=-2) for one in (rows.lower, rows.upper))
        numbers = _mixed(_as_floats(upper), _as_floats(lower), rows.weight[:, None])
    if width != size[1]:
        numbers = _as_floats(numbers)
        columns = _between_numbers(width, size[1], channels)
        left, right = (numbers.take(one, axis=-1) for one in (columns.lower, columns.upper))
        numbers = _mixed(left, right, columns.weight)
    return numbers.reshape(*image.shape[:-3], *size, channels)


def _as_floats(numbers: Array) -> Array:
    return numbers.astype(np.float32, copy=False)


def _mixed(one: Array, other: Array, weight: Array) -> Array:
    """Interpolate between two arrays, in place in the second."""
    other -= one
    other *= weight
    other += one
    return other


@final
@dataclass(frozen=True)
class _Between:
    """The two old pixels around each new one, and the weight of the second."""

    lower: Array
    upper: Array
    weight: Array


# What stands for a side that keeps its length.
_KEPT: Final = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


@lru_cache(maxsize=256)
def _between(old: int, new: int) -> _Between:
    places = middles(new) * (np.float32(old) / np.float32(new)) - np.float32(0.5)
    below = np.floor(places)
    lower = np.maximum(below, 0).astype(np.int64)
    upper = np.minimum(np.ceil(places), old - 1).astype(np.int64)
    return _Between(lower, upper, places - below)


@lru_cache(maxsize=256)
def _around(old: int, new: int, channels: int = 1) -> tuple[Array, Array, Array]:
    """Return the arguments of a compiled loop: where both pixels start in a row of numbers, and the weight."""
    pixels = _between(old, new)
    return pixels.lower * channels, pixels.upper * channels, pixels.weight


@lru_cache(maxsize=256)
def _between_numbers(old: int, new: int, channels: int) -> _Between:
    """Return the same for the single values of a row of pixels, which NumPy takes faster than pixels."""
    pixels = _between(old, new)
    lower, upper = (
        (places[:, None] * channels + np.arange(channels)).ravel()
        for places in (pixels.lower, pixels.upper)
    )
    return _Between(lower, upper, np.repeat(pixels.weight, channels))


def _weighed(image: Array, size: tuple[int, int], method: str, *, antialias: bool) -> Array:
    (height, width), channels = size_of(image), image.shape[-1]
    rows = band(method, height, size[0], antialias=antialias)
    runs = runs_of_pixels(method, width, size[1], channels, antialias=antialias)
    found = hot_loops.resized("weigh", image, size, (rows.places, rows.weights), runs)
    if found is not None:
        return found
    columns = band(method, width, size[1], channels, antialias=antialias)
    joined = image.reshape(*image.shape[:-2], width * channels)
    high = _added(joined, rows.places, rows.weights[..., None], -2)
    wide = _added(high, columns.places, columns.weights, -1)
    return wide.reshape(*image.shape[:-3], *size, channels)


def _added(image: Array, places: Array, weights: Array, axis: int) -> Array:
    """Return the weighted sum of several old entries for each new one."""
    found = image.take(places[0], axis=axis) * weights[0]
    for some, weight in zip(places[1:], weights[1:], strict=True):
        more = image.take(some, axis=axis)
        found += more * weight if more.dtype != np.float32 else np.multiply(more, weight, out=more)
    return found


def _matrices(image: Array, size: tuple[int, int], method: str, antialias: bool) -> list[Array]:
    """Return the weights of the old rows for the new ones, and of the old columns."""
    pairs = zip(size_of(image), size, strict=True)
    return [weights(method, old, new, antialias=antialias) for old, new in pairs]
