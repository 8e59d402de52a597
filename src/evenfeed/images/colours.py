"""Converts the dtype, channels, brightness and contrast of images."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images import hot_loops
from evenfeed.images.geometry import check_image, with_size

_KEPT: Final = (dtypes.float16, dtypes.float32)
_GREY: Final = np.array([0.2989, 0.5870, 0.1140], np.float32)


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Any:
    """Convert an image to another dtype and scale it to the dtype's range.

    Floats range from 0 to 1, and integers from 0 to their maximum.

    Args:
        image: An array of any shape.
        dtype: The dtype of the result.
        saturate: Clip values that are out of range; otherwise they wrap around.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.convert_image_dtype(np.array([0, 255], np.uint8), tf.float32).tolist()
        [0.0, 1.0]
    """
    del name
    wanted = dtypes.as_dtype(dtype)
    if not (_is_float(wanted) or wanted.kind in "iu"):
        raise AttributeError(
            described(
                f"dtype must be either floating point or integer, but got {wanted.name}.",
                fix="pass a numeric dtype, such as evenfeed.float32.",
            )
        )
    return applied(ConvertDtype(wanted, saturate), image)


def per_image_standardization(image: Any) -> Any:
    """Scale an image, or each image of a batch, to mean 0 and variance 1.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.per_image_standardization(np.array([[[0.0], [2.0]]], np.float32)).ravel().tolist()
        [-1.0, 1.0]
    """
    return applied(Standardize(), image)


def adjust_brightness(image: Any, delta: float) -> Any:
    """Add `delta` to all pixel values.

    Integer images are scaled to [0, 1] for the addition, and the result is clipped.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.adjust_brightness(np.array([0, 100, 250], np.uint8), 0.1).tolist()
        [25, 125, 255]
    """
    return applied(Brightness(float(delta)), image)


def adjust_contrast(images: Any, contrast_factor: float) -> Any:
    """Scale the distance of all pixel values from the mean of their channel.

    Args:
        images: An image (height, width, channels), or a batch of images.
        contrast_factor: The factor for the distances.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.adjust_contrast(np.array([[[1.0], [3.0]]], np.float32), 2.0).ravel().tolist()
        [0.0, 4.0]
    """
    return applied(Contrast(float(contrast_factor)), images)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Any:
    """Convert RGB images to grayscale images with one channel.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.rgb_to_grayscale(np.full([1, 1, 3], 100, np.uint8)).tolist()
        [[[100]]]
    """
    del name
    return applied(ToGrey(), images)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Any:
    """Convert grayscale images with one channel to RGB.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.grayscale_to_rgb(np.array([[[7]]])).tolist()
        [[[7, 7, 7]]]
    """
    del name
    return applied(FromGrey(), images)


@final
@dataclass(frozen=True)
class ConvertDtype(RowKernel):
    """Converts the dtype and scales values to its range."""

    dtype: DType
    saturate: bool

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape, self.dtype)

    def one(self, *parts: Array) -> Array:
        return converted(parts[0], self.dtype, saturate=self.saturate)

    def differentiable(self, *parts: Any) -> Any:
        return parts[0].astype(self.dtype)


@final
@dataclass(frozen=True)
class Standardize(RowKernel):
    """Scales to mean 0 and variance 1.

    As in TensorFlow, the deviation has a lower bound, so a uniform image becomes 0.
    """

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape, _worked_in(given[0].dtype))

    def one(self, *parts: Array) -> Array:
        check_image(parts[0])
        if parts[0].dtype == dtypes.uint8 and parts[0].size:
            return _of_each_image(_standardized_bytes, parts[0])
        image = parts[0].astype(_worked_in(parts[0].dtype), copy=False)
        out, size = np.empty(image.shape, image.dtype), image.shape[-3:]
        count = math.prod(image.shape[:-3])
        # One by one: the pixels of an image stay in the cache.
        pairs = zip(image.reshape(count, *size), out.reshape(count, *size), strict=True)
        for one, new in pairs:
            np.subtract(one, one.mean(), out=new)
            spread = np.sqrt(np.square(new).mean())
            least = _least_spread(new).astype(new.dtype)
            np.divide(new, np.maximum(spread, least), out=new)
        return out

    def differentiable(self, *parts: Any) -> Any:
        check_image(parts[0])
        axes, image = (-3, -2, -1), parts[0].astype(_worked_in(parts[0].dtype))
        image -= image.mean(axes, keepdims=True)
        least = 1 / np.prod(image.shape[-3:], dtype=np.float32)
        # Bounded before the root, whose derivative at 0 is infinite.
        return image / (image**2).mean(axes, keepdims=True).clip(least.astype(image.dtype)) ** 0.5


@final
@dataclass(frozen=True)
class Brightness(RowKernel):
    """Adds a number to all values."""

    delta: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        found = hot_loops.of_bytes("brighten", parts[0], np.uint8, np.float32(self.delta))
        return self.differentiable(*parts) if found is None else found

    def differentiable(self, *parts: Any) -> Any:
        image = in_floats(parts[0])
        return converted(image + image.dtype.type(self.delta), parts[0].dtype, saturate=True)


@final
@dataclass(frozen=True)
class Contrast(RowKernel):
    """Scales distances from the mean of each channel."""

    factor: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        check_image(parts[0], "images")
        given = parts[0]
        if not given.size:
            return given
        height, width, channels = given.shape[-3:]
        images = given if given.dtype == dtypes.uint8 else in_floats(given)
        images = images.reshape(-1, height, width, channels)
        means = np.array([_channel_means(image) for image in images])
        found = hot_loops.stretched(images, means, np.float32(self.factor))
        if found is None:
            images = in_floats(images)
            # Whole rows: NumPy is slow where the last axis is as short as that of the channels.
            rows, middle = images.reshape(-1, height, width * channels), np.tile(means, width)
            found = rows - middle[:, None]
            found *= images.dtype.type(self.factor)
            found += middle[:, None]
        return converted(found.reshape(given.shape), given.dtype, saturate=True)

    def differentiable(self, *parts: Any) -> Any:
        check_image(parts[0], "images")
        image = in_floats(parts[0])
        mean = image.mean((-3, -2), keepdims=True, dtype=np.float32).astype(image.dtype)
        stretched = (image - mean) * image.dtype.type(self.factor) + mean
        return converted(stretched, parts[0].dtype, saturate=True)


@final
@dataclass(frozen=True)
class ToGrey(RowKernel):
    """Converts RGB to one channel by a weighted sum."""

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(_with_channels(given[0], 1), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        if image.ndim == 0 or image.shape[-1] != 3:
            raise InvalidArgumentError(
                f"rgb_to_grayscale needs 3 channels, but got shape {image.shape}.",
                fix="pass an RGB image.",
            )
        return converted(mixed(converted(image, dtypes.float32), _GREY[:, None]), image.dtype)

    def differentiable(self, *parts: Any) -> Any:
        image = parts[0]
        return converted(converted(image, dtypes.float32) @ _GREY[:, None], image.dtype)


@final
@dataclass(frozen=True)
class FromGrey(RowKernel):
    """Repeats the single channel three times."""

    moves_values = True

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(_with_channels(given[0], 3), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        if image.ndim == 0 or image.shape[-1] != 1:
            raise InvalidArgumentError(
                f"Last dimension of a grayscale image should be size 1, but got shape {image.shape}.",
                fix="add a missing channel axis with image[..., None].",
            )
        found = hot_loops.tripled(image)
        return np.repeat(image, 3, axis=-1) if found is None else found


def converted(image: Array, dtype: DType, *, saturate: bool = False) -> Array:
    """Convert an image to another dtype, scaled by the maxima of both dtypes."""
    if image.dtype == dtype:
        return image
    if _is_float(image.dtype):
        return image.astype(dtype) if _is_float(dtype) else _to_integers(image, dtype, saturate)
    if _is_float(dtype):
        return _to_floats(image, dtype)
    return _rescaled(image, dtype, saturate)


def mixed(image: Array, matrix: Array) -> Array:
    """Return pixels times a matrix, added up from left to right."""
    found = hot_loops.mixed(image, matrix)
    if found is not None:
        return found
    red, green, blue = (image[..., place, None] for place in range(3))
    return red * matrix[0] + green * matrix[1] + blue * matrix[2]


def _channel_means(image: Array) -> Array:
    height, width, channels = image.shape
    if image.dtype == dtypes.uint8:
        return (hot_loops.added_up(image) / (255 * height * width)).astype(np.float32)
    sums = hot_loops.row_sums(image).reshape(width, channels).sum(axis=0)
    return (sums / np.float32(height * width)).astype(image.dtype)


def _of_each_image(change: Callable[[Array], Array], images: Array) -> Array:
    return change(images) if images.ndim == 3 else np.stack([change(image) for image in images])


def _least_spread(image: Array) -> np.float32:
    return 1 / np.sqrt(np.prod(image.shape[-3:], dtype=np.float32))


def _standardized_bytes(image: Array) -> Array:
    """Standardize an image by the exact mean and variance of its bytes."""
    count, (some, squares) = image.size, hot_loops.sum_and_squares(image)
    mean = np.float32(some / count)
    variance = np.float32((count * squares - some * some) / (count * count))
    spread = np.maximum(np.sqrt(variance), _least_spread(image))
    found = hot_loops.of_bytes("standardize", image, np.float32, mean, spread)
    return (image.astype(np.float32) - mean) / spread if found is None else found


def _to_floats(image: Array, dtype: DType) -> Array:
    """Scale integers to floats from 0 to 1."""
    if dtype == dtypes.float32:
        found = hot_loops.of_bytes("to_floats", image, np.float32)
        if found is not None:
            return found
    return image.astype(dtype) * np.asarray(1 / np.iinfo(image.dtype).max, dtype)


def _to_integers(image: Array, dtype: DType, saturate: bool) -> Array:
    if dtype == dtypes.uint8:
        found = hot_loops.in_bytes(image, saturate=saturate)
        if found is not None:
            return found
    limits = np.iinfo(dtype)
    scaled = image * np.asarray(limits.max + 0.5, image.dtype)
    if saturate:
        scaled = np.clip(scaled, limits.min, limits.max)
    wide = np.int64 if dtype != dtypes.uint64 else np.uint64
    with np.errstate(
        invalid="ignore"
    ):  # Values that do not fit into 64 bits have no correct result.
        return scaled.astype(wide).astype(dtype)


def _rescaled(image: Array, dtype: DType, saturate: bool) -> Array:
    old, new = int(np.iinfo(image.dtype).max), int(np.iinfo(dtype).max)
    if old > new:
        scaled = image // np.asarray((old + 1) // (new + 1), image.dtype)
        least = np.iinfo(dtype).min
        return (np.clip(scaled, least, new) if saturate else scaled).astype(dtype)
    if saturate and image.dtype.kind == "i" and dtype.kind == "u":
        image = np.maximum(image, 0)
    return image.astype(dtype) * np.asarray((new + 1) // (old + 1), dtype)


def in_floats(image: Array) -> Array:
    """Convert an image to floats from 0 to 1, as TensorFlow does to adjust it."""
    return image if image.dtype in _KEPT else converted(image, dtypes.float32)


def _worked_in(dtype: DType) -> DType:
    return dtype if dtype in _KEPT else dtypes.float32


def _is_float(dtype: DType) -> bool:
    return dtype.kind == "f" or dtype == dtypes.bfloat16


def _with_channels(spec: TensorSpec, channels: int) -> Any:
    if spec.shape.rank is None:
        return spec.shape
    return with_size(spec.shape, *list(spec.shape)[-3:-1])[:-1].concatenate([channels])
