"""Crops, pads and flips images, and checks the shapes of images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import as_integers
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images import hot_loops


def check_image(image: Array, name: str = "image") -> None:
    """Raise unless an array is an image (height, width, channels) or a batch of images."""
    if image.ndim not in (3, 4):
        raise InvalidArgumentError(
            f"'{name}' must have either 3 or 4 dimensions, but got shape {image.shape}.",
            fix="pass height, width and channels; add a missing channel axis with image[..., None].",
        )


def lengths_of(value: Any, name: str, count: int | None = None) -> tuple[int, ...]:
    """Check that an argument is a vector of integers, and return it as a tuple."""
    array = to_array(as_integers(value))
    if array.ndim != 1 or (count is not None and len(array) != count):
        raise InvalidArgumentError(
            f"'{name}' must be a vector of {f'{count} ' if count else ''}integers, but got {shortened(value)}.",
            fix="pass the height first, then the width.",
        )
    if array.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"'{name}' must be integers, but got {shortened(value)}.", fix="round the numbers."
        )
    return tuple(int(length) for length in array)


def with_size(shape: TensorShape, height: int | None, width: int | None) -> TensorShape:
    """Return the shape of an image or a batch of images, with another height and width."""
    if shape.rank is None:
        return shape
    known = list(shape)
    return TensorShape([*known[:-3], height, width, known[-1]])


def size_of(image: Array) -> tuple[int, int]:
    """Return the height and width of an image."""
    return image.shape[-3], image.shape[-2]


def crop_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """Crop an image, or each image of a batch, to a box.

    Args:
        image: An image (height, width, channels), or a batch of images.
        offset_height: The first row of the box.
        offset_width: The first column of the box.
        target_height: The height of the box.
        target_width: The width of the box.

    Raises:
        InvalidArgumentError: The box does not fit into the image.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> image = np.arange(12).reshape(3, 4, 1)
        >>> tf.image.crop_to_bounding_box(image, 1, 2, 2, 2)[..., 0].tolist()
        [[6, 7], [10, 11]]
    """
    return applied(Crop(*_box(offset_height, offset_width, target_height, target_width)), image)


def pad_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """Pad an image, or each image of a batch, with zeros to a given size.

    Args:
        image: An image (height, width, channels), or a batch of images.
        offset_height: The number of rows of zeros above the image.
        offset_width: The number of columns of zeros to the left of the image.
        target_height: The height of the result.
        target_width: The width of the result.

    Raises:
        InvalidArgumentError: The image does not fit into the result.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.pad_to_bounding_box(np.ones([1, 1, 1], int), 0, 1, 2, 3)[..., 0].tolist()
        [[0, 1, 0], [0, 0, 0]]
    """
    return applied(Pad(*_box(offset_height, offset_width, target_height, target_width)), image)


def central_crop(image: Any, central_fraction: float) -> Any:
    """Crop an image, or each image of a batch, to its central region.

    Args:
        image: An image (height, width, channels), or a batch of images.
        central_fraction: The fraction of the height and of the width to keep, in (0, 1].

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.central_crop(np.zeros([8, 8, 3]), 0.5).shape
        (4, 4, 3)
    """
    if not 0 < central_fraction <= 1:
        raise InvalidArgumentError(
            f"central_fraction must be within (0, 1], but got {central_fraction}.",
            fix="pass the fraction of the height and of the width to keep, such as 0.875.",
        )
    return applied(CentralCrop(float(central_fraction)), image)


def resize_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Any:
    """Crop an image centrally, or pad it evenly with zeros, to a given size.

    Args:
        image: An image (height, width, channels), or a batch of images.
        target_height: The height of the result.
        target_width: The width of the result.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.resize_with_crop_or_pad(np.ones([2, 4, 1], int), 4, 2)[..., 0].tolist()
        [[0, 0], [1, 1], [1, 1], [0, 0]]
    """
    _, _, height, width = _box(0, 0, target_height, target_width)
    return applied(CropOrPad(height, width), image)


@dataclass(frozen=True)
class _Box(RowKernel):
    """A kernel with a place for the image, and the size of the result."""

    top: int
    left: int
    height: int
    width: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(with_size(given[0].shape, self.height, self.width), given[0].dtype)


@final
class Crop(_Box):
    """Crops to a box; the result is a view."""

    moves_values = True
    takes_batches = True

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        check_image(image)
        for name, whole, offset, target in zip(
            ("height", "width"),
            size_of(image),
            (self.top, self.left),
            (self.height, self.width),
            strict=True,
        ):
            if whole < offset + target:
                raise InvalidArgumentError(
                    f"{name} must be >= target + offset, but got {whole} and {target} + {offset}.",
                    fix="pass a box inside the image.",
                )
        rows, columns = (
            slice(self.top, self.top + self.height),
            slice(self.left, self.left + self.width),
        )
        return image[..., rows, columns, :]


@final
class Pad(_Box):
    """Pads with zeros."""

    moves_values = True
    takes_batches = True

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        check_image(image)
        height, width = size_of(image)
        if height + self.top > self.height or width + self.left > self.width:
            raise InvalidArgumentError(
                f"height and width must be <= target - offset, but {height} x {width} at "
                f"({self.top}, {self.left}) do not fit into {self.height} x {self.width}.",
                fix="pad to a larger size.",
            )
        out = np.zeros((*image.shape[:-3], self.height, self.width, image.shape[-1]), image.dtype)
        out[..., self.top : self.top + height, self.left : self.left + width, :] = image
        return out


@final
@dataclass(frozen=True)
class CentralCrop(RowKernel):
    """Crops to the central region; the result is a view."""

    moves_values = True
    takes_batches = True

    fraction: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        shape = given[0].shape
        if shape.rank is None:
            return given[0]
        height, width = (None if n is None else n - 2 * self._start(n) for n in list(shape)[-3:-1])
        return TensorSpec(with_size(shape, height, width), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        check_image(image)
        (height, width) = size_of(image)
        top, left = self._start(height), self._start(width)
        return image[..., top : height - top, left : width - left, :]

    def _start(self, length: int) -> int:
        return int((length - length * self.fraction) / 2)


@final
@dataclass(frozen=True)
class CropOrPad(RowKernel):
    """Crops or pads around the centre; the result is a view if it only crops."""

    moves_values = True
    takes_batches = True

    height: int
    width: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(with_size(given[0].shape, self.height, self.width), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        check_image(image)
        height, width = size_of(image)
        kept = min(height, self.height), min(width, self.width)
        image = Crop((height - kept[0]) // 2, (width - kept[1]) // 2, *kept).one(image)
        if kept == (self.height, self.width):
            return image
        above, before = (self.height - kept[0]) // 2, (self.width - kept[1]) // 2
        return Pad(above, before, self.height, self.width).one(image)


def _box(*numbers: int) -> tuple[int, int, int, int]:
    names = ("offset_height", "offset_width", "target_height", "target_width")
    top, left, height, width = (
        whole_number(n, name) for n, name in zip(numbers, names, strict=True)
    )
    for number, name, least in zip((top, left, height, width), names, (0, 0, 1, 1), strict=True):
        if number < least:
            sign = ">= 0" if least == 0 else "> 0"
            raise InvalidArgumentError(
                f"{name} must be {sign}, but got {number}.", fix=f"pass {name}={least} or more."
            )
    return top, left, height, width


ROWS: Final = -3
COLUMNS: Final = -2


def flip_left_right(image: Any) -> Any:
    """Flip an image, or each image of a batch, horizontally.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.flip_left_right(np.array([[[1], [2], [3]]]))[..., 0].tolist()
        [[3, 2, 1]]
    """
    return applied(Flip(COLUMNS), image)


def flip_up_down(image: Any) -> Any:
    """Flip an image, or each image of a batch, vertically.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.flip_up_down(np.array([[[1]], [[2]]]))[..., 0].tolist()
        [[2], [1]]
    """
    return applied(Flip(ROWS), image)


@final
@dataclass(frozen=True)
class Flip(RowKernel):
    """Reverses one axis."""

    moves_values = True
    takes_batches = True

    axis: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        check_image(parts[0])
        return flipped(parts[0], self.axis)


def flipped(image: Array, axis: int) -> Array:
    """Reverse one axis of an image. The result is a view for rows, a copy for columns."""
    if axis == ROWS:
        return image[..., ::-1, :, :]
    found = hot_loops.mirrored(image)
    if found is not None:
        return found
    out = np.empty(image.shape, image.dtype)
    for channel in range(
        image.shape[-1]
    ):  # NumPy takes three times as long to copy pixel by pixel.
        out[..., channel] = image[..., ::-1, channel]
    return out


def boxes_of_each(images: Array, starts: Array, size: Sequence[int]) -> Array:
    """Return a box of each image of a batch, as one array.

    Args:
        images: The batch.
        starts: The first row, column and channel of each box, which lies within its image.
        size: The lengths of the boxes.
    """
    images = np.ascontiguousarray(images).view(np.ndarray)
    places = [whole - part + 1 for whole, part in zip(images.shape[1:], size, strict=True)]
    steps = images.strides
    # All boxes that there are, each a view; the last three axes are those of a box.
    boxes = as_strided(images, (len(images), *places, *size), (*steps, *steps[1:]), writeable=False)
    return boxes[np.arange(len(images)), starts[:, 0], starts[:, 1], starts[:, 2]]
