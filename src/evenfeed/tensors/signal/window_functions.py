"""Windows for the frames of a signal: `hann_window` and its kin."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor
from evenfeed.tensors.device_arrays import asked_dtype, remembering, to_device_array


def hann_window(
    window_length: object,
    periodic: bool = True,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return a Hann window: half of a raised cosine.

    Args:
        window_length: The number of values.
        periodic: If the length is even, leave out the last value of a window that is longer by one.
        dtype: A float dtype.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.hann_window(4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    length = _length(window_length)
    return in_float(_raised_cosine(length, periodic, 0.5), dtype)


def hamming_window(
    window_length: object,
    periodic: bool = True,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return a Hamming window: a raised cosine that does not reach zero. See `hann_window`.

    Examples:
        >>> import evenfeed as tf
        >>> [f"{x:.2f}" for x in tf.signal.hamming_window(4).tolist()]
        ['0.08', '0.54', '1.00', '0.54']
    """
    length = _length(window_length)
    return in_float(_raised_cosine(length, periodic, 0.54), dtype)


def kaiser_window(
    window_length: object,
    beta: float = 12.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return a Kaiser window.

    Args:
        window_length: The number of values, at least 1.
        beta: The larger it is, the narrower the window.
        dtype: A float dtype.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> [f"{x:.2f}" for x in tf.signal.kaiser_window(5).tolist()]
        ['0.00', '0.22', '1.00', '0.22', '0.00']
    """
    return in_float(np.kaiser(_length(window_length, least=1), beta), dtype)


def kaiser_bessel_derived_window(
    window_length: object,
    beta: float = 12.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return a window whose squares add up to 1 with those of the frame before, if frames overlap by half.

    An odd length is rounded down. See `kaiser_window`.

    Examples:
        >>> import evenfeed as tf
        >>> [f"{x:.2f}" for x in tf.signal.kaiser_bessel_derived_window(4).tolist()]
        ['0.01', '1.00', '1.00', '0.01']
    """
    sums = np.cumsum(np.kaiser(_length(window_length) // 2 + 1, beta))
    half = np.sqrt(sums[:-1] / sums[-1])
    return in_float(np.concatenate([half, half[::-1]]), dtype)


def vorbis_window(
    window_length: object, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Return a Vorbis window, whose squares add up to 1 with those of the frame before, if frames overlap by half.

    Examples:
        >>> import evenfeed as tf
        >>> [f"{x:.2f}" for x in tf.signal.vorbis_window(4).tolist()]
        ['0.23', '0.97', '0.97', '0.23']
    """
    length = _length(window_length)
    places = (np.arange(length) + 0.5) / max(length, 1)
    return in_float(np.sin(np.pi / 2 * np.sin(np.pi * places) ** 2), dtype)


def in_float(values: Array, dtype: DTypeLike) -> Tensor:
    """Return a tensor of a float dtype."""
    asked = dtypes.as_dtype(dtype)
    if asked.kind not in "fV":
        raise InvalidArgumentError(
            f"dtype must be a float dtype, but got {dtypes.name_of(asked)}.",
            fix="pass evenfeed.float32.",
        )
    return remembering(to_device_array(values.astype(asked_dtype(asked)), "the values"), asked)


def _raised_cosine(length: int, periodic: bool, middle: float) -> Array:
    if length == 1:
        return np.ones(1)
    period = length - 1 + (periodic and length % 2 == 0)
    return middle - (1 - middle) * np.cos(2 * np.pi * np.arange(length) / max(period, 1))


def _length(window_length: object, least: int = 0) -> int:
    length = known_integer(window_length, "window_length")
    if length < least:
        raise InvalidArgumentError(
            f"window_length must be at least {least}, but got {length}.",
            fix="pass the number of values in a frame.",
        )
    return length
