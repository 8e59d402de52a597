"""Draws boxes on images: `draw_bounding_boxes`."""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import as_floats
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.bound_kernels import applied_beside_constants

# TensorFlow's colours with their alpha, in the order of the boxes.
_COLOURS: Final = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Any:
    """Draw boxes on copies of images, with lines that are one pixel wide.

    Args:
        images: A batch of float images, as [batch, height, width, channels].
        boxes: The boxes of each image, as [batch, boxes, 4]: top, left, bottom and right, where 1.0 is the last
            row or column.
        colors: One colour for each box, as [colours, channels]; they repeat if there are more boxes. None for
            TensorFlow's colours.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> image = np.zeros([1, 3, 3, 1], np.float32)
        >>> tf.image.draw_bounding_boxes(image, [[[0.0, 0.0, 1.0, 1.0]]], [[1.0]])[0, ..., 0].tolist()
        [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    """
    del name
    given = (as_floats(images), boxes) if colors is None else (as_floats(images), boxes, colors)
    return applied_beside_constants(DrawBoxes(), *given)


@final
@dataclass(frozen=True)
class DrawBoxes(RowKernel):
    """Draws the boxes of each image of a batch."""

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        images, boxes = parts[0], parts[1].astype(np.float32)
        if images.dtype not in (dtypes.float32, dtypes.float16):
            raise InvalidArgumentError(
                f"draw_bounding_boxes needs float32 images, but got {images.dtype.name}.",
                fix="convert them first: evenfeed.image.convert_image_dtype(images, evenfeed.float32).",
            )
        if images.ndim != 4 or boxes.ndim != 3 or boxes.shape[::2] != (len(images), 4):
            raise InvalidArgumentError(
                "draw_bounding_boxes needs images [batch, height, width, channels] and boxes [batch, boxes, 4], "
                f"but got {images.shape} and {boxes.shape}.",
                fix="add a missing batch axis with image[None] and boxes[None].",
            )
        colours = _colours(images.shape[-1], parts[2] if len(parts) > 2 else None)
        drawn = images.copy()
        for image, each in zip(drawn, boxes, strict=True):
            for number, box in enumerate(each):
                _draw(image, box, colours[number % len(colours)])
        return drawn


def _colours(channels: int, given: Array | None) -> Array:
    if given is not None and given.ndim != 2:
        raise InvalidArgumentError(
            f"colors must have the shape [colours, channels], but got {given.shape}.",
            fix="pass a list with one list of numbers for each colour.",
        )
    if given is not None and len(given):
        if given.shape[1] < channels:
            raise InvalidArgumentError(
                f"colors must have {channels} channels, as the images have, but got {given.shape[1]}.",
                fix="pass a number for each channel.",
            )
        return given[:, :channels].astype(np.float32)
    if channels == 1:
        return np.ones((1, 1), np.float32)
    if channels > 4:
        raise InvalidArgumentError(
            f"There are no colours for images with {channels} channels.", fix="pass colors."
        )
    return _COLOURS[:, :channels]


def _draw(image: Array, box: Array, colour: Array) -> None:
    height, width, _ = image.shape
    scale = np.array([height - 1, width - 1] * 2, np.float32)
    top, left, bottom, right = (box * scale).astype(np.int64).tolist()
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = colour
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = colour
