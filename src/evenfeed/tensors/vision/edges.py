"""Edges and differences of neighbouring pixels: `sobel_edges`, `image_gradients`, `total_variation`."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.lazy_jax import jnp
from evenfeed.images.differences import Steps, Variation, check_batch, check_images
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.operands import REAL_FLOATS, REALS, apply
from evenfeed.tensors.vision.compiling import by_kernel, compiled, one_by_one


def sobel_edges(image: object) -> Tensor:
    """Return how steeply the pixels of images rise, downward and to the right, along a new last axis.

    Args:
        image: A batch of float images, as [batch, rows, columns, channels]. It is mirrored at its borders.

    Examples:
        >>> import evenfeed as tf
        >>> image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
        >>> tf.image.sobel_edges(image)[0, 1, 1, 0].tolist()
        [24.0, 8.0]
    """
    return apply("sobel_edges", compiled(_sobel), image, accepts=REAL_FLOATS)


def image_gradients(image: object) -> tuple[Tensor, Tensor]:
    """Return the differences of each pixel to the next row and to the next column; 0 for the last ones.

    Args:
        image: A batch of images, as [batch, rows, columns, channels].

    Examples:
        >>> import evenfeed as tf
        >>> down, right = tf.image.image_gradients(tf.reshape(tf.range(4), [1, 2, 2, 1]))
        >>> down.ravel().tolist(), right.ravel().tolist()
        ([2, 2, 0, 0], [1, 0, 1, 0])
    """
    down = by_kernel(Steps(1), image)
    if down is not None:
        return down, by_kernel(Steps(2), image)
    return apply("image_gradients", compiled(_differences), image)


def total_variation(images: object, name: str | None = None) -> Tensor:
    """Sum the absolute differences of neighbouring pixels of an image, or of each image of a batch.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> float(tf.image.total_variation(np.array([[[1.0], [4.0]]])))
        3.0
    """
    found = by_kernel(Variation(), images)
    return (
        apply("total_variation", compiled(_variation), images, accepts=REALS)
        if found is None
        else found
    )


def _sobel(image: Any) -> Any:
    check_batch("sobel_edges", tuple(image.shape))
    count, height, width, channels = image.shape
    around = jnp.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="reflect")
    # Rows of numbers are computed faster than rows of pixels.
    numbers, one = around.reshape(count, height + 2, (width + 2) * channels), channels
    rows = numbers[:, 2:] - numbers[:, :-2]
    columns = numbers[..., 2 * one :] - numbers[..., : -2 * one]
    down = rows[..., : -2 * one] + 2 * rows[..., one:-one] + rows[..., 2 * one :]
    right = columns[:, :-2] + 2 * columns[:, 1:-1] + columns[:, 2:]
    return jnp.stack([down, right], axis=-1).reshape(*image.shape, 2)


def _differences(image: Any) -> Any:
    check_batch("image_gradients", tuple(image.shape))
    down, right = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
    one = [(0, 0)] * 4
    return (
        jnp.pad(down, [one[0], (0, 1), *one[2:]]),
        jnp.pad(right, [*one[:2], (0, 1), one[3]]),
    )


def _variation(images: Any) -> Any:
    check_images(tuple(images.shape))
    return one_by_one(_variation_of_one, images)


def _variation_of_one(image: Any) -> Any:
    height, width, channels = image.shape
    rows = image.reshape(height, width * channels)
    return _added_up(rows[1:] - rows[:-1]) + _added_up(rows[:, channels:] - rows[:, :-channels])


def _added_up(steps: Any) -> Any:
    """Return the sum of absolute values. XLA sums slowly what it must compute first, unless it is a matrix product."""
    if steps.dtype != dtypes.float32:
        return abs(steps).sum(dtype=steps.dtype)
    each = np.ones(steps.shape[1], np.float32)
    return jnp.matmul(abs(steps), each, precision="highest").sum()
