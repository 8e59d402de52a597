"""Means and variances, normalization and `embedding_lookup`."""

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.arrays.picking import gather
from evenfeed.tensors.axes import axes_of, count_along
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.math.norms import clip_by_norm
from evenfeed.tensors.operands import REAL_FLOATS, apply
from evenfeed.tensors.ragged_dispatch import for_flat_values


def moments(
    x: object, axes: object, shift: object = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance along these axes.

    Examples:
        >>> import evenfeed as tf
        >>> [m.tolist() for m in tf.nn.moments(tf.constant([1.0, 3.0]), axes=[0])]
        [2.0, 1.0]
    """

    def formula(values: Any) -> tuple[Any, Any]:
        along, floats = axes_of(values, axes), _precise(values)
        mean = jnp.mean(floats, axis=along, keepdims=True)
        variance = jnp.mean(
            jnp.square(floats - jax.lax.stop_gradient(mean)), axis=along, keepdims=True
        )
        found = [one if keepdims else jnp.squeeze(one, along) for one in (mean, variance)]
        return found[0].astype(values.dtype), found[1].astype(values.dtype)

    return apply("moments", formula, x, accepts=REAL_FLOATS)


def weighted_moments(
    x: object,
    axes: object,
    frequency_weights: object,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance along these axes, where each value counts as often as its weight.

    Examples:
        >>> import evenfeed as tf
        >>> [m.tolist() for m in tf.nn.weighted_moments([1.0, 3.0], [0], [1.0, 1.0])]
        [2.0, 1.0]
    """

    def formula(values: Any, weights: Any) -> tuple[Any, Any]:
        along, floats = axes_of(values, axes), _precise(values)
        each = jnp.broadcast_to(weights, values.shape).astype(floats.dtype)
        total = jnp.sum(each, axis=along, keepdims=True)
        mean = jnp.sum(each * floats, axis=along, keepdims=True) / total
        variance = jnp.sum(each * floats * floats, axis=along, keepdims=True) / total - mean * mean
        found = [one if keepdims else jnp.squeeze(one, along) for one in (mean, variance)]
        return found[0].astype(values.dtype), found[1].astype(values.dtype)

    return apply("weighted_moments", formula, x, frequency_weights, accepts=REAL_FLOATS)


def sufficient_statistics(
    x: object, axes: object, shift: object = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, ...]:
    """Return the number of values, their sum and the sum of their squares along these axes, and `shift`.

    Examples:
        >>> import evenfeed as tf
        >>> [m.tolist() for m in tf.nn.sufficient_statistics([1.0, 3.0], [0])[:3]]
        [2.0, 4.0, 10.0]
    """

    def formula(values: Any, *moved: Any) -> tuple[Any, Any, Any]:
        along = axes_of(values, axes)
        floats = values - moved[0] if moved else values
        count = jnp.asarray(count_along(values, along), values.dtype)
        sums = [jnp.sum(one, axis=along, keepdims=keepdims) for one in (floats, jnp.square(floats))]
        return count, sums[0], sums[1]

    given = [] if shift is None else [shift]
    found = apply("sufficient_statistics", formula, x, *given, accepts=REAL_FLOATS)
    return (*found, None if shift is None else convert_to_tensor(shift))


def normalize_moments(
    counts: object, mean_ss: object, variance_ss: object, shift: object, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance that follow from `sufficient_statistics`.

    Examples:
        >>> import evenfeed as tf
        >>> [m.tolist() for m in tf.nn.normalize_moments(2.0, 4.0, 10.0, None)]
        [2.0, 1.0]
    """

    def formula(count: Any, total: Any, squares: Any, *moved: Any) -> tuple[Any, Any]:
        shifted = total / count
        mean = shifted + moved[0] if moved else shifted
        return mean, squares / count - shifted * shifted

    given = [] if shift is None else [shift]
    return apply(
        "normalize_moments", formula, counts, mean_ss, variance_ss, *given, accepts=REAL_FLOATS
    )


def batch_normalization(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    x: object,
    mean: object,
    variance: object,
    offset: object,
    scale: object,
    variance_epsilon: object,
    name: str | None = None,
) -> Tensor:
    """Return `scale * (x - mean) / sqrt(variance + variance_epsilon) + offset`; the last two may be None.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.batch_normalization(tf.constant([3.0]), 1.0, tf.constant(4.0), None, 2.0, 0.0).tolist()
        [2.0]
    """

    def formula(values: Any, center: Any, spread: Any, epsilon: Any, *others: Any) -> Any:
        left = list(others)
        factor = jax.lax.rsqrt(spread + epsilon)
        factor = factor if scale is None else factor * left.pop(0)
        shift = -center * factor if offset is None else left.pop(0) - center * factor
        return values * factor.astype(values.dtype) + shift.astype(values.dtype)

    others = [one for one in (scale, offset) if one is not None]
    return apply(
        "batch_normalization",
        formula,
        x,
        mean,
        variance,
        variance_epsilon,
        *others,
        accepts=REAL_FLOATS,
    )


def local_response_normalization(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divide values by a function of the squares in the channels near them.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.lrn([[[[3.0]]]], depth_radius=1)[0][0][0][0]:.4f}"
        '0.9487'
    """

    def formula(x: Any) -> Any:
        width = 2 * depth_radius + 1
        squares = jax.lax.reduce_window(
            x * x, np.zeros((), x.dtype), jax.lax.add, (1, 1, 1, width), (1, 1, 1, 1), "SAME"
        )
        return x / (bias + alpha * squares) ** beta

    return apply("local_response_normalization", formula, input, accepts=REAL_FLOATS)


@for_flat_values
def embedding_lookup(
    params: object, ids: object, max_norm: object = None, name: str | None = None
) -> Tensor:
    """Pick the rows of a matrix with these ids.

    Args:
        params: The matrix, or a list of one.
        ids: The ids, of any shape.
        max_norm: Scale rows down whose euclidean norm is larger.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.embedding_lookup(tf.constant([[1.0], [2.0], [3.0]]), [2, 0]).tolist()
        [[3.0], [1.0]]
    """
    table = cast("Sequence[object]", params)[0] if _is_list_of_one(params) else params
    rows = gather(table, ids)
    if max_norm is None:
        return rows
    return clip_by_norm(
        rows, max_norm, axes=list(range(np.ndim(convert_to_tensor(ids)), rows.ndim))
    )


def _precise(values: Any) -> Any:
    """Return half floats as float32: their squares would overflow."""
    return values.astype(dtypes.float32) if values.dtype.itemsize < 4 else values


def _is_list_of_one(params: object) -> bool:
    if not isinstance(params, (list, tuple)):
        return False
    entries = cast("Sequence[object]", params)
    return len(entries) == 1 and np.ndim(cast("Any", entries[0])) > 1
