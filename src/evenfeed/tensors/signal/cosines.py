"""Cosine transforms: `dct`, `idct`, and `mdct` with its inverse."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.operands import apply
from evenfeed.tensors.signal.fourier import FULL_FLOATS
from evenfeed.tensors.signal.frames import frame, of_length, overlap_and_add
from evenfeed.tensors.signal.window_functions import vorbis_window

_INVERSE: Final = {1: 1, 2: 3, 3: 2, 4: 4}


def dct(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    type: int = 2,
    n: object = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the cosine transform along the last axis.

    Args:
        input: Values of float32 or float64.
        type: 1 to 4.
        n: The length: values are cut off, or zeros added.
        axis: Only -1.
        norm: None, or "ortho" for a transform that keeps lengths.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> [round(x, 3) for x in tf.signal.dct([1.0, 2.0], norm="ortho").tolist()]
        [2.121, -0.707]
    """
    length = None if n is None else known_integer(n, "n")
    _check("dct", type, length, axis, norm)

    def formula(x: Any) -> Any:
        if x.ndim < 1:
            raise InvalidArgumentError(
                "dct needs a tensor of rank 1 or more, but got rank 0.", fix="pass a vector."
            )
        values = x if length is None else of_length(x, length)
        size = values.shape[-1]
        if type == 1 and size < 2:
            raise InvalidArgumentError(
                f"dct of type 1 needs 2 or more values along the last axis, but got {size}.",
                fix="pass more values, or type=2.",
            )
        if not size:
            return values
        return _FORMULAS[type](values, size, norm == "ortho").astype(x.dtype)

    return apply("dct", formula, input, accepts=FULL_FLOATS)


def idct(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    type: int = 2,
    n: object = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the inverse of `dct`; without `norm`, times a factor that depends on the length.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.signal.dct([1.0, 2.0, 3.0], norm="ortho")
        >>> [round(x, 3) for x in tf.signal.idct(x, norm="ortho").tolist()]
        [1.0, 2.0, 3.0]
    """
    _check("idct", type, None, axis, norm)
    return dct(input, _INVERSE[type], n, axis, norm)


def mdct(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    signals: object,
    frame_length: object,
    window_fn: Callable[..., Any] | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the modified cosine transform of frames that overlap by half.

    Args:
        signals: Samples, as [..., samples].
        frame_length: The length of a frame, a multiple of 4.
        window_fn: Makes a window from a length and a dtype.
        pad_end: Fill the last frame with zeros.
        norm: None or "ortho".
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.mdct([1.0] * 16, 8).shape
        (3, 4)
    """
    length = known_integer(frame_length, "frame_length")
    if length % 4:
        raise InvalidArgumentError(
            f"frame_length must be a multiple of 4, but got {length}.", fix="round it up."
        )
    frames = convert_to_tensor(frame(signals, length, max(length // 2, 1), pad_end))
    window = _window(window_fn, length, frames)

    def formula(x: Any, weights: Any) -> Any:
        a, b, c, d = jnp.split(x * weights, 4, axis=-1)
        return jnp.concatenate([-c[..., ::-1] - d, a - b[..., ::-1]], axis=-1)

    return dct(apply("mdct", formula, frames, window, accepts=FULL_FLOATS), 4, norm=norm)


def inverse_mdct(
    mdcts: object,
    window_fn: Callable[..., Any] | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the samples whose `mdct` is given; the first and the last half frame have only one frame to come from.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.signal.inverse_mdct(tf.signal.mdct([1.0] * 16, 8))
        >>> [round(v, 3) for v in x[4:12].tolist()]
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    frames = dct(mdcts, 4, norm=norm)
    half = frames.shape[-1]
    window = _window(window_fn, 2 * half, frames)
    scale = 1 if norm == "ortho" else 0.5 / max(half, 1)

    def formula(x: Any, weights: Any) -> Any:
        if half % 2:
            raise InvalidArgumentError(
                f"inverse_mdct needs an even number of values in a frame, but got {half}.",
                fix="pass what evenfeed.signal.mdct returned.",
            )
        first, second = jnp.split(x * scale, 2, axis=-1)
        mirrored = [second, -second[..., ::-1], -first[..., ::-1], -first]
        return jnp.concatenate(mirrored, axis=-1) * weights

    found = apply("inverse_mdct", formula, frames, window, accepts=FULL_FLOATS)
    return overlap_and_add(found, max(half, 1))


def _window(window_fn: Callable[..., Any] | None, length: int, frames: Any) -> Any:
    """Return the window; without a function, one whose squares add up to 1 with those of the frame before."""
    if window_fn is None:
        return np.full(length, math.sqrt(0.5), np.dtype(frames.dtype))
    return window_fn(length, dtype=frames.dtype)


def _type_1(x: Any, size: int, ortho: bool) -> Any:
    del size, ortho
    return jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], axis=-1)).real


def _type_2(x: Any, size: int, ortho: bool) -> Any:
    turns = _turns(-0.5 * np.arange(size) / size, x)
    found = (jnp.fft.rfft(x, 2 * size)[..., :size] * (2 * turns)).real
    return found * _ortho(size, 0.25, x) if ortho else found


def _type_3(x: Any, size: int, ortho: bool) -> Any:
    turned = (x * _ortho(size, 1, x) if ortho else x) * _turns(0.5 * np.arange(size) / size, x)
    return jnp.fft.irfft(2 * size * turned, 2 * size)[..., :size]


def _type_4(x: Any, size: int, ortho: bool) -> Any:
    before = _turns(-0.5 * np.arange(size) / size, x)
    after = _turns(-0.25 * (2 * np.arange(size) + 1) / size, x)
    found = (jnp.fft.fft(x * before, 2 * size)[..., :size] * (2 * after)).real
    return found * math.sqrt(0.5 / size) if ortho else found


def _turns(angles: Array, x: Any) -> Array:
    """Return complex numbers of length 1 at angles in units of pi, as precise as x."""
    return np.exp(1j * np.pi * angles).astype(np.result_type(x.dtype, np.complex64))


def _ortho(size: int, first: float, x: Any) -> Array:
    """Return the factors of an orthogonal transform, whose first one differs."""
    return np.sqrt(np.where(np.arange(size), 0.5, first) / size).astype(x.dtype)


_FORMULAS: Final = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}


def _check(function: str, type: int, length: int | None, axis: int, norm: str | None) -> None:
    wrong = None
    if axis != -1:
        raise NotImplementedError(
            described(
                f"{function} transforms the last axis only, but got axis={axis}.",
                fix="move the axis to the end with evenfeed.transpose.",
            )
        )
    if type not in _INVERSE:
        wrong = f"type must be 1, 2, 3 or 4, but got {type!r}.", "pass type=2."
    elif norm not in (None, "ortho"):
        wrong = f"norm must be None or ortho, but got {norm!r}.", 'pass "ortho".'
    elif type == 1 and norm == "ortho":
        wrong = "A transform of type 1 has no norm.", "omit norm, or pass type=2."
    elif length is not None and length < 1:
        wrong = f"n must be at least 1, but got {length}.", "pass the number of values."
    if wrong is not None:
        raise InvalidArgumentError(f"{function}: {wrong[0]}", fix=wrong[1])
