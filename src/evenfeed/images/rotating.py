"""Rotates and transposes images, and resizes them into a frame."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core.arguments import whole_number
from evenfeed.core.block import Column
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel, is_small, stands_for_part
from evenfeed.images import hot_loops
from evenfeed.images.bound_kernels import applied_beside_constants
from evenfeed.images.geometry import Pad, check_image, size_of, with_size
from evenfeed.images.resizing import BILINEAR, Resize, check_method


def rot90(image: Any, k: int = 1, name: str | None = None) -> Any:
    """Rotate an image, or each image of a batch, counter-clockwise by `k` times 90 degrees.

    In a dataset function, `k` may differ between elements.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.rot90(np.array([[1, 2], [3, 4]])[..., None])[..., 0].tolist()
        [[2, 4], [1, 3]]
    """
    del name
    if stands_for_part(k):
        return applied_beside_constants(RotateBy(), image, k)
    return applied(Rotate(whole_number(k, "k") % 4), image)


def transpose(image: Any, name: str | None = None) -> Any:
    """Swap the height and the width of an image, or of each image of a batch.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.transpose(np.array([[1, 2], [3, 4]])[..., None])[..., 0].tolist()
        [[1, 3], [2, 4]]
    """
    del name
    return applied(Transpose(), image)


def resize_with_pad(
    image: Any,
    target_height: int,
    target_width: int,
    method: str = BILINEAR,
    antialias: bool = False,
) -> Any:
    """Resize an image to fit into a frame, keeping its proportions, and pad it evenly with zeros.

    Args:
        image: An image (height, width, channels), or a batch of images.
        target_height: The height of the frame.
        target_width: The width of the frame.
        method: How values are interpolated: see `resize`.
        antialias: Smooth images that become smaller.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.resize_with_pad(np.ones([2, 4, 1]), 4, 4)[:, 0, 0].tolist()
        [0.0, 1.0, 1.0, 0.0]
    """
    height, width = (
        whole_number(target_height, "target_height"),
        whole_number(target_width, "target_width"),
    )
    if height < 1 or width < 1:
        raise InvalidArgumentError(
            f"target_height and target_width must be > 0, but got {height} and {width}.",
            fix="pass the size of the frame in pixels.",
        )
    check_method(method)
    return applied(Fit(height, width, method, bool(antialias)), image)


@final
@dataclass(frozen=True)
class Rotate(RowKernel):
    """Rotates by quarter turns."""

    moves_values = True
    takes_batches = True

    turns: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return _swapped(given[0]) if self.turns % 2 else given[0]

    def one(self, *parts: Array) -> Array:
        check_image(parts[0])
        if self.turns % 2:
            first = self.turns == 1
            found = hot_loops.transposed(parts[0], downward=first, rightward=not first)
            if found is not None:
                return found
        return np.rot90(parts[0], self.turns, axes=(-3, -2))


@final
@dataclass(frozen=True)
class RotateBy(RowKernel):
    """Rotates by quarter turns, whose number is an argument."""

    moves_values = True
    takes_batches = True

    def spec(self, *given: TensorSpec) -> TensorSpec:
        image, turns = given
        if turns.shape.rank != 0 or turns.dtype.kind not in "iu":
            raise TypeError("The number of turns is a whole number.")
        shape = image.shape
        if shape.rank is None or shape[-3] == shape[-2]:
            return image
        return TensorSpec(with_size(shape, None, None), image.dtype)

    def one(self, *parts: Array) -> Array:
        image, turns = parts
        return Rotate(int(turns) % 4).one(image)

    def all_at_once(self, images: Array, *columns: Column) -> Column:
        turns: Array = np.asarray(columns[0]) % 4
        height, width = size_of(images)
        if height != width or not is_small(images[:1]):
            return [Rotate(k).one(image) for image, k in zip(images, turns.tolist(), strict=True)]
        out = np.empty(images.shape, images.dtype)
        for k in range(4):
            chosen = np.flatnonzero(turns == k)
            out[chosen] = Rotate(k).one(images[chosen])
        return out


@final
@dataclass(frozen=True)
class Transpose(RowKernel):
    """Swaps height and width."""

    moves_values = True
    takes_batches = True

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return _swapped(given[0])

    def one(self, *parts: Array) -> Array:
        check_image(parts[0])
        found = hot_loops.transposed(parts[0], downward=True, rightward=True)
        return np.swapaxes(parts[0], -3, -2) if found is None else found


@final
@dataclass(frozen=True)
class Fit(RowKernel):
    """Resizes to fit into a frame, and pads."""

    takes_batches = True

    height: int
    width: int
    method: str
    antialias: bool

    def spec(self, *given: TensorSpec) -> TensorSpec:
        resized = self._resize(1, 1).spec(*given)
        return TensorSpec(with_size(resized.shape, self.height, self.width), resized.dtype)

    def one(self, *parts: Array) -> Array:
        resize, pad = self._steps(parts[0])
        return pad.one(resize.one(parts[0]))

    def differentiable(self, *parts: Any) -> Any:
        resize, pad = self._steps(parts[0])
        return applied(pad, applied(resize, parts[0]))

    def _steps(self, image: Array) -> tuple[Resize, Pad]:
        check_image(image)
        # In single precision, as in TensorFlow, whose rounding decides between two sizes.
        old = np.array(size_of(image), np.float32)
        frame = np.array([self.height, self.width], np.float32)
        new = old / (old / frame).max()
        top, left = np.maximum(np.floor((frame - new) / 2), 0).astype(int).tolist()
        resize = self._resize(*np.floor(new).astype(int).tolist())
        return resize, Pad(top, left, self.height, self.width)

    def _resize(self, height: int, width: int) -> Resize:
        return Resize(height, width, self.method, keeps_form=False, antialias=self.antialias)


def _swapped(spec: TensorSpec) -> TensorSpec:
    if spec.shape.rank is None:
        return spec
    height, width = list(spec.shape)[-3:-1]
    return TensorSpec(with_size(spec.shape, width, height), spec.dtype)
