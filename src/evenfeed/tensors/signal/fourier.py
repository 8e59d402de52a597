"""Fourier transforms: `fft`, `rfft`, their inverses, in one to three dimensions and along any axes."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.tensor_types import HostTensor
from evenfeed.tensors.axes import axes_of
from evenfeed.tensors.creation import Tensor, is_on_device, whole_numbers
from evenfeed.tensors.operands import Accepted, apply, rearrange

COMPLEX: Final = Accepted("complex numbers", "biufOV", "complex64")
FULL_FLOATS: Final = Accepted("float32 or float64", "biuOcV", "float32")


def fft(input: object, name: str | None = None) -> Tensor:
    """Return the discrete Fourier transform along the last axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.fft(tf.constant([1 + 0j, 2, 3, 4])).tolist()
        [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """
    return _transformed("fft", "fftn", 1, input, dtypes.complex64)


def ifft(input: object, name: str | None = None) -> Tensor:
    """Return the inverse of `fft`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.ifft(tf.constant([3 + 0j, -1])).tolist()
        [(1+0j), (2+0j)]
    """
    return _transformed("ifft", "ifftn", 1, input, dtypes.complex64)


def fft2d(input: object, name: str | None = None) -> Tensor:
    """Return the discrete Fourier transform along the last two axes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.fft2d(tf.constant([[1 + 0j, 2], [3, 4]])).tolist()
        [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _transformed("fft2d", "fftn", 2, input, dtypes.complex64)


def ifft2d(input: object, name: str | None = None) -> Tensor:
    """Return the inverse of `fft2d`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.ifft2d(tf.constant([[4 + 0j, 0], [0, 0]])).tolist()
        [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _transformed("ifft2d", "ifftn", 2, input, dtypes.complex64)


def fft3d(input: object, name: str | None = None) -> Tensor:
    """Return the discrete Fourier transform along the last three axes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.fft3d(tf.constant([[[1 + 0j, 2]]])).tolist()
        [[[(3+0j), (-1+0j)]]]
    """
    return _transformed("fft3d", "fftn", 3, input, dtypes.complex64)


def ifft3d(input: object, name: str | None = None) -> Tensor:
    """Return the inverse of `fft3d`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.ifft3d(tf.constant([[[3 + 0j, -1]]])).tolist()
        [[[(1+0j), (2+0j)]]]
    """
    return _transformed("ifft3d", "ifftn", 3, input, dtypes.complex64)


def rfft(input_tensor: object, fft_length: object = None, name: str | None = None) -> Tensor:
    """Return the Fourier transform of real values along the last axis, without the mirrored half.

    Args:
        input_tensor: Values of float32 or float64.
        fft_length: A list with one length: values are cut off, or zeros added. By default, the length of the axis.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.rfft([1.0, 2.0, 3.0, 4.0]).tolist()
        [(10+0j), (-2+2j), (-2+0j)]
    """
    return _transformed("rfft", "rfftn", 1, input_tensor, dtypes.float32, fft_length)


def irfft(input_tensor: object, fft_length: object = None, name: str | None = None) -> Tensor:
    """Return the inverse of `rfft`.

    Args:
        input_tensor: Complex values.
        fft_length: A list with the length of the result. By default, twice the length of the axis, less 2.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.irfft(tf.constant([10 + 0j, -2 + 2j, -2])).tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    return _transformed("irfft", "irfftn", 1, input_tensor, dtypes.complex64, fft_length)


def rfft2d(input_tensor: object, fft_length: object = None, name: str | None = None) -> Tensor:
    """Return the Fourier transform of real values along the last two axes; see `rfft`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]]).tolist()
        [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _transformed("rfft2d", "rfftn", 2, input_tensor, dtypes.float32, fft_length)


def irfft2d(input_tensor: object, fft_length: object = None, name: str | None = None) -> Tensor:
    """Return the inverse of `rfft2d`; see `irfft`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.irfft2d(tf.constant([[10 + 0j, -2], [-4, 0]])).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return _transformed("irfft2d", "irfftn", 2, input_tensor, dtypes.complex64, fft_length)


def rfft3d(input_tensor: object, fft_length: object = None, name: str | None = None) -> Tensor:
    """Return the Fourier transform of real values along the last three axes; see `rfft`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.rfft3d([[[1.0, 2.0]]]).tolist()
        [[[(3+0j), (-1+0j)]]]
    """
    return _transformed("rfft3d", "rfftn", 3, input_tensor, dtypes.float32, fft_length)


def irfft3d(input_tensor: object, fft_length: object = None, name: str | None = None) -> Tensor:
    """Return the inverse of `rfft3d`; see `irfft`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.irfft3d(tf.constant([[[3 + 0j, -1]]])).tolist()
        [[[1.0, 2.0]]]
    """
    return _transformed("irfft3d", "irfftn", 3, input_tensor, dtypes.complex64, fft_length)


def fftnd(
    input_tensor: object,
    fft_length: object = None,
    axes: object = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the discrete Fourier transform along up to three axes.

    Args:
        input_tensor: Complex values.
        fft_length: The length of each axis: values are cut off, or zeros added.
        axes: The axes; by default all, or the last ones if `fft_length` names fewer.
        norm: None or "backward", "ortho" or "forward": which direction is divided by the length.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.fftnd(tf.constant([[1 + 0j, 2], [3, 4]]), axes=[0]).tolist()
        [[(4+0j), (6+0j)], [(-2+0j), (-2+0j)]]
    """
    return _along("fftnd", "fftn", input_tensor, fft_length, axes, norm)


def ifftnd(
    input_tensor: object,
    fft_length: object = None,
    axes: object = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the inverse of `fftnd`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.ifftnd(tf.constant([3 + 0j, -1])).tolist()
        [(1+0j), (2+0j)]
    """
    return _along("ifftnd", "ifftn", input_tensor, fft_length, axes, norm)


def rfftnd(
    input_tensor: object,
    fft_length: object = None,
    axes: object = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Like `fftnd`, for real values, without the mirrored half of the last axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.rfftnd([[1.0, 2.0], [3.0, 4.0]]).tolist()
        [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _along("rfftnd", "rfftn", input_tensor, fft_length, axes, norm)


def irfftnd(
    input_tensor: object,
    fft_length: object = None,
    axes: object = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the inverse of `rfftnd`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.irfftnd(tf.constant([[10 + 0j, -2], [-4, 0]])).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return _along("irfftnd", "irfftn", input_tensor, fft_length, axes, norm)


def fftshift(x: object, axes: object = None, name: str | None = None) -> Tensor:
    """Move the frequency 0 to the middle of each axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.fftshift([0, 1, 2, -2, -1]).tolist()
        [-2, -1, 0, 1, 2]
    """
    return rearrange(
        "fftshift", lambda xp, values: xp.fft.fftshift(values, axes_of(values, axes)), x
    )


def ifftshift(x: object, axes: object = None, name: str | None = None) -> Tensor:
    """Undo `fftshift`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.signal.ifftshift([-2, -1, 0, 1, 2]).tolist()
        [0, 1, 2, -2, -1]
    """
    return rearrange(
        "ifftshift", lambda xp, values: xp.fft.ifftshift(values, axes_of(values, axes)), x
    )


def _transformed(  # noqa: PLR0913, PLR0917 - what the functions differ in
    function: str,
    transform: str,
    rank: int,
    values: object,
    default: DType,
    fft_length: object = None,
) -> Any:
    """Transform the last axes. What is not a tensor yet becomes one of the default dtype, as in TensorFlow."""
    lengths = _lengths(function, fft_length, rank)
    is_tensor = isinstance(values, HostTensor) or is_on_device(values)
    given = values if is_tensor else np.asarray(values).astype(default)
    formula = _formula(function, transform, lengths, range(-rank, 0))
    return apply(function, formula, given, accepts=_accepted(transform))


def _along(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    function: str, transform: str, values: object, fft_length: object, axes: object, norm: object
) -> Any:
    if norm not in (None, "backward", "ortho", "forward"):
        raise InvalidArgumentError(
            f"norm must be None, backward, ortho or forward, but got {norm!r}.",
            fix='pass "ortho", or omit it.',
        )
    lengths = _lengths(function, fft_length, None)

    def formula(x: Any) -> Any:
        along = axes_of(x, axes)
        if axes is None and lengths is not None:
            along = along[-len(lengths) :]
        return _formula(function, transform, lengths, along, norm)(x)

    return apply(function, formula, values, accepts=_accepted(transform))


def _formula(
    function: str, transform: str, lengths: list[int] | None, axes: Any, norm: Any = None
) -> Callable[[Any], Any]:
    def formula(x: Any) -> Any:
        if x.ndim < len(axes):
            raise InvalidArgumentError(
                f"{function} needs a tensor of rank {len(axes)} or more, but got rank {x.ndim}.",
                fix="add axes with evenfeed.expand_dims.",
            )
        return getattr(jnp.fft, transform)(x, lengths, tuple(axes), norm)

    return formula


def _accepted(transform: str) -> Accepted:
    return FULL_FLOATS if transform == "rfftn" else COMPLEX


def _lengths(function: str, fft_length: object, rank: int | None) -> list[int] | None:
    if fft_length is None:
        return None
    lengths = whole_numbers(fft_length)
    if lengths is None or lengths.ndim != 1 or rank not in (None, lengths.size):
        raise InvalidArgumentError(
            f"{function} needs fft_length as a list of {rank or 'its'} lengths, but got {shortened(fft_length)}.",
            fix=f"pass {[8] * (rank or 1)}, for example.",
        )
    if lengths.size and lengths.min() < 1:
        raise InvalidArgumentError(
            f"{function} needs lengths of at least 1, but got fft_length {lengths.tolist()}.",
            fix="pass the number of values to transform.",
        )
    return lengths.tolist()
