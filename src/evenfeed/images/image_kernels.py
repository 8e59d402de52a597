"""How a function works on an image: at once, or as a kernel in a function that is traced."""

from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import Handle, RowKernel, results_of
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.shapes import TensorShape


def applied(kernel: RowKernel, *values: Any) -> Any:
    """Return what a kernel makes of values, or what stands for it where they stand for parts."""
    found = results_of(kernel, *values)
    if found is not None:
        return found[0]
    if any(isinstance(value, Handle) for value in values):
        raise TypeError("A part of the element meets a value that is none.")
    return computed_tensor(kernel.one(*map(to_array, values)))


def text_of(contents: Array, name: str = "contents") -> bytes:
    """Return the bytes that a user passed."""
    if contents.dtype != dtypes.string:
        raise TypeError(
            described(f"{name} must be bytes, but got {contents.dtype.name}.", fix=_READ_IT)
        )
    if contents.ndim:
        raise InvalidArgumentError(
            f"`{name}` must be scalar, but got shape {list(contents.shape)}.",
            fix="decode one image at a time, before batch.",
        )
    return cast("bytes", contents.item())


_READ_IT = "pass what evenfeed.io.read_file returns, or bytes of your own."


def check_image(image: Array, name: str = "image") -> None:
    """Refuse what is neither an image (height, width, channels) nor a batch of them."""
    if image.ndim not in (3, 4):
        raise InvalidArgumentError(
            f"'{name}' must have either 3 or 4 dimensions, but got shape {image.shape}.",
            fix="an image has height, width and channels: write image[..., None] where these are missing.",
        )


def lengths_of(value: Any, name: str, count: int | None = None) -> tuple[int, ...]:
    """Return lengths that a user passed as a vector of whole numbers."""
    array = to_array(value)
    if array.ndim != 1 or (count is not None and len(array) != count):
        raise InvalidArgumentError(
            f"'{name}' must be a vector of {count or 'all'} lengths, but got {shortened(value)}.",
            fix="pass the height first, then the width.",
        )
    if array.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"'{name}' must be whole numbers, but got {shortened(value)}.", fix="round them."
        )
    return tuple(int(length) for length in array)


def with_size(shape: TensorShape, height: int | None, width: int | None) -> TensorShape:
    """Return the shape of an image, or a batch of images, of another height and width."""
    if shape.rank is None:
        return shape
    known = list(shape)
    return TensorShape([*known[:-3], height, width, known[-1]])


def size_of(image: Array) -> tuple[int, int]:
    """Return height and width."""
    return image.shape[-3], image.shape[-2]


def contiguous(image: Array) -> Array:
    """Return an image of its own, not a view that keeps a larger one alive."""
    return np.ascontiguousarray(image)
