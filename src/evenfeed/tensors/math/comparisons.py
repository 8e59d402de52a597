"""Comparisons, and what to do with their bools: `equal`, `less`, `logical_and` and so on."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in

from typing import Any

import numpy as np

from evenfeed.core.handles import Handle
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.text.text_values import compared, unlike_shapes
from evenfeed.tensors.creation import Tensor, convert_together
from evenfeed.tensors.device_arrays import stays_on_host
from evenfeed.tensors.exact_numbers import stay_on_host
from evenfeed.tensors.operands import (
    BOOLS,
    REALS,
    converted_together,
    elementwise,
    evaluated_if_known,
    is_text,
    shaped_by,
)


def equal(x: object, y: object, name: str | None = None) -> Tensor:
    """Compare elementwise with `==`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.equal([1, 2], [1, 3]).tolist()
        [True, False]
        >>> tf.equal(["a", "b"], "b").tolist()
        [False, True]
    """
    return shaped_by(_compared(x, y, equal=True), x, y)


def not_equal(x: object, y: object, name: str | None = None) -> Tensor:
    """Compare elementwise with `!=`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.not_equal(["a", "b"], "b").tolist()
        [True, False]
    """
    return shaped_by(_compared(x, y, equal=False), x, y)


def greater(x: object, y: object, name: str | None = None) -> Tensor:
    """Compare elementwise with `>`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.greater([1, 5], 3).tolist()
        [False, True]
    """
    return elementwise("greater", jnp.greater, x, y, accepts=REALS)


def greater_equal(x: object, y: object, name: str | None = None) -> Tensor:
    """Compare elementwise with `>=`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.greater_equal([1, 3], 3).tolist()
        [False, True]
    """
    return elementwise("greater_equal", jnp.greater_equal, x, y, accepts=REALS)


def less(x: object, y: object, name: str | None = None) -> Tensor:
    """Compare elementwise with `<`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.less([1, 5], 3).tolist()
        [True, False]
    """
    return elementwise("less", jnp.less, x, y, accepts=REALS)


def less_equal(x: object, y: object, name: str | None = None) -> Tensor:
    """Compare elementwise with `<=`, with broadcasting.

    Examples:
        >>> import evenfeed as tf
        >>> tf.less_equal([1, 3], 3).tolist()
        [True, True]
    """
    return elementwise("less_equal", jnp.less_equal, x, y, accepts=REALS)


def logical_and(x: object, y: object, name: str | None = None) -> Tensor:
    """Return True where both are.

    Examples:
        >>> import evenfeed as tf
        >>> tf.logical_and([True, True], [True, False]).tolist()
        [True, False]
    """
    return elementwise("logical_and", jnp.logical_and, x, y, accepts=BOOLS)


def logical_or(x: object, y: object, name: str | None = None) -> Tensor:
    """Return True where one or both are.

    Examples:
        >>> import evenfeed as tf
        >>> tf.logical_or([True, False], [True, False]).tolist()
        [True, False]
    """
    return elementwise("logical_or", jnp.logical_or, x, y, accepts=BOOLS)


def logical_xor(x: object, y: object, name: str | None = None) -> Tensor:
    """Return True where exactly one of both is.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.logical_xor([True, True], [True, False]).tolist()
        [False, True]
    """
    return elementwise("logical_xor", jnp.logical_xor, x, y, accepts=BOOLS)


def logical_not(x: object, name: str | None = None) -> Tensor:
    """Return the opposite of each bool.

    Examples:
        >>> import evenfeed as tf
        >>> tf.logical_not([True, False]).tolist()
        [False, True]
    """
    return elementwise("logical_not", jnp.logical_not, x, accepts=BOOLS)


def _compared(x: object, y: object, *, equal: bool) -> Any:
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Handle) and one.is_text:
            return one.compared(other, equal=equal)
    if isinstance(x, RaggedTensor) or isinstance(y, RaggedTensor):
        return x == y if equal else x != y
    given = converted_together([x, y]) if stays_on_host() else []
    on_host = bool(given) and stay_on_host(given) and not any(map(is_text, given))
    left, right = given if on_host else convert_together([x, y])
    try:
        np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        raise unlike_shapes(left.shape, right.shape) from None
    if is_text(left):
        return jnp.asarray(compared(np.asarray(left), right, equal=equal))
    if on_host:
        return computed_tensor((np.equal if equal else np.not_equal)(left, right))
    with evaluated_if_known([left, right]):
        return jnp.equal(left, right) if equal else jnp.not_equal(left, right)
