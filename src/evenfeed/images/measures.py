"""Measures images: their total variation, and the peak signal-to-noise ratio of two."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import RowKernel, applied
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.images.colours import converted
from evenfeed.images.geometry import check_image


def total_variation(images: Any, name: str | None = None) -> Any:
    """Sum the absolute differences of neighbouring pixels of an image, or of each image of a batch.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> float(tf.image.total_variation(np.array([[[1.0], [4.0]]])))
        3.0
    """
    del name
    return applied(TotalVariation(), images)


def psnr(a: Any, b: Any, max_val: float, name: str | None = None) -> Any:
    """Return the peak signal-to-noise ratio of two images, or of each pair of two batches, in decibels.

    Args:
        a: The first images (…, height, width, channels).
        b: The other images, of the same shape.
        max_val: The largest value that a pixel can have, such as 255 or 1.0.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> float(tf.image.psnr(np.zeros([2, 2, 1], np.float32), np.ones([2, 2, 1], np.float32), 1.0))
        0.0
    """
    del name
    return applied(Psnr(max_val), a, b)


@final
@dataclass(frozen=True)
class TotalVariation(RowKernel):
    """Sums differences of neighbours."""

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(_without_pixels(given[0]), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        check_image(image, "images")
        down, right = np.diff(image, axis=-3), np.diff(image, axis=-2)
        sums = [abs(step).sum((-3, -2, -1), dtype=image.dtype) for step in (down, right)]
        return np.asarray(sums[0] + sums[1])


@final
@dataclass(frozen=True)
class Psnr(RowKernel):
    """Compares two images."""

    most: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(_without_pixels(given[0]), dtypes.float32)

    def one(self, *parts: Array) -> Array:
        one, other = (converted(part, dtypes.float32) for part in parts)
        if one.ndim < 3 or one.shape != other.shape:
            raise InvalidArgumentError(
                f"psnr needs two images of the same shape, but got {one.shape} and {other.shape}.",
                fix="pass height, width and channels of both.",
            )
        most = converted(np.asarray(self.most).astype(parts[0].dtype), dtypes.float32)
        error = np.square(one - other).mean((-3, -2, -1))
        with np.errstate(divide="ignore"):
            ratio = 20 * np.log(most) / np.log(np.float32(10)) - np.float32(
                10 / np.log(10)
            ) * np.log(error)
        return np.asarray(ratio, np.float32)


def _without_pixels(spec: TensorSpec) -> TensorShape:
    return spec.shape if spec.shape.rank is None else TensorShape(list(spec.shape)[:-3])
