"""Angles and hyperbolic functions: `sin`, `atan2`, `tanh` and so on."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in

from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.operands import FLOATS, REAL_FLOATS, elementwise


def sin(x: object, name: str | None = None) -> Tensor:
    """Return the sine of each angle in radians.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sin([0.0]).tolist()
        [0.0]
    """
    return elementwise("sin", jnp.sin, x, accepts=FLOATS)


def cos(x: object, name: str | None = None) -> Tensor:
    """Return the cosine of each angle in radians.

    Examples:
        >>> import evenfeed as tf
        >>> tf.cos([0.0]).tolist()
        [1.0]
    """
    return elementwise("cos", jnp.cos, x, accepts=FLOATS)


def tan(x: object, name: str | None = None) -> Tensor:
    """Return the tangent of each angle in radians.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tan([0.0]).tolist()
        [0.0]
    """
    return elementwise("tan", jnp.tan, x, accepts=FLOATS)


def asin(x: object, name: str | None = None) -> Tensor:
    """Return the angle in radians whose sine is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.asin([0.0]).tolist()
        [0.0]
    """
    return elementwise("asin", jnp.arcsin, x, accepts=FLOATS)


def acos(x: object, name: str | None = None) -> Tensor:
    """Return the angle in radians whose cosine is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.acos([1.0]).tolist()
        [0.0]
    """
    return elementwise("acos", jnp.arccos, x, accepts=FLOATS)


def atan(x: object, name: str | None = None) -> Tensor:
    """Return the angle in radians whose tangent is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.atan([0.0]).tolist()
        [0.0]
    """
    return elementwise("atan", jnp.arctan, x, accepts=FLOATS)


def sinh(x: object, name: str | None = None) -> Tensor:
    """Return the hyperbolic sine of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sinh([0.0]).tolist()
        [0.0]
    """
    return elementwise("sinh", jnp.sinh, x, accepts=FLOATS)


def cosh(x: object, name: str | None = None) -> Tensor:
    """Return the hyperbolic cosine of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.cosh([0.0]).tolist()
        [1.0]
    """
    return elementwise("cosh", jnp.cosh, x, accepts=FLOATS)


def tanh(x: object, name: str | None = None) -> Tensor:
    """Return the hyperbolic tangent of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tanh([0.0]).tolist()
        [0.0]
    """
    return elementwise("tanh", jnp.tanh, x, accepts=FLOATS)


def asinh(x: object, name: str | None = None) -> Tensor:
    """Return the value whose hyperbolic sine is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.asinh([0.0]).tolist()
        [0.0]
    """
    return elementwise("asinh", jnp.arcsinh, x, accepts=FLOATS)


def acosh(x: object, name: str | None = None) -> Tensor:
    """Return the value whose hyperbolic cosine is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.acosh([1.0]).tolist()
        [0.0]
    """
    return elementwise("acosh", jnp.arccosh, x, accepts=FLOATS)


def atanh(x: object, name: str | None = None) -> Tensor:
    """Return the value whose hyperbolic tangent is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.atanh([0.0]).tolist()
        [0.0]
    """
    return elementwise("atanh", jnp.arctanh, x, accepts=FLOATS)


def atan2(y: object, x: object, name: str | None = None) -> Tensor:
    """Return the angle in radians of the point (x, y).

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.atan2(1.0, 1.0):.4f}"
        '0.7854'
    """
    return elementwise("atan2", jnp.arctan2, y, x, accepts=REAL_FLOATS)
