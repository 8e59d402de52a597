"""Converts the dtype and the channels of images."""

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
from evenfeed.images.geometry import with_size

KEPT: Final = (dtypes.float16, dtypes.float32)
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

    takes_batches = True

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
class ToGrey(RowKernel):
    """Converts RGB to one channel by a weighted sum."""

    takes_batches = True

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
    takes_batches = True

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
    return image if image.dtype in KEPT else converted(image, dtypes.float32)


def _is_float(dtype: DType) -> bool:
    return dtype.kind == "f" or dtype == dtypes.bfloat16


def _with_channels(spec: TensorSpec, channels: int) -> Any:
    if spec.shape.rank is None:
        return spec.shape
    return with_size(spec.shape, *list(spec.shape)[-3:-1])[:-1].concatenate([channels])
