"""Random tensors from a stream of random words. `tf.random`'s three kinds of functions choose the stream."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeAlias

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.randomness import philox
from evenfeed.core.randomness.drawn_columns import TracedStream
from evenfeed.core.randomness.philox import Draw, Stream
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.creation import (
    DTypeLike,
    convert_to_tensor,
    is_on_device,
    static_shape,
    whole_numbers,
)
from evenfeed.tensors.device_arrays import (
    asked_dtype,
    computed,
    is_traced,
    is_tracing,
    is_x64_on,
    stays_on_host,
)
from evenfeed.tensors.operands import in_dtype

# Returns the stream for a number of values. It is called once, after all arguments are checked.
Source: TypeAlias = Callable[[int], Stream | TracedStream]

FLOATS: Final = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
INTEGERS: Final = (dtypes.int32, dtypes.int64)
_EXACT: Final = (dtypes.float32, dtypes.float64, *INTEGERS)
# Smaller numbers fit every dtype of their kind that NumPy computes with.
_FLOATS_BELOW: Final = 1e30
_INTEGERS_BELOW: Final = 1 << 31
UNSIGNED: Final = (dtypes.uint32, dtypes.uint64)


def uniform_of(
    source: Source, shape: object, minval: object, maxval: object, dtype: DTypeLike
) -> Any:
    """Draw uniform numbers from `minval` up to `maxval`; integers of the whole range if both are None."""
    asked = dtypes.as_dtype(dtype)
    if asked not in (*FLOATS, *INTEGERS, *UNSIGNED):
        raise ValueError(_not_drawn(asked))
    lengths, held = vector(shape), asked_dtype(dtype)
    if asked in FLOATS:
        low, high = _number(minval, held), _number(1 if maxval is None else maxval, held)
        return _scaled(_filled(philox.units, source, lengths, held), high - low, low)
    if minval is None and maxval is None:
        return _tensor(_filled(philox.whole_range, source, lengths, held))
    low, high = _integer_bounds(minval, maxval, held)
    stream = source(math.prod(lengths))
    if stream.xp is np:
        low, high = np.asarray(low), np.asarray(high)
    return _tensor(philox.integers(stream, math.prod(lengths), low, high).reshape(lengths))


def normal_of(  # noqa: PLR0913, PLR0917 - the arguments of all normal functions, and the draw
    source: Source,
    shape: object,
    mean: object,
    stddev: object,
    dtype: DTypeLike,
    draw: Draw = philox.normals,
) -> Any:
    """Draw floats from a normal distribution, or from the one that `draw` has with mean 0 and deviation 1."""
    lengths, held = vector(shape), asked_dtype(dtype)
    center, width = _number(mean, held), _number(stddev, held)
    if held not in FLOATS:
        raise InvalidArgumentError(
            f"Normal numbers are floats, but dtype is {dtypes.name_of(dtypes.as_dtype(dtype))}.",
            fix="draw floats, and convert them with evenfeed.cast.",
        )
    return _scaled(_filled(draw, source, lengths, held), width, center)


def categories_of(source: Source, logits: object, num_samples: object, dtype: DTypeLike) -> Any:
    """Draw the numbers of classes, with probabilities that are given as logarithms in each row."""
    asked = dtypes.as_dtype(dtype)
    if asked not in INTEGERS:
        raise ValueError(
            described(
                f"Classes are int32 or int64, but dtype is {dtypes.name_of(asked)}.",
                fix="convert the result with evenfeed.cast.",
            )
        )
    table, count = convert_to_tensor(logits), int(np.asarray(num_samples))
    if table.ndim != 2 or table.shape[1] == 0 or table.dtype not in FLOATS:
        raise InvalidArgumentError(
            f"logits must be a matrix of floats, a row for each draw and a column for each class, but got "
            f"{table.dtype.name} of shape {tuple(table.shape)}.",
            fix="add a missing axis of rows with logits[None].",
        )
    if count < 0:
        raise InvalidArgumentError(
            f"num_samples must be at least 0, but got {count}.",
            fix="pass the number of draws for each row.",
        )
    stream = source(table.shape[0] * -(-count // 4) * 8)
    rows = np.asarray(table) if stream.xp is np else table
    with _with_64_bits(stream.xp):
        found = _classes(stream, rows, count).astype(dtypes.int32)
    return in_dtype(_tensor(found), asked)


def shuffled_by(source: Source, value: object) -> Any:
    """Return a tensor with its first axis in a random order."""
    tensor = convert_to_tensor(value)
    if tensor.ndim == 0 or len(tensor) < 2:
        return tensor
    order = source(len(tensor) - 1).drawn(_order, len(tensor), dtypes.int32)
    if isinstance(tensor, np.ndarray):  # text
        return host_tensor(tensor[np.asarray(order)])
    return tensor[order]


def computing_module(*values: object) -> Any:
    """Return `jax.numpy` in a trace or for traced values; NumPy, which is faster for small arrays, otherwise."""
    return jnp if any(map(is_traced, values)) or is_tracing() else np


def seeded(seed: object) -> Stream:
    """Return the stream of a stateless seed, which TensorFlow scrambles."""
    known = convert_to_tensor(seed) if _is_device_value(seed) else np.asarray(seed)
    if known.shape != (2,):
        raise InvalidArgumentError(
            f"seed must have shape [2], but got {shortened(seed)}.",
            fix="pass two integers, for example seed=(1, 2).",
        )
    if known.dtype.kind != "i":
        raise TypeError(
            described(
                f"seed must be int32 or int64, but got {dtypes.name_of(known.dtype)}.",
                fix="pass two integers, for example seed=(1, 2).",
            )
        )
    xp = computing_module(known)
    words = philox.seed_words(xp, np.asarray(known) if xp is np else jnp.asarray(known))
    return philox.scrambled(xp, words)


def vector(shape: object) -> tuple[int, ...]:
    """Convert a shape to a tuple of lengths. Raises for a single number."""
    if isinstance(shape, list | tuple) and all(type(n) is int and n >= 0 for n in shape):
        return tuple(shape)  # what most programs pass
    lengths = whole_numbers(shape)
    if lengths is None or lengths.ndim != 1:
        raise InvalidArgumentError(
            f"A shape must be a vector of lengths, but got {shortened(shape)}.",
            fix="pass the length of each axis, for example [2, 3].",
        )
    return static_shape(shape)


def _is_device_value(seed: object) -> bool:
    if isinstance(seed, (list, tuple)):
        return any(map(is_on_device, seed))  # pyright: ignore[reportUnknownArgumentType]
    return is_on_device(seed)


def _scaled(drawn: Any, width: Any, start: Any) -> Any:
    if all(isinstance(part, np.ndarray) for part in (drawn, width, start)):
        with np.errstate(all="ignore"):
            return _tensor(np.asarray(drawn * width + start))
    return _tensor(drawn) * width + start


def _filled(draw: Draw, source: Source, lengths: tuple[int, ...], held: DType) -> Any:
    count = math.prod(lengths)
    return source(count).drawn(draw, count, held).reshape(lengths)


def _tensor(found: Any) -> Any:
    return computed(found, "the random numbers") if isinstance(found, np.ndarray) else found


def _number(value: object, held: DType) -> Any:
    """Convert a bound to a tensor; for an element of a dataset to a NumPy array, if NumPy rounds as JAX does."""
    if stays_on_host() and held in _EXACT and not is_on_device(value):
        return np.array(value, held) if _fits(value, held) else np.asarray(to_array(value, held))
    return convert_to_tensor(value, held)


def _fits(value: object, held: DType) -> bool:
    """Return True for a Python number of the same kind that surely fits."""
    if type(value) is float:
        return held.kind == "f" and abs(value) < _FLOATS_BELOW
    return type(value) is int and held.kind == "i" and abs(value) < _INTEGERS_BELOW


def _integer_bounds(minval: object, maxval: object, held: DType) -> tuple[Any, Any]:
    if minval is None or maxval is None:
        raise ValueError(
            described(
                f"uniform needs {'minval' if minval is None else 'maxval'} for {held.name}: integers have no "
                "default range.",
                fix="pass both; maxval is exclusive.",
            )
        )
    if held in UNSIGNED:
        raise ValueError(
            described(
                f"{held.name} is drawn from its whole range, but minval is {shortened(minval)}.",
                fix="pass minval=None and maxval=None, or draw int64.",
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


def _not_drawn(dtype: DType) -> str:
    drawn = ", ".join(known.name for known in (*FLOATS, *INTEGERS))
    return described(
        f"uniform draws {drawn}, but dtype is {dtypes.name_of(dtype)}.",
        fix="draw one of those, and convert it with evenfeed.cast.",
    )


def _with_64_bits(xp: Any) -> AbstractContextManager[Any]:
    return nullcontext() if xp is np or is_x64_on() else jax.enable_x64(True)


def _classes(stream: Stream | TracedStream, logits: Any, count: int) -> Any:
    """Return the class of each draw: the first whose cumulative probability is above a random number."""
    xp, rows = stream.xp, logits.shape[0]
    wide = logits.astype(dtypes.float64)
    finite = xp.isfinite(wide)
    most = xp.max(xp.where(finite, wide, -np.inf), axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        odds = xp.where(finite, xp.exp(wide - most), 0.0)
    totals = xp.cumsum(odds, axis=1)
    wanted = stream.drawn(philox.units, rows * count, dtypes.float64).reshape(rows, count)
    wanted = wanted * totals[:, -1:]
    return xp.sum(totals[:, None, :] <= wanted[:, :, None], axis=-1)


def _order(stream: Stream, size: int, dtype: DType) -> Any:
    """Return a random order of the numbers below `size`, by Fisher and Yates' method."""
    left = np.arange(size, 1, -1, dtype=np.uint32)
    jumps = stream.words(size - 1) % left
    if stream.xp is np:
        return _swapped(jumps).astype(dtype) if jumps.ndim == 1 else _orders(jumps, dtype)
    numbers = jnp.arange(size, dtype=dtype)

    def swap(place: Any, order: Any) -> Any:
        other = place + jumps[place].astype(place.dtype)
        return order.at[place].set(order[other]).at[other].set(order[place])

    return jax.lax.fori_loop(0, size - 1, swap, numbers)


def _orders(jumps: Array, dtype: DType) -> Array:
    """Return an order for each row of jumps."""
    rows = np.arange(len(jumps))
    order = np.tile(np.arange(jumps.shape[1] + 1, dtype=dtype), (len(jumps), 1))
    for place, jump in enumerate(jumps.T):
        other = place + jump.astype(np.int64)
        order[:, place], order[rows, other] = order[rows, other], order[:, place].copy()
    return order


def _swapped(jumps: Array) -> Array:
    order = list(range(len(jumps) + 1))
    for place, jump in enumerate(jumps.tolist()):
        order[place], order[place + jump] = order[place + jump], order[place]
    return np.array(order)
