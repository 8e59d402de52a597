"""Losses: the cross entropies, `l2_loss` and `log_poisson_loss`."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.traced.index_checks import checked_index
from evenfeed.tensors.axes import axis_of
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.operands import INTEGERS, REAL_FLOATS, apply, check_dtypes, elementwise


def sigmoid_cross_entropy_with_logits(
    labels: object = None, logits: object = None, name: str | None = None
) -> Tensor:
    """Return the cross entropy of each label, 0 to 1, and the sigmoid of its logit.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.sigmoid_cross_entropy_with_logits(labels=1.0, logits=0.0):.4f}"
        '0.6931'
    """
    _check_given("sigmoid_cross_entropy_with_logits", labels, logits)

    def formula(x: Any, z: Any) -> Any:
        _check_same_shape("sigmoid_cross_entropy_with_logits", z, x)
        return jax.nn.softplus(x) - x * z  # its gradient is right at 0, too

    return elementwise(
        "sigmoid_cross_entropy_with_logits", formula, logits, labels, accepts=REAL_FLOATS
    )


def weighted_cross_entropy_with_logits(
    labels: object, logits: object, pos_weight: object, name: str | None = None
) -> Tensor:
    """Like `sigmoid_cross_entropy_with_logits`, with the part of the positive labels times `pos_weight`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.weighted_cross_entropy_with_logits(1.0, 0.0, 2.0):.4f}"
        '1.3863'
    """

    def formula(x: Any, z: Any, weight: Any) -> Any:
        scale = 1 + (weight - 1) * z
        return (1 - z) * x + scale * jax.nn.softplus(-x)

    return elementwise(
        "weighted_cross_entropy_with_logits",
        formula,
        logits,
        labels,
        pos_weight,
        accepts=REAL_FLOATS,
    )


def softmax_cross_entropy_with_logits(
    labels: object, logits: object, axis: object = -1, name: str | None = None
) -> Tensor:
    """Return the cross entropy of the labels, which are probabilities along `axis`, and the softmax of the logits.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.softmax_cross_entropy_with_logits([1.0, 0.0], [0.0, 0.0]):.4f}"
        '0.6931'
    """
    _check_given("softmax_cross_entropy_with_logits", labels, logits)

    def formula(x: Any, z: Any) -> Any:
        along = axis_of(x.ndim, axis)
        return -jnp.sum(z * jax.nn.log_softmax(x, axis=along), axis=along)

    return apply("softmax_cross_entropy_with_logits", formula, logits, labels, accepts=REAL_FLOATS)


def sparse_softmax_cross_entropy_with_logits(
    labels: object, logits: object, name: str | None = None
) -> Tensor:
    """Return the cross entropy of the labels, which are class numbers, and the softmax of the logits along the last axis.

    A label that is out of range is an error; in a compiled step, its loss is NaN.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[0.0, 0.0]])[0]:.4f}"
        '0.6931'
    """
    _check_given("sparse_softmax_cross_entropy_with_logits", labels, logits)
    classes = convert_to_tensor(labels)
    check_dtypes("Labels", [classes], INTEGERS)

    def formula(x: Any) -> Any:
        _check_classes(classes, x)
        inside = checked_index(classes, x.shape[-1])
        is_label = inside[..., None] == jnp.arange(x.shape[-1])
        found = -jnp.sum(jnp.where(is_label, jax.nn.log_softmax(x), 0), axis=-1)
        return jnp.where(jnp.any(is_label, axis=-1), found, jnp.nan).astype(x.dtype)

    return apply("sparse_softmax_cross_entropy_with_logits", formula, logits, accepts=REAL_FLOATS)


def log_poisson_loss(
    targets: object, log_input: object, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Return the loss of a Poisson distribution whose mean is `exp(log_input)`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.log_poisson_loss(1.0, 0.0):.4f}"
        '1.0000'
    """

    def formula(target: Any, x: Any) -> Any:
        loss = jnp.exp(x) - x * target
        if not compute_full_loss:
            return loss
        is_large = target > 1
        safe = jnp.where(is_large, target, 1)
        stirling = target * jnp.log(safe) - target + 0.5 * jnp.log(2 * np.pi * safe)
        return loss + jnp.where(is_large, stirling, 0)

    return elementwise("log_poisson_loss", formula, targets, log_input, accepts=REAL_FLOATS)


def l2_loss(t: object, name: str | None = None) -> Tensor:
    """Return half of the sum of the squares.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.l2_loss([3.0, 4.0]).tolist()
        12.5
    """
    return apply("l2_loss", lambda x: jnp.sum(x * x) / 2, t, accepts=REAL_FLOATS)


def _check_given(function: str, labels: object, logits: object) -> None:
    if labels is None or logits is None:
        raise ValueError(described(f"{function} needs labels and logits.", fix="pass both."))


def _check_same_shape(function: str, labels: Any, logits: Any) -> None:
    if labels.shape != logits.shape:
        raise ValueError(
            described(
                f"{function} needs labels and logits of one shape, but got {tuple(labels.shape)} "
                f"and {tuple(logits.shape)}.",
                fix="reshape one of them, for example with evenfeed.squeeze.",
            )
        )


def _check_classes(classes: Any, logits: Any) -> None:
    if classes.shape != logits.shape[:-1]:
        raise ValueError(
            described(
                f"Labels of shape {tuple(classes.shape)} do not fit logits of shape {tuple(logits.shape)}.",
                fix="pass one class number for each row; for probabilities, call softmax_cross_entropy_with_logits.",
            )
        )
    known = None if is_traced(classes) or not classes.size else np.asarray(classes)
    if known is not None and not 0 <= known.min() <= known.max() < logits.shape[-1]:
        raise InvalidArgumentError(
            f"Labels must be from 0 to {logits.shape[-1] - 1}, but got {known.min()} to {known.max()}.",
            fix="pass logits with an entry for each class.",
        )
