"""Random tensors, drawn from the seeds of `set_seed`: `uniform`, `normal`, `shuffle` and others."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import math
from functools import partial
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.core.randomness import philox
from evenfeed.core.randomness.drawn_columns import RandomOperation, TracedStream
from evenfeed.core.randomness.philox import Stream, stream_of_words
from evenfeed.core.randomness.seeds import (
    OperationSeed,
    calling,
    draw,
    operation_seed,
    reserve,
    seed_words,
)
from evenfeed.tensors.creation import DTypeLike, convert_to_tensor
from evenfeed.tensors.device_arrays import is_tracing
from evenfeed.tensors.distributions import (
    Source,
    categories_of,
    normal_of,
    shuffled_by,
    uniform_of,
)

_LOW_32: Final = 2**32 - 1


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
    if minval is None and dtypes.as_dtype(dtype).kind in "iu":
        raise ValueError(
            described(
                f"uniform needs minval for {dtypes.name_of(dtypes.as_dtype(dtype))}, but got None.",
                fix="pass minval and maxval; evenfeed.random.stateless_uniform draws from the whole range.",
            )
        )
    return uniform_of(_source("uniform", dtype, seed), shape, minval, maxval, dtype)


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
    return normal_of(_source("normal", dtype, seed), shape, mean, stddev, dtype)


def truncated_normal(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    mean: object = 0.0,
    stddev: object = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> "jax.Array":
    """Draw normal numbers that are less than 2 standard deviations from the mean.

    The arguments are those of `normal`.

    Examples:
        >>> import evenfeed as tf
        >>> bool(abs(tf.random.truncated_normal([1000])).max() < 2)
        True
    """
    source = _source("truncated_normal", dtype, seed)
    return normal_of(source, shape, mean, stddev, dtype, draw=philox.truncated_normals)


def categorical(
    logits: object,
    num_samples: object,
    dtype: DTypeLike = dtypes.int64,
    seed: int | None = None,
    name: str | None = None,
) -> "jax.Array":
    """Draw classes.

    Args:
        logits: For each row, the logarithm of the probability of each class, up to a constant.
        num_samples: The number of draws for each row.
        dtype: int32 or int64.
        seed: Makes the sequence of this operation reproducible, together with `set_seed`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.categorical([[0.0, -100.0]], 3, dtype=tf.int32).tolist()
        [[0, 0, 0]]
    """
    return categories_of(_source("categorical", dtype, seed), logits, num_samples, dtype)


def shuffle(value: object, seed: int | None = None, name: str | None = None) -> Any:
    """Return a tensor with its first axis in a random order.

    Args:
        value: A tensor with at least one axis; it may be of text.
        seed: Makes the sequence of this operation reproducible, together with `set_seed`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> sorted(tf.random.shuffle([1, 2, 3]).tolist())
        [1, 2, 3]
    """
    tensor = convert_to_tensor(value)
    return shuffled_by(_source("shuffle", tensor.dtype, seed, blocks_each=0.25), tensor)


def _source(
    kind: str, dtype: object, seed: int | None, blocks_each: float = philox.RESERVED_BLOCKS
) -> Source:
    """Return the source of an operation's numbers.

    Outside compiled functions, the numbers of an operation with a seed are TensorFlow's: a stream for each operation with its seeds,
    in which each call reserves some blocks for each number.
    """
    name = f"{kind} {dtypes.name_of(dtypes.as_dtype(dtype))}"

    def stream(count: int) -> Stream | TracedStream:
        watcher = side_effects.here.watcher
        operation, blocks = operation_seed(seed), math.ceil(count * blocks_each)
        if calling.call is not None and watcher is not None and _draws_columns(watcher):
            place = calling.call.place
            return TracedStream(jnp, RandomOperation(place, name, operation, blocks))
        if watcher is not None:
            watcher.draw()
        if is_tracing():
            return _keyed(jnp, _words_at_run_time(name, operation))
        if operation is None or operation[1] < 0:  # its place in a function of a dataset
            return _keyed(np, _words(draw(name, operation, counted=seed is not None)))
        at = reserve(name, operation, blocks if seed is not None else 0)
        return _eager(operation, at)

    return stream


def _draws_columns(watcher: side_effects.Watcher) -> bool:
    """Return True if the function of a dataset is traced, and the running code is not inside another transformation."""
    if not watcher.draws_columns:
        return False
    if watcher.rest is None:  # JAX was not loaded when the function was called
        return not is_tracing()
    return watcher.rest == jax_extend_core.get_opaque_trace_state()


def _keyed(xp: Any, key: Any) -> Stream:
    return stream_of_words(xp, xp.concatenate([xp.zeros(4, dtypes.uint32), key]))


def _eager(operation: OperationSeed, at: int) -> Stream:
    first, second = seed_words(operation)
    words = [at & _LOW_32, at >> 32, second, 0, first, 0]
    return stream_of_words(np, np.array(words, dtypes.uint32))


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
    """Return the index of the running replica, or device of a shard_map. Each has its own sequence, in any order."""
    if calling.replica_index is not None:
        return calling.replica_index()
    axes = jax.sharding.get_abstract_mesh().manual_axes
    return jax.lax.axis_index(axes) if axes else 0
