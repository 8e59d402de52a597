"""Runs an image function immediately on arrays, or as a kernel of a traced function."""

from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import Handle, RowKernel, results_of
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.shapes import TensorShape


def applied(kernel: RowKernel, *values: Any) -> Any:
    """Run a kernel on values. Inside a trace, return a handle for its result."""
    found = results_of(kernel, *values)
    if found is not None:
        return found[0]
    if any(isinstance(value, Handle) for value in values):
        raise TypeError("A component of the element is combined with a value that is not one.")
    return computed_tensor(kernel.one(*map(to_array, values)))


def text_of(contents: Array, name: str = "contents") -> bytes:
    """Check that an argument is a scalar string, and return its bytes."""
    if contents.dtype != dtypes.string:
        raise TypeError(
            described(f"{name} must be bytes, but got {contents.dtype.name}.", fix=_READ_IT)
        )
    if contents.ndim:
        raise InvalidArgumentError(
            f"`{name}` must be scalar, but got shape {list(contents.shape)}.",
            fix="decode one image at a time, before calling batch.",
        )
    return cast("bytes", contents.item())


_READ_IT = "pass the result of evenfeed.io.read_file, or bytes."


def check_image(image: Array, name: str = "image") -> None:
    """Raise unless an array is an image (height, width, channels) or a batch of images."""
    if image.ndim not in (3, 4):
        raise InvalidArgumentError(
            f"'{name}' must have either 3 or 4 dimensions, but got shape {image.shape}.",
            fix="pass height, width and channels; add a missing channel axis with image[..., None].",
        )


def lengths_of(value: Any, name: str, count: int | None = None) -> tuple[int, ...]:
    """Check that an argument is a vector of integers, and return it as a tuple."""
    array = to_array(value)
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


def contiguous(image: Array) -> Array:
    """Return a copy if an image is a non-contiguous view, which would keep a larger image alive."""
    return np.ascontiguousarray(image)
