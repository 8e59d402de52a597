"""The differences of pixels as kernels: `psnr`, `total_variation` and `image_gradients` on the host."""

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import float32
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images import hot_loops

_TENS: Final = np.log(np.float32(10))


def check_pair(function: str, one: tuple[int, ...], other: tuple[int, ...]) -> None:
    """Raise unless two shapes are those of images that can be compared."""
    if len(one) < 3 or one != other:
        raise InvalidArgumentError(
            f"{function} needs two images of the same shape, but got {one} and {other}.",
            fix="pass height, width and channels of both.",
        )


def check_images(shape: tuple[int, ...]) -> None:
    """Raise unless a shape is that of an image, or of a batch of images."""
    if len(shape) not in (3, 4):
        raise InvalidArgumentError(
            f"'images' must have either 3 or 4 dimensions, but got shape {shape}.",
            fix="pass height, width and channels; add a missing channel axis with images[..., None].",
        )


def check_batch(function: str, shape: tuple[int, ...]) -> None:
    """Raise unless a shape is that of a batch of images."""
    if len(shape) != 4:
        raise InvalidArgumentError(
            f"{function} needs [batch, rows, columns, channels], but got shape {shape}.",
            fix="add a missing first axis with image[None].",
        )


@final
@dataclass(frozen=True)
class PeakRatio(RowKernel):
    """Returns the peak signal-to-noise ratio of two float32 images, or of each pair of two batches."""

    most: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape[:-3], float32)

    def one(self, *parts: Array) -> Array:
        one, other = parts
        check_pair("psnr", one.shape, other.shape)
        *before, height, width, channels = one.shape
        size = (math.prod(before), height, width * channels)
        pairs = zip(one.reshape(size), other.reshape(size), strict=True)
        sums = [_total(hot_loops.squares_added(*pair)) for pair in pairs]
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.array(sums, np.float64) / (height * width * channels)
            ratio = np.float32(10 / np.log(10)) * np.log(error.astype(np.float32))
            return (20 * np.log(np.float32(self.most)) / _TENS - ratio).reshape(before)


@final
@dataclass(frozen=True)
class Variation(RowKernel):
    """Adds up the absolute differences of neighbouring pixels of a float32 image, or of each image of a batch."""

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape[:-3], float32)

    def one(self, *parts: Array) -> Array:
        images = parts[0]
        check_images(images.shape)
        *before, height, width, channels = images.shape
        each = images.reshape(math.prod(before), height, width * channels)
        sums = [sum(map(_total, hot_loops.steps_added(rows, channels))) for rows in each]
        return np.array(sums, np.float32).reshape(before)


@final
@dataclass(frozen=True)
class Steps(RowKernel):
    """Returns the differences of each pixel to the next one along an axis of a batch; 0 for the last ones."""

    axis: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        images = parts[0]
        check_batch("image_gradients", images.shape)
        count, height, width, channels = images.shape
        # Whole rows: NumPy is slow where the last axis is as short as that of the channels.
        rows = images.reshape(count, height, width * channels)
        out: Array = np.empty(rows.shape, rows.dtype)
        if self.axis == 1:
            np.subtract(rows[:, 1:], rows[:, :-1], out=out[:, :-1])
            out[:, -1:] = 0
        else:
            rest = max(0, width - 1) * channels
            np.subtract(rows[..., channels:], rows[..., :rest], out=out[..., :rest])
            out[..., rest:] = 0
        return out.reshape(images.shape)


def _total(sums: Array) -> float:
    """Return a sum in double precision, added from the first number to the last."""
    return float(sums.cumsum(dtype=np.float64)[-1]) if sums.size else 0.0
