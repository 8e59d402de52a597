"""Activation functions: `relu`, `gelu`, `softmax` and so on."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Callable
from functools import partial
from typing import Any

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged import ragged_mapping
from evenfeed.tensors.axes import axis_of
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.exact_numbers import exact_positive
from evenfeed.tensors.math.kept_nan import keeping_nan
from evenfeed.tensors.operands import REAL_FLOATS, REALS, apply, elementwise, in_dtype, shaped_by
from evenfeed.tensors.ragged_dispatch import for_ragged


def relu(features: object, name: str | None = None) -> Tensor:
    """Return each value, and 0 for negative ones.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.relu([-1.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    return elementwise("relu", _relu, features, accepts=REALS, host=exact_positive)


def relu6(features: object, name: str | None = None) -> Tensor:
    """Return each value, at least 0 and at most 6.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.relu6([-1.0, 2.0, 9.0]).tolist()
        [0.0, 2.0, 6.0]
    """
    return elementwise("relu6", _relu6, features, accepts=REALS)


def leaky_relu(features: object, alpha: object = 0.2, name: str | None = None) -> Tensor:
    """Return each value, and negative ones times `alpha`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.leaky_relu([-1.0, 2.0], alpha=0.5).tolist()
        [-0.5, 2.0]
    """
    slope = convert_to_tensor(alpha)

    def formula(x: Any) -> Any:
        floats = in_dtype(x, dtypes.float32) if x.dtype.kind in "iu" else x
        return jnp.where(floats > 0, floats, floats * slope.astype(floats.dtype))

    return elementwise("leaky_relu", formula, features, accepts=REALS)


def elu(features: object, name: str | None = None) -> Tensor:
    """Return each value, and `exp(x) - 1` for negative ones.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.elu([0.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    return elementwise("elu", jax.nn.elu, features, accepts=REAL_FLOATS)


def selu(features: object, name: str | None = None) -> Tensor:
    """Return the scaled exponential linear unit of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.selu([0.0]).tolist()
        [0.0]
    """
    return elementwise("selu", _selu, features, accepts=REAL_FLOATS)


def gelu(features: object, approximate: bool = False, name: str | None = None) -> Tensor:
    """Return each value times the probability that a normal variable is below it.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.gelu(1.0):.4f}"
        '0.8413'
    """
    formula = partial(jax.nn.gelu, approximate=bool(approximate))
    return elementwise("gelu", formula, features, accepts=REAL_FLOATS)


def silu(features: object, beta: object = 1.0) -> Tensor:
    """Return each value times its sigmoid: `x * sigmoid(beta * x)`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.silu(1.0):.4f}"
        '0.7311'
    """

    def formula(x: Any, scale: Any) -> Any:
        return x * jax.nn.sigmoid(scale * x)

    return elementwise("silu", formula, features, beta, accepts=REAL_FLOATS)


def crelu(features: object, axis: object = -1, name: str | None = None) -> Tensor:
    """Return the relu of the values and of their negatives, joined along `axis`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.crelu([-1.0, 2.0]).tolist()
        [0.0, 2.0, 1.0, 0.0]
    """

    def formula(x: Any) -> Any:
        return _relu(jnp.concatenate([x, -x], axis_of(x.ndim, axis)))

    return apply("crelu", formula, features, accepts=REALS)


@for_ragged(ragged_mapping.softmax)
def softmax(logits: object, axis: object = None, name: str | None = None) -> Tensor:
    """Return probabilities along `axis`, by default the last: `exp(x) / sum(exp(x))`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.softmax([0.0, 0.0]).tolist()
        [0.5, 0.5]
    """
    return _along_axis("softmax", jax.nn.softmax, logits, axis)


def log_softmax(logits: object, axis: object = None, name: str | None = None) -> Tensor:
    """Return the logarithm of the softmax along `axis`, by default the last.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.nn.log_softmax([0.0, 0.0])[0]:.4f}"
        '-0.6931'
    """
    return _along_axis("log_softmax", jax.nn.log_softmax, logits, axis)


def bias_add(
    value: object, bias: object, data_format: object = None, name: str | None = None
) -> Tensor:
    """Add one number to each channel.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.bias_add([[1, 2]], [10, 20]).tolist()
        [[11, 22]]
    """
    channels_first = data_format is not None and str(data_format).startswith("NC")

    def formula(x: Any, each: Any) -> Any:
        if each.ndim != 1 or x.ndim < 2 or x.shape[1 if channels_first else -1] != each.shape[0]:
            raise InvalidArgumentError(
                f"A bias of shape {tuple(each.shape)} does not fit the shape {tuple(x.shape)}.",
                fix="pass a vector with a number for each channel.",
            )
        return x + (each.reshape(-1, *(1,) * (x.ndim - 2)) if channels_first else each)

    return apply("bias_add", formula, value, bias)


def _relu(x: Any) -> Any:
    # The gradient of jax.nn.relu at 0 is 0, as in TensorFlow; that of jnp.maximum is 0.5.
    return keeping_nan(jax.nn.relu(x), x)


def _relu6(x: Any) -> Any:
    positive = _relu(x)
    return jnp.where(positive >= 6, jnp.asarray(6, positive.dtype), positive)


def _selu(x: Any) -> Any:
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    # At 0 the gradient is that of positive values, as in TensorFlow.
    return scale * jnp.where(x >= 0, x, alpha * jnp.expm1(jnp.where(x >= 0, 0.0, x)))


def _along_axis(function: str, formula: Callable[..., Any], logits: object, axis: object) -> Any:
    def along(x: Any) -> Any:
        return formula(x, axis=axis_of(x.ndim, -1 if axis is None else axis))

    return shaped_by(apply(function, along, logits, accepts=REAL_FLOATS), logits)
