"""Mirrors images."""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.handles import RowKernel
from evenfeed.core.specs import TensorSpec
from evenfeed.images.kernels import applied, check_image

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
