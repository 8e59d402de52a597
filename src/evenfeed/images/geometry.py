"""Cuts images and pads them with zeros."""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import RowKernel
from evenfeed.core.specs import TensorSpec
from evenfeed.images.image_kernels import applied, check_image, size_of, with_size


def crop_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """Cut a box out of an image, or out of each of a batch.

    Args:
        image: Height, width, channels; a batch has one more in front.
        offset_height: How many rows to leave out at the top.
        offset_width: How many columns to leave out at the left.
        target_height: How many rows to keep.
        target_width: How many columns to keep.

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
    """Put an image, or each of a batch, into a larger one of zeros.

    Args:
        image: Height, width, channels; a batch has one more in front.
        offset_height: How many rows of zeros come above it.
        offset_width: How many columns of zeros come left of it.
        target_height: How many rows there are in the end.
        target_width: How many columns.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.pad_to_bounding_box(np.ones([1, 1, 1], int), 0, 1, 2, 3)[..., 0].tolist()
        [[0, 1, 0], [0, 0, 0]]
    """
    return applied(Pad(*_box(offset_height, offset_width, target_height, target_width)), image)


def central_crop(image: Any, central_fraction: float) -> Any:
    """Cut the middle out of an image, or out of each of a batch.

    Args:
        image: Height, width, channels; a batch has one more in front.
        central_fraction: How much of the height and of the width to keep, above 0 and up to 1.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.central_crop(np.zeros([8, 8, 3]), 0.5).shape
        (4, 4, 3)
    """
    if not 0 < central_fraction <= 1:
        raise InvalidArgumentError(
            f"central_fraction must be within (0, 1], but got {central_fraction}.",
            fix="pass the part of the height and of the width to keep, such as 0.875.",
        )
    return applied(CentralCrop(float(central_fraction)), image)


def resize_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Any:
    """Cut from the middle, or pad with zeros around it, until an image has a size.

    Args:
        image: Height, width, channels; a batch has one more in front.
        target_height: How many rows there are in the end.
        target_width: How many columns.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.resize_with_crop_or_pad(np.ones([2, 4, 1], int), 4, 2)[..., 0].tolist()
        [[0, 0], [1, 1], [1, 1], [0, 0]]
    """
    _, _, height, width = _box(0, 0, target_height, target_width)
    return applied(CropOrPad(height, width), image)


@final
@dataclass(frozen=True)
class Crop(RowKernel):
    """Cuts a box out."""

    top: int
    left: int
    height: int
    width: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return the size of the box."""
        return TensorSpec(with_size(given[0].shape, self.height, self.width), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        """Return the box, a view."""
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
                    fix="cut within the image.",
                )
        rows, columns = (
            slice(self.top, self.top + self.height),
            slice(self.left, self.left + self.width),
        )
        return image[..., rows, columns, :]


@final
@dataclass(frozen=True)
class Pad(RowKernel):
    """Puts zeros around."""

    top: int
    left: int
    height: int
    width: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return the size of the whole."""
        return TensorSpec(with_size(given[0].shape, self.height, self.width), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        """Return a new image of zeros with the image in it."""
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
    """Keeps the middle."""

    fraction: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return what is left of the size, where that is known."""
        shape = given[0].shape
        if shape.rank is None:
            return given[0]
        height, width = (None if n is None else n - 2 * self._start(n) for n in list(shape)[-3:-1])
        return TensorSpec(with_size(shape, height, width), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        """Return the middle, a view."""
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
    """Cuts or pads around the middle."""

    height: int
    width: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return the size."""
        return TensorSpec(with_size(given[0].shape, self.height, self.width), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        """Return a view where only was cut."""
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
    """Mirror an image, or each of a batch: left becomes right.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.flip_left_right(np.array([[[1], [2], [3]]]))[..., 0].tolist()
        [[3, 2, 1]]
    """
    return applied(Flip(COLUMNS), image)


def flip_up_down(image: Any) -> Any:
    """Turn an image, or each of a batch, upside down: the first row becomes the last.

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

    axis: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return the same."""
        return given[0]

    def one(self, *parts: Array) -> Array:
        """Return the mirrored image."""
        check_image(parts[0])
        return flipped(parts[0], self.axis)


def flipped(image: Array, axis: int) -> Array:
    """Return the image with an axis that goes backwards: a view, or a copy."""
    if axis == ROWS:
        return image[..., ::-1, :, :]
    out = np.empty(image.shape, image.dtype)
    for channel in range(image.shape[-1]):  # to copy pixel by pixel takes NumPy three times as long
        out[..., channel] = image[..., ::-1, channel]
    return out
