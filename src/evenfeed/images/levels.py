"""Shifts and scales the values of images: brightness, contrast and standardization."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images import hot_loops
from evenfeed.images.colours import KEPT, converted, in_floats
from evenfeed.images.geometry import check_image


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


@final
@dataclass(frozen=True)
class Standardize(RowKernel):
    """Scales to mean 0 and variance 1.

    As in TensorFlow, the deviation has a lower bound, so a uniform image becomes 0.
    """

    takes_batches = True

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape, _worked_in(given[0].dtype))

    def one(self, *parts: Array) -> Array:
        check_image(parts[0])
        image, size = parts[0], parts[0].shape[-3:]
        if image.dtype != dtypes.uint8 or not image.size:
            image = image.astype(_worked_in(image.dtype), copy=False)
        images = image.reshape(-1, *size) if image.size else image.reshape(0, *size)
        least = 1 / np.sqrt(np.prod(size, dtype=np.float32))
        found = hot_loops.standardized(images, least)
        if found is not None:
            return found.reshape(image.shape)
        out: Array = np.empty(images.shape, _worked_in(image.dtype))
        # One by one: the pixels of an image stay in the cache.
        for old, new in zip(images, out, strict=True):
            _standardize(old, least, new)
        return out.reshape(image.shape)

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

    takes_batches = True

    delta: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        found: Array | None = hot_loops.of_bytes(
            "brighten", parts[0], np.uint8, np.float32(self.delta)
        )
        return self.differentiable(*parts) if found is None else found

    def differentiable(self, *parts: Any) -> Any:
        image = in_floats(parts[0])
        return converted(image + image.dtype.type(self.delta), parts[0].dtype, saturate=True)

    @staticmethod
    def of_each(images: Array, numbers: Array) -> Array:
        """Return a batch of images, each changed by its number, which is float32."""
        if images.dtype == dtypes.float32:
            return images + numbers.reshape(-1, 1, 1, 1)
        out = np.empty(images.shape, images.dtype)
        for image, number, new in zip(images, numbers.tolist(), out, strict=True):
            new[...] = Brightness(number).one(image)
        return out


@final
@dataclass(frozen=True)
class Contrast(RowKernel):
    """Scales distances from the mean of each channel."""

    takes_batches = True

    factor: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        check_image(parts[0], "images")
        given = parts[0]
        if not given.size:
            return given
        images = given.reshape(-1, *given.shape[-3:])
        factors = np.full(len(images), self.factor, np.float32)
        return self.of_each(images, factors).reshape(given.shape)

    def differentiable(self, *parts: Any) -> Any:
        check_image(parts[0], "images")
        image = in_floats(parts[0])
        mean = image.mean((-3, -2), keepdims=True, dtype=np.float32).astype(image.dtype)
        stretched = (image - mean) * image.dtype.type(self.factor) + mean
        return converted(stretched, parts[0].dtype, saturate=True)

    @staticmethod
    def of_each(images: Array, numbers: Array) -> Array:
        """Return a batch of images, each changed by its number, which is float32."""
        given = images if images.dtype == dtypes.uint8 else in_floats(images)
        found = hot_loops.stretched(given, numbers)
        if found is None:
            _, height, width, channels = given.shape
            means = np.array([_channel_means(image) for image in given])
            floats = in_floats(given)
            # Whole rows: NumPy is slow where the last axis is as short as that of the channels.
            rows, middle = floats.reshape(-1, height, width * channels), np.tile(means, width)
            found = rows - middle[:, None]
            found *= numbers[:, None, None].astype(floats.dtype)
            found += middle[:, None]
        return converted(found.reshape(images.shape), images.dtype, saturate=True)


def _channel_means(image: Array) -> Array:
    height, width, channels = image.shape
    if image.dtype == dtypes.uint8:
        sums = image.reshape(height, -1).sum(axis=0, dtype=np.int64).reshape(width, channels)
        return (sums.sum(axis=0) / (255 * height * width)).astype(np.float32)
    sums = hot_loops.column_sums(image.reshape(len(image), -1)).reshape(width, channels)
    return (sums.cumsum(axis=0)[-1] / np.float32(height * width)).astype(image.dtype)


def _standardize(image: Array, least: np.float32, out: Array) -> None:
    """Write an image with mean 0 and variance 1."""
    if image.dtype == dtypes.uint8:
        mean, spread = _of_bytes(image)
        np.divide(image.astype(np.float32) - mean, np.maximum(spread, least), out=out)
        return
    np.subtract(
        image,
        _mean(hot_loops.column_sums(image.reshape(len(image), -1)), image).astype(image.dtype),
        out=out,
    )
    spread = np.sqrt(_mean(hot_loops.column_sums(np.square(out).reshape(len(out), -1)), image))
    np.divide(out, np.maximum(spread, least).astype(image.dtype), out=out)


def _of_bytes(image: Array) -> tuple[np.float32, np.float32]:
    """Return the mean and the deviation of bytes, from their exact sums."""
    count, some = image.size, int(image.sum(dtype=np.int64))
    squares = int(np.square(image, dtype=np.int64).sum())
    variance = float(count * squares - some * some) / float(count * count)
    return np.float32(some / count), np.sqrt(np.float32(variance))


def _mean(sums: Array, image: Array) -> np.float32:
    return np.float32(sums.cumsum(dtype=np.float64)[-1] / image.size)


def _worked_in(dtype: DType) -> DType:
    return dtype if dtype in KEPT else dtypes.float32
