"""Functions that set a random part of their values to 0."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from evenfeed.core import dtypes
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor, is_on_device
from evenfeed.tensors.operands import REAL_FLOATS, apply, check_dtypes, shaped_by
from evenfeed.tensors.ragged_dispatch import for_flat_values
from evenfeed.tensors.randomness import uniform
from evenfeed.tensors.stateless_random import stateless_uniform


@for_flat_values
def dropout(
    x: object,
    rate: object,
    noise_shape: object = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Set a random part of the values to 0, and scale the others up by `1 / (1 - rate)`.

    Args:
        x: The values.
        rate: The part to set to 0, from 0 up to 1.
        noise_shape: The shape of the random choices, which broadcasts with the values.
        seed: Makes the sequence of this operation reproducible, together with `set_seed`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.dropout([1.0, 2.0], rate=0.0).tolist()
        [1.0, 2.0]
    """
    return _dropped(x, rate, noise_shape, partial(uniform, dtype=dtypes.float32, seed=seed))


@for_flat_values
def stateless_dropout(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    x: object,
    rate: object,
    seed: object,
    rng_alg: object = None,
    noise_shape: object = None,
    name: str | None = None,
) -> Tensor:
    """Like `dropout`, with choices that depend only on the seed.

    Args:
        x: The values.
        rate: The part to set to 0, from 0 up to 1.
        seed: Two integers.
        rng_alg: "philox" or "auto_select", which is the same.
        noise_shape: The shape of the random choices, which broadcasts with the values.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.experimental.stateless_dropout(tf.ones([5]), rate=0.5, seed=[1, 0]).tolist()
        [2.0, 0.0, 2.0, 0.0, 0.0]
    """
    algorithm = "auto_select" if rng_alg is None else rng_alg
    draw = partial(stateless_uniform, seed=seed, alg=algorithm)
    return general_dropout(x, rate, draw, noise_shape)


@for_flat_values
def general_dropout(
    x: object,
    rate: object,
    uniform_sampler: Callable[..., Any],
    noise_shape: object = None,
    name: str | None = None,
) -> Tensor:
    """Like `dropout`, with random numbers from a function.

    Args:
        x: The values.
        rate: The part to set to 0, from 0 up to 1.
        uniform_sampler: Draws numbers from 0 up to 1; called with `shape` and `dtype`, as `Generator.uniform`.
        noise_shape: The shape of the random choices, which broadcasts with the values.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> draw = tf.random.Generator.from_seed(7).uniform
        >>> tf.nn.experimental.general_dropout(tf.ones([5]), 0.5, draw).tolist()
        [0.0, 2.0, 2.0, 2.0, 2.0]
    """
    values = convert_to_tensor(x)
    return _dropped(x, rate, noise_shape, partial(uniform_sampler, dtype=values.dtype))


def _dropped(x: object, rate: object, noise_shape: object, draw: Callable[..., Any]) -> Tensor:
    values = convert_to_tensor(x)
    check_dtypes("dropout", [values], REAL_FLOATS)
    if not is_on_device(rate) and not 0 <= float(cast("Any", rate)) < 1:
        raise ValueError(
            described(f"rate must be from 0 up to 1, but got {rate}.", fix="pass a smaller rate.")
        )
    if not is_on_device(rate) and not rate:
        return values
    lengths = values.shape if noise_shape is None else _noise_lengths(noise_shape, values.shape)
    drawn = draw(shape=list(lengths))
    kept = drawn >= convert_to_tensor(rate, dtype_hint=drawn.dtype)

    def formula(tensor: Any, part: Any) -> Any:
        return jnp.where(kept, tensor / (1 - part), 0).astype(tensor.dtype)

    return shaped_by(apply("dropout", formula, values, rate, accepts=REAL_FLOATS), x)


def _noise_lengths(noise_shape: object, lengths: Sequence[int]) -> list[int]:
    asked = list(cast("Iterable[Any]", noise_shape))
    return [
        known_integer(n if one is None else one, "noise_shape")
        for one, n in zip(asked, lengths, strict=True)
    ]
