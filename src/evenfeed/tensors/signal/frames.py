"""Cuts a signal into frames that may overlap, and adds such frames up again."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.operands import apply, rearrange


def frame(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    signal: object,
    frame_length: object,
    frame_step: object,
    pad_end: bool = False,
    pad_value: object = 0,
    axis: object = -1,
    name: str | None = None,
) -> Tensor:
    """Cut one axis into frames: it is replaced by the axes [frames, frame_length].

    Args:
        signal: The values, for example samples of sound as [..., samples].
        frame_length: The number of values in a frame.
        frame_step: How far apart frames begin.
        pad_end: Let a frame begin at each step, and fill it with `pad_value`. Otherwise, values at the end that
            fill no frame are dropped.
        pad_value: What is behind the end.
        axis: The axis to cut.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.frame([1, 2, 3, 4, 5], 3, 2).tolist()
        [[1, 2, 3], [3, 4, 5]]
        >>> tf.signal.frame([1, 2, 3, 4], 3, 2, pad_end=True).tolist()
        [[1, 2, 3], [3, 4, 0]]
    """
    values = convert_to_tensor(signal)
    length, step = known_integer(frame_length, "frame_length"), _step(frame_step)
    if length < 0:
        raise InvalidArgumentError(
            f"frame_length must be at least 0, but got {length}.", fix="pass the length of a frame."
        )
    _check_rank("frame", values, 1)
    place = axis_of(values.ndim, axis)
    size = values.shape[place]
    count = -(-size // step) if pad_end else max(0, (size - length) // step + 1)
    places = _places(count, step, length)
    beyond = max(0, (count - 1) * step + length - size) if count else 0
    if pad_end and beyond:
        values = _padded(values, place, beyond, pad_value)

    def formula(xp: Any, x: Any) -> Any:
        return xp.take(x, places, axis=place)

    return rearrange("frame", formula, values)


def overlap_and_add(signal: object, frame_step: object, name: str | None = None) -> Tensor:
    """Add up frames that overlap: the last two axes [frames, frame_length] become one.

    Args:
        signal: The frames.
        frame_step: How far apart frames begin.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.overlap_and_add([[1, 2, 3], [4, 5, 6]], 2).tolist()
        [1, 2, 7, 5, 6]
    """
    step = _step(frame_step)

    def formula(x: Any) -> Any:
        _check_rank("overlap_and_add", x, 2)
        count, length = map(int, x.shape[-2:])
        places = _places(count, step, length)
        empty = jnp.zeros((*x.shape[:-2], max(0, count - 1) * step + length), x.dtype)
        return empty.at[..., places].add(x)

    return apply("overlap_and_add", formula, signal)


def of_length(x: Any, length: int) -> Any:
    """Cut values off the last axis, or add zeros."""
    cut = x[..., :length]
    return jnp.pad(cut, [(0, 0)] * (x.ndim - 1) + [(0, length - cut.shape[-1])])


def _check_rank(function: str, values: Any, rank: int) -> None:
    if values.ndim < rank:
        raise InvalidArgumentError(
            f"{function} needs a tensor of rank {rank} or more, but got rank {values.ndim}.",
            fix="add axes with evenfeed.expand_dims.",
        )


def _step(frame_step: object) -> int:
    step = known_integer(frame_step, "frame_step")
    if step < 1:
        raise InvalidArgumentError(
            f"frame_step must be at least 1, but got {step}.", fix="pass how far frames are apart."
        )
    return step


def _places(count: int, step: int, length: int) -> Array:
    """Return where the values of each frame are."""
    return np.arange(count)[:, None] * step + np.arange(length)


def _padded(values: Any, axis: int, count: int, pad_value: object) -> Any:
    shape = (*values.shape[:axis], count, *values.shape[axis + 1 :])
    text = values.dtype == dtypes.string
    value = convert_to_tensor(b"" if text and pad_value == 0 else pad_value, values.dtype)

    def formula(xp: Any, x: Any, filler: Any) -> Any:
        return xp.concatenate([x, xp.broadcast_to(filler, shape)], axis)

    return rearrange("frame", formula, values, value)
