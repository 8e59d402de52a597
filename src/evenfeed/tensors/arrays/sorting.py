"""Functions of the order of values: `sort`, `top_k`, `searchsorted` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor
from evenfeed.tensors.exact_numbers import exact_order
from evenfeed.tensors.operands import REAL_FLOATS, REALS, apply, in_dtype


class TopKV2(NamedTuple):
    """The result of `top_k`."""

    values: Tensor
    indices: Tensor


def sort(
    values: object, axis: object = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """Sort along `axis`. NaN counts as the largest value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sort([3, 1, 2], direction="DESCENDING").tolist()
        [3, 2, 1]
    """
    falls = _falls(direction)

    def formula(tensor: Any) -> Any:
        return jnp.sort(tensor, axis=axis_of(tensor.ndim, axis), descending=falls)

    def host(tensor: Any) -> Any:
        along = axis_of(tensor.ndim, axis)
        order = exact_order(tensor, along, falls=falls)
        return order if order is NotImplemented else np.take_along_axis(tensor, order, along)

    return apply("sort", formula, values, accepts=REALS, host=host)


def argsort(
    values: object,
    axis: object = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the indices that sort along `axis`, as int32. Equal values keep their order.

    Examples:
        >>> import evenfeed as tf
        >>> tf.argsort([3, 1, 2]).tolist()
        [1, 2, 0]
    """
    falls = _falls(direction)

    def formula(tensor: Any) -> Any:
        found = jnp.argsort(tensor, axis=axis_of(tensor.ndim, axis), descending=falls)
        return found.astype(dtypes.int32)

    def host(tensor: Any) -> Any:
        order = exact_order(tensor, axis_of(tensor.ndim, axis), falls=falls)
        return order if order is NotImplemented else order.astype(dtypes.int32)

    return apply("argsort", formula, values, accepts=REALS, host=host)


def top_k(
    input: object,
    k: object = 1,
    sorted: bool = True,
    index_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> TopKV2:
    """Return the `k` largest values along the last axis, and their indices.

    Examples:
        >>> import evenfeed as tf
        >>> [part.tolist() for part in tf.math.top_k([1, 9, 5], k=2)]
        [[9, 5], [1, 2]]
    """
    count = known_integer(k, "k")

    def formula(tensor: Any) -> tuple[Any, Any]:
        if not tensor.ndim or not 0 <= count <= tensor.shape[-1]:
            raise InvalidArgumentError(
                f"top_k cannot find {count} values in a tensor of shape {tuple(tensor.shape)}.",
                fix="pass a k from 0 to the length of the last axis.",
            )
        order = jnp.argsort(tensor, axis=-1, descending=True)[..., :count]
        return jnp.sort(tensor, axis=-1, descending=True)[..., :count], in_dtype(order, index_type)

    def host(tensor: Any) -> Any:
        if not tensor.ndim or not 0 <= count <= tensor.shape[-1]:
            return NotImplemented
        order = exact_order(tensor, -1, falls=True)
        if order is NotImplemented:
            return order
        order = order[..., :count]
        indices = order.astype(dtypes.as_dtype(index_type))
        return np.take_along_axis(tensor, order, -1), indices

    return TopKV2(*apply("top_k", formula, input, accepts=REALS, host=host))


def in_top_k(targets: object, predictions: object, k: object, name: str | None = None) -> Tensor:
    """Return True for each row of predictions whose target is among the `k` largest.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.in_top_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1).tolist()
        [True, False]
    """
    count = known_integer(k, "k")
    chosen = convert_to_tensor(targets)

    def formula(scores: Any) -> Any:
        is_inside = (chosen >= 0) & (chosen < scores.shape[1])
        own = jnp.take_along_axis(scores, jnp.where(is_inside, chosen, 0)[:, None], axis=1)
        better = jnp.sum(scores > own, axis=1)
        return is_inside & jnp.isfinite(own[:, 0]) & (better < count)

    return apply("in_top_k", formula, predictions, accepts=REAL_FLOATS)


def searchsorted(
    sorted_sequence: object,
    values: object,
    side: str = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Return the places where values belong in a sorted sequence, along the last axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.searchsorted([1, 3, 5], [0, 3, 9]).tolist()
        [0, 1, 3]
    """
    if side not in ("left", "right"):
        raise ValueError(
            described(f"side must be left or right, but got {side!r}.", fix='pass side="left".')
        )

    def formula(ordered: Any, wanted: Any) -> Any:
        if ordered.shape[:-1] != wanted.shape[:-1]:
            raise InvalidArgumentError(
                f"searchsorted got a sequence of shape {tuple(ordered.shape)} and values of shape {tuple(wanted.shape)}.",
                fix="pass shapes that differ in the last axis only.",
            )
        search = jnp.vectorize(
            lambda one, two: jnp.searchsorted(one, two, side=side), signature="(n),(m)->(m)"
        )
        return in_dtype(search(ordered, wanted), out_type)

    return apply("searchsorted", formula, sorted_sequence, values, accepts=REALS)


def is_non_decreasing(x: object, name: str | None = None) -> Tensor:
    """Return True if no value is smaller than the one before it.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.is_non_decreasing([1, 1, 2]).tolist()
        True
    """
    return apply(
        "is_non_decreasing", partial(_compares_neighbours, jnp.less_equal), x, accepts=REALS
    )


def is_strictly_increasing(x: object, name: str | None = None) -> Tensor:
    """Return True if every value is larger than the one before it.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.is_strictly_increasing([1, 1, 2]).tolist()
        False
    """
    return apply(
        "is_strictly_increasing", partial(_compares_neighbours, jnp.less), x, accepts=REALS
    )


def _compares_neighbours(holds: Any, tensor: Any) -> Any:
    """Return True if `holds` is true for each value and the next one. Their difference may overflow."""
    values = tensor.reshape(-1)
    return jnp.all(holds(values[:-1], values[1:]))


def _falls(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            described(f"Unknown direction {direction!r}.", fix="pass ASCENDING or DESCENDING.")
        )
    return direction == "DESCENDING"
