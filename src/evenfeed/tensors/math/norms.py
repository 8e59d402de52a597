"""Norms, and limits for values: `norm`, `l2_normalize`, `clip_by_value`, `clip_by_global_norm` and so on."""

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Iterable
from typing import Any, cast

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.axes import axes_of
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.exact_numbers import exact_clip
from evenfeed.tensors.math import kept_nan
from evenfeed.tensors.math.reductions import with_nan
from evenfeed.tensors.operands import FLOATS, REALS, apply, elementwise, shaped_by


def clip_by_value(
    t: object, clip_value_min: object, clip_value_max: object, name: str | None = None
) -> Tensor:
    """Replace values below the first limit or above the second by that limit.

    Examples:
        >>> import evenfeed as tf
        >>> tf.clip_by_value([-1, 5, 9], 0, 6).tolist()
        [0, 5, 6]
    """
    return elementwise(
        "clip_by_value", _clipped, t, clip_value_min, clip_value_max, accepts=REALS, host=exact_clip
    )


def clip_by_norm(
    t: object, clip_norm: object, axes: object = None, name: str | None = None
) -> Tensor:
    """Scale values down so that their euclidean norm is at most `clip_norm`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.clip_by_norm([3.0, 4.0], 2.5).tolist()
        [1.5, 2.0]
    """

    def formula(values: Any, limit: Any) -> Any:
        squares = jnp.sum(values * values, axis=axes_of(values, axes), keepdims=True)
        is_zero = squares == 0
        norm = jnp.where(is_zero, squares, jnp.sqrt(jnp.where(is_zero, 1, squares)))
        return values * limit / kept_nan.maximum(norm, limit)

    return shaped_by(apply("clip_by_norm", formula, t, clip_norm, accepts=FLOATS), t)


def global_norm(t_list: object, name: str | None = None) -> Tensor:
    """Return the euclidean norm of all values of a list of tensors. None entries are left out.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.global_norm([[3.0], [4.0]]).tolist()
        5.0
    """
    tensors = [one for one in _listed(t_list) if one is not None]
    return apply("global_norm", _norm_of_all, *tensors, accepts=FLOATS)


def clip_by_global_norm(
    t_list: object, clip_norm: object, use_norm: object = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Scale a list of tensors down so that the norm of all together is at most `clip_norm`. Return them, and the norm.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.clip_by_global_norm([[3.0], [4.0]], 2.5)[0]]
        [[1.5], [2.0]]
    """
    given = _listed(t_list)
    norm = global_norm(given) if use_norm is None else use_norm

    def formula(values: Any, limit: Any, total: Any) -> Any:
        scale = limit * jnp.minimum(1 / total, 1 / limit)
        return jnp.where(jnp.isfinite(total), values * scale.astype(values.dtype), jnp.nan)

    clipped = [
        None
        if one is None
        else apply("clip_by_global_norm", formula, one, clip_norm, norm, accepts=FLOATS)
        for one in given
    ]
    return clipped, convert_to_tensor(norm)


def norm(
    tensor: object,
    ord: object = "euclidean",
    axis: object = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the norm of all values, of vectors (one axis) or of matrices (two axes).

    Args:
        tensor: The values.
        ord: "euclidean", "fro" (of matrices), 1, 2, infinity, or another number (of vectors).
        axis: The axis of the vectors, or the two axes of the matrices; all values if omitted.
        keepdims: Keep the axes, with length 1.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.norm([3.0, 4.0]).tolist()
        5.0
    """

    def formula(values: Any) -> Any:
        axes = tuple(range(values.ndim)) if axis is None else axes_of(values, axis)
        return _norm(values, ord, axes, axis is None, bool(keepdims))

    return apply("norm", formula, tensor, accepts=FLOATS)


def normalize(
    tensor: object, ord: object = "euclidean", axis: object = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divide values by their norm. Return them, and the norm; see `norm`.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.linalg.normalize([3.0, 4.0])]
        [[0.6000000238418579, 0.800000011920929], [5.0]]
    """
    length = norm(tensor, ord, axis, keepdims=True)
    return elementwise("normalize", jnp.divide, tensor, length, accepts=FLOATS), length


def l2_normalize(
    x: object,
    axis: object = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: object = None,
) -> Tensor:
    """Divide values by their euclidean norm along `axis`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.l2_normalize([3.0, 4.0]).tolist()
        [0.6000000238418579, 0.800000011920929]
    """

    def formula(values: Any) -> Any:
        along = axes_of(values, dim if axis is None else axis)
        squares = jnp.sum(jnp.real(values * jnp.conj(values)), axis=along, keepdims=True)
        return values * jax.lax.rsqrt(kept_nan.maximum(squares, epsilon))

    return shaped_by(apply("l2_normalize", formula, x, accepts=FLOATS), x)


def _clipped(values: Any, low: Any, high: Any) -> Any:
    return kept_nan.maximum(kept_nan.minimum(values, high), low)


def _listed(t_list: object) -> list[Any]:
    if not isinstance(t_list, (list, tuple)):
        raise TypeError(described("t_list must be a list of tensors.", fix="pass [tensor]."))
    return list(cast("Iterable[object]", t_list))


def _norm_of_all(*tensors: Any) -> Any:
    return jnp.sqrt(sum(jnp.sum(jnp.real(x * jnp.conj(x))) for x in tensors))


def _norm(values: Any, order: object, axes: tuple[int, ...], whole: bool, keepdims: bool) -> Any:
    if order in ("euclidean", "fro") or (order == 2 and len(axes) == 1):
        squares = jnp.real(values * jnp.conj(values))
        return jnp.sqrt(jnp.sum(squares, axis=axes, keepdims=keepdims))
    if isinstance(order, str):
        raise ValueError(
            described(f"Unknown norm {order!r}.", fix='pass "euclidean", "fro" or a number.')
        )
    if len(axes) == 2 and not whole:
        found = jnp.linalg.norm(values, cast("Any", order), axis=axes, keepdims=keepdims)
        return with_nan(found, values, axes, keepdims)
    return _vector_norm(jnp.abs(values), float(cast("Any", order)), axes, keepdims)


def _vector_norm(lengths: Any, order: float, axes: tuple[int, ...], keepdims: bool) -> Any:
    if order == float("inf"):
        largest = jnp.max(lengths, axis=axes, keepdims=keepdims)
        return with_nan(largest, lengths, axes, keepdims)
    return jnp.sum(lengths**order, axis=axes, keepdims=keepdims) ** (1 / order)
