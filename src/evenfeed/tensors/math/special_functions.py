"""Special functions of mathematics: `erf`, `lgamma`, `bessel_i0` and so on."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in

from typing import Any

import numpy as np

from evenfeed.core.lazy_jax import jax, jax_special, jnp
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.operands import REAL_FLOATS, apply, elementwise


def erf(x: object, name: str | None = None) -> Tensor:
    """Return the error function of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.erf([0.0]).tolist()
        [0.0]
    """
    return elementwise("erf", jax_special.erf, x, accepts=REAL_FLOATS)


def erfc(x: object, name: str | None = None) -> Tensor:
    """Return 1 minus the error function of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.erfc([0.0]).tolist()
        [1.0]
    """
    return elementwise("erfc", jax_special.erfc, x, accepts=REAL_FLOATS)


def erfinv(x: object, name: str | None = None) -> Tensor:
    """Return the value whose error function is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.erfinv([0.0]).tolist()
        [0.0]
    """
    return elementwise("erfinv", jax_special.erfinv, x, accepts=REAL_FLOATS)


def erfcinv(x: object, name: str | None = None) -> Tensor:
    """Return the value whose complementary error function is `x`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.erfcinv(0.5):.4f}"
        '0.4769'
    """
    return elementwise("erfcinv", _erfcinv, x, accepts=REAL_FLOATS)


def ndtri(x: object, name: str | None = None) -> Tensor:
    """Return the value below which a normal variable is with probability `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.ndtri([0.5]).tolist()
        [0.0]
    """
    return elementwise("ndtri", jax_special.ndtri, x, accepts=REAL_FLOATS)


def lgamma(x: object, name: str | None = None) -> Tensor:
    """Return the logarithm of the absolute value of the gamma function.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.lgamma(5.0):.4f}"
        '3.1781'
    """
    return elementwise("lgamma", jax_special.gammaln, x, accepts=REAL_FLOATS)


def digamma(x: object, name: str | None = None) -> Tensor:
    """Return the derivative of `lgamma`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.digamma(1.0):.4f}"
        '-0.5772'
    """
    return elementwise("digamma", jax_special.digamma, x, accepts=REAL_FLOATS)


def bessel_i0(x: object, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of order 0.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.bessel_i0(0.0):.4f}"
        '1.0000'
    """
    return elementwise("bessel_i0", jax_special.i0, x, accepts=REAL_FLOATS)


def bessel_i0e(x: object, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of order 0, times `exp(-abs(x))`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.bessel_i0e(0.0):.4f}"
        '1.0000'
    """
    return elementwise("bessel_i0e", jax_special.i0e, x, accepts=REAL_FLOATS)


def bessel_i1(x: object, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of order 1.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.bessel_i1([0.0]).tolist()
        [0.0]
    """
    return elementwise("bessel_i1", jax_special.i1, x, accepts=REAL_FLOATS)


def bessel_i1e(x: object, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of order 1, times `exp(-abs(x))`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.bessel_i1e([0.0]).tolist()
        [0.0]
    """
    return elementwise("bessel_i1e", jax_special.i1e, x, accepts=REAL_FLOATS)


def polygamma(a: object, x: object, name: str | None = None) -> Tensor:
    """Return the `a`-th derivative of `digamma` at `x`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.polygamma(1.0, 1.0):.4f}"
        '1.6449'
    """
    return elementwise("polygamma", _polygamma, a, x, accepts=REAL_FLOATS)


def zeta(x: object, q: object, name: str | None = None) -> Tensor:
    """Return the Hurwitz zeta function.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.zeta(2.0, 1.0):.4f}"
        '1.6449'
    """
    return elementwise("zeta", jax_special.zeta, x, q, accepts=REAL_FLOATS)


def igamma(a: object, x: object, name: str | None = None) -> Tensor:
    """Return the lower regularized incomplete gamma function.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.igamma(1.0, 1.0):.4f}"
        '0.6321'
    """
    return elementwise("igamma", jax_special.gammainc, a, x, accepts=REAL_FLOATS)


def igammac(a: object, x: object, name: str | None = None) -> Tensor:
    """Return the upper regularized incomplete gamma function.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.igammac(1.0, 1.0):.4f}"
        '0.3679'
    """
    return elementwise("igammac", jax_special.gammaincc, a, x, accepts=REAL_FLOATS)


def betainc(a: object, b: object, x: object, name: str | None = None) -> Tensor:
    """Return the regularized incomplete beta function.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.betainc(1.0, 1.0, 0.25):.4f}"
        '0.2500'
    """
    return elementwise("betainc", _betainc, a, b, x, accepts=REAL_FLOATS)


def lbeta(x: object, name: str | None = None) -> Tensor:
    """Return the logarithm of the beta function of the values along the last axis.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.math.lbeta([1.0, 2.0]):.4f}"
        '-0.6931'
    """
    return apply("lbeta", _lbeta, x, accepts=REAL_FLOATS)


def _erfcinv(x: Any) -> Any:
    return -jax_special.ndtri(x * 0.5) * np.sqrt(0.5).astype(x.dtype)


def _polygamma(a: Any, x: Any) -> Any:
    # Formula 6.4.10 of Abramowitz and Stegun; the derivative of order 0 is digamma itself.
    sign = jnp.where(a % 2 == 0, -1, 1).astype(x.dtype)
    order = jnp.maximum(a, 1)
    derived = sign * jnp.exp(jax_special.gammaln(order + 1)) * jax_special.zeta(order + 1, x)
    found = jnp.where(a == 0, jax_special.digamma(x), derived)
    return jnp.where((a < 0) | (a != jnp.floor(a)), jnp.nan, found)


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return jax_special.betainc(jax.lax.stop_gradient(a), jax.lax.stop_gradient(b), x)


def _lbeta(x: Any) -> Any:
    return jax_special.gammaln(x).sum(axis=-1) - jax_special.gammaln(x.sum(axis=-1))
