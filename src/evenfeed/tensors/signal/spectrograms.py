"""Spectrograms: `stft`, its inverse, mel scales and cepstral coefficients."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor
from evenfeed.tensors.operands import apply, check_dtypes
from evenfeed.tensors.signal.cosines import dct
from evenfeed.tensors.signal.fourier import COMPLEX, FULL_FLOATS, irfft, rfft
from evenfeed.tensors.signal.frames import frame, of_length, overlap_and_add
from evenfeed.tensors.signal.window_functions import hann_window, in_float


def stft(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    signals: object,
    frame_length: object,
    frame_step: object,
    fft_length: object = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the Fourier transforms of the frames of a signal, as [..., frames, frequencies].

    Args:
        signals: Samples of float32 or float64, as [..., samples].
        frame_length: The number of samples in a frame.
        frame_step: How far apart frames begin.
        fft_length: The length of a transform; by default the next power of two.
        window_fn: Makes a window from a length and a dtype. None for no window.
        pad_end: Fill frames at the end with zeros.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.abs(tf.signal.stft([1.0] * 8, frame_length=4, frame_step=2)).tolist()
        [[2.0, 1.0, 0.0], [2.0, 1.0, 0.0], [2.0, 1.0, 0.0]]
    """
    samples = convert_to_tensor(signals)
    check_dtypes("stft", [samples], FULL_FLOATS)
    length = known_integer(frame_length, "frame_length")
    frames = frame(samples, length, frame_step, pad_end)
    weighted = _weighted("stft", frames, length, window_fn)
    return rfft(weighted, [_transform_length(length, fft_length)])


def inverse_stft(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    stfts: object,
    frame_length: object,
    frame_step: object,
    fft_length: object = None,
    window_fn: Callable[..., Any] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Return the signal whose `stft` is given. Pass `inverse_stft_window_fn(frame_step)` as `window_fn`.

    Examples:
        >>> import evenfeed as tf
        >>> spectrum = tf.signal.stft([1.0] * 8, frame_length=4, frame_step=2)
        >>> window_fn = tf.signal.inverse_stft_window_fn(2)
        >>> x = tf.signal.inverse_stft(spectrum, 4, 2, window_fn=window_fn)
        >>> [round(v, 3) for v in x[2:6].tolist()]
        [1.0, 1.0, 1.0, 1.0]
    """
    spectrum = convert_to_tensor(stfts)
    check_dtypes("inverse_stft", [spectrum], COMPLEX)
    length = known_integer(frame_length, "frame_length")
    frames = irfft(spectrum, [_transform_length(length, fft_length)])
    cut = apply("inverse_stft", lambda x: of_length(x, length), frames)
    return overlap_and_add(_weighted("inverse_stft", cut, length, window_fn), frame_step)


def inverse_stft_window_fn(
    frame_step: object,
    forward_window_fn: Callable[..., Any] = hann_window,
    name: str | None = None,
) -> Callable[..., Tensor]:
    """Return the `window_fn` for `inverse_stft` that undoes the window of `stft`.

    Args:
        frame_step: How far apart frames begin.
        forward_window_fn: The `window_fn` of `stft`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.inverse_stft_window_fn(2)(4, dtype=tf.float32).tolist()
        [0.0, 1.0, 1.0, 1.0]
    """
    step = known_integer(frame_step, "frame_step")

    def window_fn(frame_length: object, dtype: DTypeLike) -> Tensor:
        length = known_integer(frame_length, "frame_length")
        rounded = -(-length // step) * step

        def formula(window: Any) -> Any:
            squares = of_length(jnp.square(window), rounded).reshape(-1, step)
            sums = jnp.tile(jnp.sum(squares, axis=0), rounded // step)
            return window / sums[:length]

        return apply("inverse_stft_window_fn", formula, forward_window_fn(length, dtype=dtype))

    return window_fn


def linear_to_mel_weight_matrix(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    num_mel_bins: object = 20,
    num_spectrogram_bins: object = 129,
    sample_rate: object = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return a matrix that turns the frequencies of a spectrogram into bands of the mel scale.

    Args:
        num_mel_bins: The number of bands.
        num_spectrogram_bins: The number of frequencies.
        sample_rate: Samples per second.
        lower_edge_hertz: Where the first band begins.
        upper_edge_hertz: Where the last band ends, at most half of the sample rate.
        dtype: A float dtype.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.linear_to_mel_weight_matrix(num_mel_bins=40).shape
        (129, 40)
    """
    bands = known_integer(num_mel_bins, "num_mel_bins")
    count = known_integer(num_spectrogram_bins, "num_spectrogram_bins")
    rate = float(np.asarray(sample_rate))
    _check_bands(bands, count, rate, lower_edge_hertz, upper_edge_hertz)
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), bands + 2)
    below, centre, above = edges[:-2], edges[1:-1], edges[2:]
    places = _mel(np.linspace(0, rate / 2, count))[1:, None]
    rising, falling = (places - below) / (centre - below), (above - places) / (above - centre)
    # The constant part of a signal belongs to no band.
    weights = np.maximum(0, np.minimum(rising, falling))
    return in_float(np.concatenate([np.zeros((1, bands)), weights]), dtype)


def mfccs_from_log_mel_spectrograms(
    log_mel_spectrograms: object, name: str | None = None
) -> Tensor:
    """Return the cepstral coefficients of spectrograms on the mel scale, [..., frames, bands].

    Examples:
        >>> import evenfeed as tf
        >>> [round(x, 3) for x in tf.signal.mfccs_from_log_mel_spectrograms([1.0, 2.0]).tolist()]
        [3.0, -0.707]
    """
    found = dct(log_mel_spectrograms)
    scale = 1 / math.sqrt(2 * max(found.shape[-1], 1))
    return apply("mfccs_from_log_mel_spectrograms", lambda x: x * scale, found)


def _weighted(function: str, frames: Any, length: int, window_fn: Callable[..., Any] | None) -> Any:
    if window_fn is None:
        return frames
    window = window_fn(length, dtype=frames.dtype)
    return apply(function, lambda x, weights: x * weights, frames, window, accepts=FULL_FLOATS)


def _transform_length(frame_length: int, fft_length: object) -> int:
    if fft_length is not None:
        return known_integer(fft_length, "fft_length")
    return 1 << max(frame_length - 1, 0).bit_length()


def _mel(hertz: Any) -> Any:
    return 1127 * np.log1p(np.asarray(hertz) / 700)


def _check_bands(bands: int, count: int, rate: float, low: float, high: float) -> None:
    rules: dict[str, Any] = {
        f"num_mel_bins must be at least 1, but got {bands}.": bands > 0,
        f"num_spectrogram_bins must be at least 1, but got {count}.": count > 0,
        f"sample_rate must be positive, but got {rate}.": rate > 0,
        f"lower_edge_hertz must be at least 0, but got {low}.": low >= 0,
        f"lower_edge_hertz must be below upper_edge_hertz, but got {low} and {high}.": low < high,
        f"upper_edge_hertz must be at most half of sample_rate, {rate / 2}, but got {high}.": high
        <= rate / 2,
    }
    for text, holds in rules.items():
        if not holds:
            raise InvalidArgumentError(text, fix="pass sizes and frequencies of the spectrogram.")
