"""Functions of each value alone: `abs`, `exp`, `sqrt`, `round`, `is_nan` and so on."""

# ruff: noqa: A001, A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.operands import FLOATS, REAL_FLOATS, elementwise, in_dtype


def abs(x: object, name: str | None = None) -> Tensor:
    """Return the absolute value of each value; of a complex number, its length.

    Examples:
        >>> import evenfeed as tf
        >>> tf.abs([-1, 2]).tolist()
        [1, 2]
    """
    return elementwise("abs", _abs, x, host=np.abs)


def negative(x: object, name: str | None = None) -> Tensor:
    """Return each value with the other sign.

    Examples:
        >>> import evenfeed as tf
        >>> tf.negative([1, -2]).tolist()
        [-1, 2]
    """
    return elementwise("negative", jnp.negative, x)


def sign(x: object, name: str | None = None) -> Tensor:
    """Return -1, 0 or 1 for each value; for a complex number, the number of length 1 in its direction.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sign([-2.0, 0.0, 3.0]).tolist()
        [-1.0, 0.0, 1.0]
    """
    return elementwise("sign", jnp.sign, x)


def square(x: object, name: str | None = None) -> Tensor:
    """Square every value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.square([1, -2, 3]).tolist()
        [1, 4, 9]
    """
    return elementwise("square", jnp.square, x)


def sqrt(x: object, name: str | None = None) -> Tensor:
    """Return the square root of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sqrt([4.0, 9.0]).tolist()
        [2.0, 3.0]
    """
    return elementwise("sqrt", jnp.sqrt, x, accepts=FLOATS)


def rsqrt(x: object, name: str | None = None) -> Tensor:
    """Return 1 divided by the square root of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.rsqrt([4.0, 16.0]).tolist()
        [0.5, 0.25]
    """
    return elementwise("rsqrt", jax.lax.rsqrt, x, accepts=FLOATS)


def reciprocal(x: object, name: str | None = None) -> Tensor:
    """Return 1 divided by each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.reciprocal([2.0, -4.0]).tolist()
        [0.5, -0.25]
    """
    return elementwise("reciprocal", jnp.reciprocal, x, accepts=FLOATS)


def reciprocal_no_nan(x: object, name: str | None = None) -> Tensor:
    """Return 1 divided by each value, and 0 for 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.reciprocal_no_nan([2.0, 0.0]).tolist()
        [0.5, 0.0]
    """
    return elementwise("reciprocal_no_nan", _reciprocal_or_zero, x, accepts=FLOATS)


def exp(x: object, name: str | None = None) -> Tensor:
    """Return e to the power of each value.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.exp(1.0):.4f}"
        '2.7183'
    """
    return elementwise("exp", jnp.exp, x, accepts=FLOATS)


def expm1(x: object, name: str | None = None) -> Tensor:
    """Return `exp(x) - 1`, exact for small values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.expm1([0.0]).tolist()
        [0.0]
    """
    return elementwise("expm1", jnp.expm1, x, accepts=FLOATS)


def log(x: object, name: str | None = None) -> Tensor:
    """Return the natural logarithm of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.log([1.0]).tolist()
        [0.0]
    """
    return elementwise("log", jnp.log, x, accepts=FLOATS)


def log1p(x: object, name: str | None = None) -> Tensor:
    """Return `log(1 + x)`, exact for small values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.log1p([0.0]).tolist()
        [0.0]
    """
    return elementwise("log1p", jnp.log1p, x, accepts=FLOATS)


def round(x: object, name: str | None = None) -> Tensor:
    """Round each value to the nearest integer, and halves to the even one. The dtype stays the same.

    Examples:
        >>> import evenfeed as tf
        >>> tf.round([0.5, 1.5, -2.7]).tolist()
        [0.0, 2.0, -3.0]
    """
    return elementwise("round", jnp.round, x, host=np.rint)


def rint(x: object, name: str | None = None) -> Tensor:
    """Round each float to the nearest integer, and halves to the even one.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.rint([0.5, 1.5, -2.7]).tolist()
        [0.0, 2.0, -3.0]
    """
    return elementwise("rint", jnp.rint, x, accepts=REAL_FLOATS)


def floor(x: object, name: str | None = None) -> Tensor:
    """Round each value down.

    Examples:
        >>> import evenfeed as tf
        >>> tf.floor([1.7, -1.2]).tolist()
        [1.0, -2.0]
    """
    return elementwise("floor", jnp.floor, x, accepts=REAL_FLOATS)


def ceil(x: object, name: str | None = None) -> Tensor:
    """Round each value up.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.ceil([1.2, -1.7]).tolist()
        [2.0, -1.0]
    """
    return elementwise("ceil", jnp.ceil, x, accepts=REAL_FLOATS)


def sigmoid(x: object, name: str | None = None) -> Tensor:
    """Return `1 / (1 + exp(-x))` for each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sigmoid([0.0]).tolist()
        [0.5]
    """
    return elementwise("sigmoid", jax.nn.sigmoid, x, accepts=FLOATS)


def log_sigmoid(x: object, name: str | None = None) -> Tensor:
    """Return the logarithm of the sigmoid of each value.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.log_sigmoid(0.0):.4f}"
        '-0.6931'
    """
    return elementwise("log_sigmoid", jax.nn.log_sigmoid, x, accepts=REAL_FLOATS)


def softplus(features: object, name: str | None = None) -> Tensor:
    """Return `log(exp(x) + 1)` for each value: a smooth relu.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.softplus(0.0):.4f}"
        '0.6931'
    """
    return elementwise("softplus", jax.nn.softplus, features, accepts=REAL_FLOATS)


def softsign(features: object, name: str | None = None) -> Tensor:
    """Return `x / (abs(x) + 1)` for each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.softsign([1.0, -3.0]).tolist()
        [0.5, -0.75]
    """
    return elementwise("softsign", jax.nn.soft_sign, features, accepts=REAL_FLOATS)


def is_nan(x: object, name: str | None = None) -> Tensor:
    """Return True for each value that is not a number.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.is_nan([1.0, float("nan")]).tolist()
        [False, True]
    """
    return elementwise("is_nan", jnp.isnan, x, accepts=REAL_FLOATS)


def is_inf(x: object, name: str | None = None) -> Tensor:
    """Return True for each infinite value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.is_inf([1.0, float("-inf")]).tolist()
        [False, True]
    """
    return elementwise("is_inf", jnp.isinf, x, accepts=REAL_FLOATS)


def is_finite(x: object, name: str | None = None) -> Tensor:
    """Return True for each value that is neither infinite nor NaN.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.is_finite([1.0, float("inf")]).tolist()
        [True, False]
    """
    return elementwise("is_finite", jnp.isfinite, x, accepts=REAL_FLOATS)


def conj(x: object, name: str | None = None) -> Tensor:
    """Return the complex conjugate of each value. Real numbers stay the same.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.conj([1 + 2j]).tolist()
        [(1-2j)]
    """
    return elementwise("conj", jnp.conj, x)


def real(input: object, name: str | None = None) -> Tensor:
    """Return the real part of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.real([1 + 2j]).tolist()
        [1.0]
    """
    return elementwise("real", jnp.real, input)


def imag(input: object, name: str | None = None) -> Tensor:
    """Return the imaginary part of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.imag([1 + 2j]).tolist()
        [2.0]
    """
    return elementwise("imag", _imaginary, input)


def angle(input: object, name: str | None = None) -> Tensor:
    """Return the angle of each complex number, in radians; of a real one, 0 or pi.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.angle([1.0, -1.0]).tolist()
        [0.0, 3.1415927410125732]
    """
    return elementwise("angle", _angle, input, accepts=FLOATS)


def nextafter(x1: object, x2: object, name: str | None = None) -> Tensor:
    """Return the float after `x1` in the direction of `x2`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.nextafter([0.0], [0.0]).tolist()
        [0.0]
    """
    return elementwise("nextafter", jnp.nextafter, x1, x2, accepts=REAL_FLOATS)


def _reciprocal_or_zero(x: Any) -> Any:
    # Both branches are finite, so that the gradient at 0 is 0 and not NaN.
    is_zero = x == 0
    return jnp.where(is_zero, 0, jnp.reciprocal(jnp.where(is_zero, 1, x))).astype(x.dtype)


def _imaginary(x: Any) -> Any:
    return jnp.imag(x) if x.dtype.kind == "c" else in_dtype(jnp.zeros_like(x), x.dtype)


def _angle(x: Any) -> Any:
    if x.dtype.kind == "c":
        return jnp.angle(x)
    return in_dtype(jnp.where(x < 0, np.pi, 0), x.dtype)


def _abs(x: Any) -> Any:
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.abs(x)
    # The gradient at 0 is 0, as in TensorFlow; JAX's is 1.
    return jnp.where(x == 0, jnp.abs(jax.lax.stop_gradient(x)), jnp.abs(x))
