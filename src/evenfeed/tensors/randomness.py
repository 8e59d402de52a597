"""Random tensors: `uniform` and `normal`, drawn by jax.random from the seeds of `set_seed`."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

from functools import partial
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.seeds import OperationSeed, calling, draw, operation_seed
from evenfeed.tensors.creation import DTypeLike, convert_to_tensor, static_shape, whole_numbers
from evenfeed.tensors.device_arrays import asked_dtype, is_traced, is_tracing

_FLOATS: Final = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_INTEGERS: Final = (dtypes.int32, dtypes.int64)

# The mesh axis over which replicas run side by side (see ARCHITECTURE.md).


def uniform(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    minval: object = 0,
    maxval: object = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> "jax.Array":
    """Draw uniform random numbers from `minval` up to `maxval`, exclusive.

    Args:
        shape: The shape of the result.
        minval: The lower bound, inclusive; for floats it may be a tensor.
        maxval: The upper bound, exclusive. The default is 1 for floats; integers need it.
        dtype: A float dtype, int32 or int64.
        seed: Makes the sequence of this operation reproducible, together with `set_seed`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> dice = tf.random.uniform([100], 1, 7, tf.int32)
        >>> set(dice.tolist()) <= {1, 2, 3, 4, 5, 6}
        True
    """
    asked = dtypes.as_dtype(dtype)
    if asked not in (*_FLOATS, *_INTEGERS):
        raise ValueError(_not_drawn(asked))
    lengths, held = _vector(shape), asked_dtype(dtype)
    if asked in _INTEGERS:
        return _uniform_integers(lengths, _integer_bounds(minval, maxval, held), held, seed)
    low, high = _number(minval, held), _number(1 if maxval is None else maxval, held)
    return jax.random.uniform(_key("uniform", seed), lengths, held) * (high - low) + low


def normal(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    mean: object = 0.0,
    stddev: object = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> "jax.Array":
    """Draw numbers from a normal distribution.

    Args:
        shape: The shape of the result, before `mean` and `stddev` broadcast with it.
        mean: The mean of the distribution, which may be a tensor.
        stddev: The standard deviation, which may be a tensor.
        dtype: A float dtype.
        seed: Makes the sequence of this operation reproducible, together with `set_seed`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.normal([2, 3]).shape
        (2, 3)
        >>> tf.random.normal([2], mean=5.0, stddev=0.0).tolist()
        [5.0, 5.0]
    """
    asked = dtypes.as_dtype(dtype)
    if asked not in _FLOATS:
        kind = InvalidArgumentError if asked.kind == "c" else TypeError
        raise kind(f"normal draws floats, but dtype is {dtypes.name_of(asked)}.")
    lengths, held = _vector(shape), asked_dtype(dtype)
    center, width = _number(mean, held), _number(stddev, held)
    return jax.random.normal(_key("normal", seed), lengths, held) * width + center


def _uniform_integers(
    shape: tuple[int, ...], bounds: tuple[Any, Any], held: DType, seed: int | None
) -> "jax.Array":
    return jax.random.randint(_key("uniform", seed), shape, *bounds, held)


def _integer_bounds(minval: object, maxval: object, held: DType) -> tuple[Any, Any]:
    if minval is None or maxval is None:
        raise ValueError(
            described(
                f"uniform needs maxval for {held.name}: integers have no default range.",
                fix="pass maxval; it is exclusive.",
            )
        )
    low, high = _number(minval, held), _number(maxval, held)
    if low.ndim or high.ndim:
        raise InvalidArgumentError(
            f"minval and maxval of integers must be single numbers, but got "
            f"{shortened(minval)} and {shortened(maxval)}.",
            fix="draw each range separately and stack the results.",
        )
    known = not is_traced(low) and not is_traced(high)
    if known and not int(low) < int(high):
        raise InvalidArgumentError(
            f"minval must be below maxval, but got {low} and {high}.",
            fix="pass a maxval that is one above the highest number to draw.",
        )
    return low, high


def _number(value: object, held: DType) -> Any:
    return convert_to_tensor(value, held)


def _vector(shape: object) -> tuple[int, ...]:
    lengths = whole_numbers(shape)
    if lengths is None or lengths.ndim != 1:
        raise InvalidArgumentError(
            f"A shape must be a vector of lengths, but got {shortened(shape)}.",
            fix="pass the length of each axis, for example [2, 3].",
        )
    return static_shape(shape)


def _not_drawn(dtype: DType) -> str:
    drawn = ", ".join(known.name for known in (*_FLOATS, *_INTEGERS))
    return described(
        f"uniform draws {drawn}, but dtype is {dtypes.name_of(dtype)}.",
        fix="draw one of those, and convert it with evenfeed.cast.",
    )


def _key(kind: str, seed: int | None) -> "jax.Array":
    """Return a new key; in a compiled function, a new one each time it runs."""
    watcher = side_effects.here.watcher
    if watcher is not None:
        watcher.draw()
    operation = operation_seed(seed)
    if is_tracing():
        words = _words_at_run_time(kind, operation)
    else:
        words = jnp.asarray(_words(draw(kind, operation, counted=seed is not None)))
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _words_at_run_time(kind: str, operation: OperationSeed | None) -> "jax.Array":
    calling.traced_draws += 1
    ask: Any = jax.experimental.io_callback  # pyright: ignore[reportAttributeAccessIssue]
    answer = jax.ShapeDtypeStruct((2,), dtypes.uint32)
    return ask(partial(_next_words, kind, operation), answer, _lane())


def _next_words(kind: str, operation: OperationSeed | None, lane: Any) -> Array:
    return _words(draw(kind, operation, lane=int(lane)))


def _words(words: tuple[int, int]) -> Array:
    return np.array(words, dtypes.uint32)


def _lane() -> Any:
    """Return the index of the running replica. Each has its own sequence, in whatever order they run."""
    return 0 if calling.replica_index is None else calling.replica_index()
