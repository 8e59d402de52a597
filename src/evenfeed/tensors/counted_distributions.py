"""Gamma, Poisson and binomial random numbers. They are JAX's, not TensorFlow's, and follow from the same seeds."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.creation import DTypeLike, convert_to_tensor, static_shape
from evenfeed.tensors.device_arrays import asked_dtype, remembering
from evenfeed.tensors.randomness import uniform
from evenfeed.tensors.stateless_random import stateless_uniform


def gamma(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    alpha: object,
    beta: object = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Draw from gamma distributions: `shape` numbers for each pair of parameters.

    Args:
        shape: How many numbers for each pair; its axes come first in the result.
        alpha: The shape parameters.
        beta: The inverse scales; by default 1.
        dtype: A float dtype.
        seed: The seed of this call.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.gamma([3], alpha=[0.5, 1.5]).shape
        (3, 2)
    """
    a, b = _parameters(dtype, alpha, 1 if beta is None else beta)
    return _gamma(_key(seed), (*static_shape(shape), *a.shape), a, b, dtype)


def poisson(
    shape: object,
    lam: object,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Draw from Poisson distributions: `shape` numbers for each mean.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.poisson([3], lam=[0.5, 1.5]).shape
        (3, 2)
    """
    (mean,) = _parameters(dtypes.float32, lam)
    return _poisson(_key(seed), (*static_shape(shape), *mean.shape), mean, dtype)


def stateless_gamma(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    seed: object,
    alpha: object,
    beta: object = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Any:
    """Draw from gamma distributions, always the same numbers for a seed.

    Args:
        shape: The shape of the result, to which the parameters are broadcast.
        seed: Two integers.
        alpha: The shape parameters.
        beta: The inverse scales; by default 1.
        dtype: A float dtype.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> bool((tf.random.stateless_gamma([3], [1, 2], 0.5) > 0).all())
        True
    """
    a, b = _parameters(dtype, alpha, 1 if beta is None else beta)
    lengths = _broadcast("stateless_gamma", shape, a)
    return _gamma(_stateless_key(seed), lengths, a, b, dtype)


def stateless_poisson(
    shape: object,
    seed: object,
    lam: object,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Any:
    """Draw from Poisson distributions, always the same numbers for a seed.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.stateless_poisson([3, 2], [1, 2], lam=[4.0, 9.0]).shape
        (3, 2)
    """
    (mean,) = _parameters(dtypes.float32, lam)
    lengths = _broadcast("stateless_poisson", shape, mean)
    return _poisson(_stateless_key(seed), lengths, mean, dtype)


def stateless_binomial(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    seed: object,
    counts: object,
    probs: object,
    output_dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Any:
    """Draw from binomial distributions, always the same numbers for a seed.

    Args:
        shape: The shape of the result, to which the parameters are broadcast.
        seed: Two integers.
        counts: The numbers of trials.
        probs: The probabilities of success.
        output_dtype: The dtype of the result.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.stateless_binomial([3], [1, 2], counts=10.0, probs=1.0).tolist()
        [10, 10, 10]
    """
    trials, chances = _parameters(dtypes.float32, counts, probs)
    lengths = _broadcast("stateless_binomial", shape, trials)
    key = _stateless_key(seed)
    return _in_dtype(jax.random.binomial(key, trials, chances, lengths), output_dtype)


def _key(seed: int | None) -> Any:
    """Return a key of JAX from the numbers that the program draws at this place."""
    return jax.random.wrap_key_data(uniform([2], 0, 2**31 - 1, dtypes.int32, seed).astype("uint32"))


def _stateless_key(seed: object) -> Any:
    words: Any = convert_to_tensor(stateless_uniform([2], seed, None, None, dtypes.uint32))
    return jax.random.wrap_key_data(words)


def _parameters(dtype: DTypeLike, *given: object) -> list[Any]:
    """Return the parameters as floats of one shape."""
    held = asked_dtype(dtype)
    return list(
        jnp.broadcast_arrays(*(jnp.asarray(convert_to_tensor(each), held) for each in given))
    )


def _broadcast(function: str, shape: object, parameters: Any) -> tuple[int, ...]:
    lengths = static_shape(shape)
    try:
        fits = np.broadcast_shapes(lengths, parameters.shape) == lengths
    except ValueError:
        fits = False
    if not fits:
        raise InvalidArgumentError(
            f"{function} cannot broadcast parameters of shape {tuple(parameters.shape)} to {lengths}.",
            fix="pass a shape that ends with the shape of the parameters.",
        )
    return lengths


def _gamma(key: Any, lengths: tuple[int, ...], a: Any, b: Any, dtype: DTypeLike) -> Any:
    found = jax.random.gamma(key, a, lengths, a.dtype) / b
    return remembering(found, dtypes.as_dtype(dtype))


def _poisson(key: Any, lengths: tuple[int, ...], mean: Any, dtype: DTypeLike) -> Any:
    return _in_dtype(jax.random.poisson(key, mean, lengths), dtype)


def _in_dtype(found: Any, dtype: DTypeLike) -> Any:
    return remembering(found.astype(asked_dtype(dtype)), dtypes.as_dtype(dtype))
