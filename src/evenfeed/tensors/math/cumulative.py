"""Functions of all values up to each place: `cumsum`, `cumprod`."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in

from collections.abc import Callable
from typing import Any

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged import ragged_math
from evenfeed.tensors.axes import axis_of
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.exact_numbers import exact_sums
from evenfeed.tensors.operands import NUMBERS, REAL_FLOATS, Accepted, apply, shaped_by
from evenfeed.tensors.ragged_dispatch import for_ragged


@for_ragged(ragged_math.cumsum)
def cumsum(
    x: object,
    axis: object = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the sums of all values up to each place along `axis`.

    Args:
        x: The values.
        axis: The axis to sum along.
        exclusive: Leave out the value at the place itself.
        reverse: Sum from the end.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.cumsum([1, 2, 3]).tolist()
        [1, 3, 6]
        >>> tf.cumsum([1, 2, 3], exclusive=True, reverse=True).tolist()
        [5, 3, 0]
    """
    return _accumulated("cumsum", _sums, x, axis, exclusive, reverse)


def cumprod(
    x: object,
    axis: object = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the products of all values up to each place along `axis`; see `cumsum`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.cumprod([1, 2, 3]).tolist()
        [1, 2, 6]
    """
    return _accumulated("cumprod", _products, x, axis, exclusive, reverse)


def cumulative_logsumexp(
    x: object,
    axis: object = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return `log(sum(exp(x)))` up to each place along `axis`; see `cumsum`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.cumulative_logsumexp([0.0, 0.0])[1]:.4f}"
        '0.6931'
    """
    return _accumulated(
        "cumulative_logsumexp", _log_sums, x, axis, exclusive, reverse, accepts=REAL_FLOATS
    )


def _sums(tensor: Any, axis: int) -> tuple[Any, Any]:
    return jnp.cumsum(tensor, axis=axis, dtype=tensor.dtype), 0


def _products(tensor: Any, axis: int) -> tuple[Any, Any]:
    return jnp.cumprod(tensor, axis=axis, dtype=tensor.dtype), 1


def _log_sums(tensor: Any, axis: int) -> tuple[Any, Any]:
    return jax.lax.cumlogsumexp(tensor, axis=axis), -jnp.inf


def _accumulated(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    function: str,
    accumulate: Callable[[Any, int], tuple[Any, Any]],
    value: object,
    axis: object,
    exclusive: bool,
    reverse: bool,
    accepts: Accepted = NUMBERS,
) -> Any:
    def formula(tensor: Any) -> Any:
        along = axis_of(tensor.ndim, axis)
        found, neutral = accumulate(jnp.flip(tensor, along) if reverse else tensor, along)
        found = _shifted(found, along, neutral) if exclusive else found
        return jnp.flip(found, along) if reverse else found

    def host(tensor: Any) -> Any:
        if function != "cumsum":
            return NotImplemented
        along = axis_of(tensor.ndim, axis)
        return exact_sums(tensor, along, exclusive=exclusive, reverse=reverse)

    return shaped_by(apply(function, formula, value, accepts=accepts, host=host), value)


def _shifted(tensor: Any, axis: int, neutral: Any) -> Any:
    """Return the values moved by one place, with the neutral value at the first."""
    widths = [(int(axis == place), 0) for place in range(tensor.ndim)]
    padded = jnp.pad(tensor, widths, constant_values=neutral)
    return jax.lax.slice_in_dim(padded, 0, tensor.shape[axis], axis=axis)
