"""Edges and differences of neighbouring pixels: `sobel_edges`, `image_gradients`, `total_variation`."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.operands import REAL_FLOATS, REALS, apply
from evenfeed.tensors.vision.compiling import compiled


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
    return apply("image_gradients", compiled(_differences), image)


def total_variation(images: object, name: str | None = None) -> Tensor:
    """Sum the absolute differences of neighbouring pixels of an image, or of each image of a batch.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> float(tf.image.total_variation(np.array([[[1.0], [4.0]]])))
        3.0
    """
    return apply("total_variation", compiled(_variation), images, accepts=REALS)


def _sobel(image: Any) -> Any:
    _check_batch("sobel_edges", image)
    around = jnp.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="reflect")
    rows = around[:, 2:] - around[:, :-2]
    columns = around[:, :, 2:] - around[:, :, :-2]
    down = rows[:, :, :-2] + 2 * rows[:, :, 1:-1] + rows[:, :, 2:]
    right = columns[:, :-2] + 2 * columns[:, 1:-1] + columns[:, 2:]
    return jnp.stack([down, right], axis=-1)


def _differences(image: Any) -> Any:
    _check_batch("image_gradients", image)
    down, right = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
    one = [(0, 0)] * 4
    return (
        jnp.pad(down, [one[0], (0, 1), *one[2:]]),
        jnp.pad(right, [*one[:2], (0, 1), one[3]]),
    )


def _variation(images: Any) -> Any:
    if images.ndim not in (3, 4):
        raise InvalidArgumentError(
            f"'images' must have either 3 or 4 dimensions, but got shape {tuple(images.shape)}.",
            fix="pass height, width and channels; add a missing channel axis with images[..., None].",
        )
    steps = (jnp.diff(images, axis=axis) for axis in (-3, -2))
    down, right = (abs(step).sum((-3, -2, -1), dtype=images.dtype) for step in steps)
    return down + right


def _check_batch(function: str, image: Any) -> None:
    if image.ndim != 4:
        raise ValueError(
            f"{function} needs [batch, rows, columns, channels], but got shape {tuple(image.shape)}."
        )
