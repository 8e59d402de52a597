"""Philox 4x32-10: TensorFlow's counter-based random bits, and the numbers that it makes of them.

The functions compute with NumPy or with `jax.numpy`, whichever module a `Stream` has. Integers and uniform floats are
equal in both, and to TensorFlow's. Normal numbers may differ in their last bits: each library has its own logarithm.
"""

# Arrays of NumPy or jax.numpy.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType

_ROUNDS: Final = 10
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
SCRAMBLE_KEY: Final = (0x3EC8F720, 0x02461E29)
_LOW_16: Final = 0xFFFF
_LOW_32: Final = 2**32 - 1

# How many blocks of 4 words TensorFlow reserves for each number, if later calls continue the stream.
RESERVED_BLOCKS: Final = 256
# How many words it reserves for each number within one call, if a number may need several draws.
_RESERVED_WORDS: Final = 256
# Pairs of normal numbers drawn for each group of truncated ones. All are rejected with a probability below 1e-25.
_CANDIDATES: Final = 12
_LEAST: Final = 1e-7  # the smallest number whose logarithm Box and Muller's method takes


@final
@dataclass(frozen=True)
class Stream:
    """The random words that follow a counter, 4 per step.

    The words of the key and of the counter have shape [1]. Or they have shape [rows, 1], one stream for each row; all
    functions then return an array with a leading axis of rows.

    Attributes:
        xp: The module that computes: `numpy` or `jax.numpy`.
        key: Two words.
        counter: Four words, the low ones first.
    """

    xp: Any
    key: Any
    counter: Any

    def drawn(self, draw: "Draw", count: int, dtype: DType) -> Any:
        """Return the next `count` numbers that `draw` makes."""
        return draw(self, count, dtype)

    def words(self, count: int) -> Any:
        """Return the next `count` words."""
        if self.xp is np and count <= 4 and _are_numbers(self.key, self.counter):
            return np.array(
                mixed_numbers(_as_numbers(self.key), _as_numbers(self.counter))[:count],
                dtypes.uint32,
            )
        steps = self.xp.arange(-(-count // 4), dtype=dtypes.uint32)
        return _in_rows(self.blocks(steps))[..., :count]

    def blocks(self, steps: Any) -> Any:
        """Return the 4 words of each step, which are counted from the counter."""
        xp, words = self.xp, []
        carry = steps
        for word in self.counter:
            total = word + carry
            words.append(total)
            carry = (total < carry).astype(dtypes.uint32)
        return xp.stack(_mixed(xp, self.key, words), axis=-1)


# Makes a number of values with a dtype of a stream.
Draw: TypeAlias = Callable[[Stream, int, DType], Any]


class Draws(Protocol):
    """A stream, or what stands for it in a trace."""

    def drawn(self, draw: Draw, count: int, dtype: DType) -> Any:
        """Return the next `count` numbers that `draw` makes."""
        ...


def stream_of_words(xp: Any, words: Any) -> Stream:
    """Return the stream of 6 words: the counter, then the key."""
    # Slices keep an axis: NumPy warns if single numbers wrap around, as random words are meant to.
    parts = [words[place : place + 1] for place in range(6)]
    return Stream(xp, parts[4:], parts[:4])


def scrambled(xp: Any, seed: Any) -> Stream:
    """Return the stream of two 64-bit seeds, given as 4 words. Similar seeds give unrelated streams."""
    parts = [seed[place : place + 1] for place in range(4)]
    key = [xp.full(1, word, dtypes.uint32) for word in SCRAMBLE_KEY]
    mixed = _mixed(xp, key, parts)
    zero = xp.zeros(1, dtypes.uint32)
    return Stream(xp, mixed[:2], [zero, zero, *mixed[2:]])


def scrambled_numbers(seed: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the words of the key and of the counter of the stream of two 64-bit seeds."""
    words = [number >> shift & _LOW_32 for number in seed for shift in (0, 32)]
    mixed = mixed_numbers(SCRAMBLE_KEY, words)
    return mixed[:2], [0, 0, *mixed[2:]]


def mixed_rows(keys: Array, words: Array) -> Array:
    """Mix each row of four words with its two keys."""
    return np.stack(_mixed(np, list(keys.T), list(words.T)), axis=1)


def seed_words(xp: Any, seed: Any) -> Any:
    """Return the 4 words of two integers of 32 or 64 bits."""
    if seed.dtype.itemsize == 8:
        wide = seed.astype(dtypes.uint64)
        low, high = wide & _LOW_32, wide >> 32
    else:
        low, high = seed, seed >> 31  # the sign
    return xp.stack([low.astype(dtypes.uint32), high.astype(dtypes.uint32)], axis=-1).reshape(-1)


def whole_range(stream: Stream, count: int, dtype: DType) -> Any:
    """Return integers from the whole range of `dtype`."""
    if dtype.itemsize == 4:
        return stream.words(count).astype(dtype)
    low, high = _pairs(stream, count)
    return (low.astype(dtypes.uint64) | high.astype(dtypes.uint64) << 32).astype(dtype)


def integers(stream: Draws, count: int, low: Any, high: Any) -> Any:
    """Return integers from `low` up to `high`, exclusive, with the dtype of these bounds."""
    unsigned = dtypes.uint32 if low.dtype.itemsize == 4 else dtypes.uint64
    # Slices of one number, so that NumPy lets the difference and the sum wrap around.
    first, last = low.reshape(1).astype(unsigned), high.reshape(1).astype(unsigned)
    numbers = stream.drawn(whole_range, count, unsigned)
    return (first + numbers % (last - first)).astype(low.dtype)


def units(stream: Stream, count: int, dtype: DType) -> Any:
    """Return floats in [0, 1), which have the random bits as their mantissa."""
    if dtype == dtypes.float64:
        high, low = _pairs(stream, count)
        return _unit_doubles(high, low)
    words = stream.words(count)
    if dtype == dtypes.float32:
        return _unit_floats(words)
    bits, one = (10, 0x3C00) if dtype == dtypes.float16 else (7, 0x3F80)
    short = (words & (1 << bits) - 1 | one).astype(dtypes.uint16)
    return short.view(dtype) - np.ones((), dtype)


def unit(word: int) -> np.float32:
    """Return the float32 that `units` makes of a word."""
    return np.float32((word & 0x7FFFFF) * 2.0**-23)


def units_of(words: Any) -> Any:
    """Return the float32 numbers that `units` makes of words."""
    return (words & 0x7FFFFF).astype(dtypes.float32) * np.float32(2.0**-23)


def normals(stream: Stream, count: int, dtype: DType) -> Any:
    """Return floats from the normal distribution with mean 0 and deviation 1."""
    size = _group(dtype)
    words = stream.words(-(-count // size) * 4)
    found = _box_muller(stream.xp, words.reshape(*words.shape[:-1], -1, 4), dtype)
    return _in_rows(found, 3)[..., :count].astype(dtype)


def truncated_normals(stream: Stream, count: int, dtype: DType) -> Any:
    """Return floats from the normal distribution, without those that are 2 or more deviations from the mean."""
    size = _group(dtype)
    groups = -(-count // size)
    most = _CANDIDATES * 2 // size
    if stream.xp is not np or np.ndim(stream.counter[0]) == 1:
        return _in_rows(_accepted(stream, groups, most, dtype)[0])[..., :count]
    # Two steps nearly always hold enough numbers; only the other rows need all.
    found, enough = _accepted(stream, groups, 2, dtype)
    rows = np.flatnonzero(~enough.all(axis=-1))
    if len(rows):
        key, counter = ([word[rows] for word in words] for words in (stream.key, stream.counter))
        found[rows] = _accepted(Stream(np, key, counter), groups, most, dtype)[0]
    return _in_rows(found)[..., :count]


def _accepted(stream: Stream, groups: int, tries: int, dtype: DType) -> tuple[Any, Any]:
    """Return the first accepted numbers of each group, from a number of steps, and whether these were enough."""
    xp, size = stream.xp, _group(dtype)
    apart = size * _RESERVED_WORDS // 4
    steps = xp.arange(groups, dtype=dtypes.uint32)[:, None] * apart + xp.arange(
        tries, dtype=dtypes.uint32
    )
    words = stream.blocks(steps.reshape(-1).astype(dtypes.uint32))
    found = _box_muller(xp, words, dtype).reshape(*words.shape[:-2], groups, tries * size)
    rejected = abs(found) >= 2
    # A stable sort by "is rejected" keeps the accepted ones in order.
    order = xp.argsort(rejected.astype(dtypes.int32), axis=-1, stable=True)[..., :size]
    enough = (~rejected).sum(axis=-1) >= size
    return xp.take_along_axis(found, order, axis=-1).astype(dtype), enough


def _in_rows(found: Any, axes: int = 2) -> Any:
    """Return numbers with all axes as one, except the axis of rows if there is one: the last `axes` are one stream's."""
    return found.reshape(*found.shape[:-axes], -1)


def _group(dtype: DType) -> int:
    """Return how many floats are made of the 4 words of a step."""
    return 2 if dtype == dtypes.float64 else 4


def _pairs(stream: Stream, count: int) -> tuple[Any, Any]:
    words = stream.words(2 * count)
    return words[..., 0::2], words[..., 1::2]


def _unit_floats(words: Any) -> Any:
    return (words & 0x7FFFFF | 0x3F800000).astype(dtypes.uint32).view(dtypes.float32) - np.float32(
        1
    )


def _unit_doubles(high: Any, low: Any) -> Any:
    bits = high.astype(dtypes.uint64) << 32 & 0xFFFFF00000000 | low.astype(dtypes.uint64)
    return (bits | 1023 << 52).view(dtypes.float64) - 1.0


def _box_muller(xp: Any, words: Any, dtype: DType) -> Any:
    """Return the normal numbers of each step, in an array with an axis for the steps."""
    if dtype == dtypes.float64:
        first = _unit_doubles(words[..., 0], words[..., 1])[..., None]
        second = _unit_doubles(words[..., 2], words[..., 3])[..., None]
        return _polar(xp, xp.maximum(first, _LEAST), 2 * np.pi * second, dtypes.float64)
    floats = _unit_floats(words)
    first = xp.maximum(floats[..., 0::2], np.float32(_LEAST))
    # NumPy computes in 64 bits and rounds, as the C library does in effect. JAX may have no 64 bits.
    wide = dtypes.float64 if xp is np else dtypes.float32
    angle = (floats[..., 1::2].astype(wide) * (2 * np.pi)).astype(dtypes.float32)
    return _polar(xp, first.astype(wide), angle.astype(wide), dtypes.float32)


def _polar(xp: Any, first: Any, angle: Any, dtype: DType) -> Any:
    log = xp.log(first).astype(dtype)
    radius = xp.sqrt(-2 * log)
    both = xp.stack([xp.sin(angle).astype(dtype), xp.cos(angle).astype(dtype)], axis=-1)
    return both * radius[..., None]


def _mixed(xp: Any, key: Any, counter: Any) -> list[Any]:
    words, keys = list(counter), list(key)
    if xp is np and _are_numbers(words, keys):
        mixed = mixed_numbers(_as_numbers(keys), _as_numbers(words))
        return [np.array([word], dtypes.uint32) for word in mixed]
    if xp is np:
        for _ in range(_ROUNDS):
            words, keys = _round(xp, words, keys)
        return words
    # A loop of one round: XLA takes minutes to compile all of them in a row, since each word depends on two others.
    shape = xp.broadcast_shapes(*map(xp.shape, (*words, *keys)))
    words = [xp.broadcast_to(word, shape) for word in words]
    keys = [xp.broadcast_to(key, shape) for key in keys]

    def mix(_: Any, mixing: Any) -> Any:
        return _round(xp, *mixing)

    jax: Any = sys.modules["jax"]  # `xp` is a part of it
    return jax.lax.fori_loop(0, _ROUNDS, mix, (words, keys))[0]


def _round(xp: Any, words: list[Any], keys: list[Any]) -> tuple[list[Any], list[Any]]:
    high_0, low_0 = _product(xp, _MULTIPLIERS[0], words[0])
    high_1, low_1 = _product(xp, _MULTIPLIERS[1], words[2])
    steps = [xp.asarray(step, dtypes.uint32) for step in _WEYL]
    return (
        [high_1 ^ words[1] ^ keys[0], low_1, high_0 ^ words[3] ^ keys[1], low_0],
        [key + step for key, step in zip(keys, steps, strict=True)],
    )


def _are_numbers(*parts: Any) -> bool:
    return all(np.shape(word) == (1,) for words in parts for word in words)


def _as_numbers(words: Any) -> list[int]:
    return [int(word[0]) for word in words]


def mixed_numbers(keys: Sequence[int], words: Sequence[int]) -> list[int]:
    """Mix single words as Python integers. NumPy takes 20 times as long for so few, and images draw a few each."""
    one, two, three, four = words
    key, other = keys
    for _ in range(_ROUNDS):
        first, second = _MULTIPLIERS[0] * one, _MULTIPLIERS[1] * three
        one, three = (second >> 32) ^ two ^ key, (first >> 32) ^ four ^ other
        two, four = second & _LOW_32, first & _LOW_32
        key, other = key + _WEYL[0] & _LOW_32, other + _WEYL[1] & _LOW_32
    return [one, two, three, four]


def _product(xp: Any, factor: int, word: Any) -> tuple[Any, Any]:
    """Return the high and the low word of a product."""
    if xp is np:
        product = word.astype(dtypes.uint64) * np.uint64(factor)
        return (product >> 32).astype(dtypes.uint32), product.astype(dtypes.uint32)
    # From products of 16 bits: JAX may have no 64 bits.
    high, low = (xp.asarray(part, dtypes.uint32) for part in (factor >> 16, factor & _LOW_16))
    word_high, word_low = word >> 16, word & _LOW_16
    middle = high * word_low + (low * word_low >> 16)
    other = low * word_high + (middle & _LOW_16)
    return high * word_high + (middle >> 16) + (other >> 16), xp.asarray(
        factor, dtypes.uint32
    ) * word


def advanced(xp: Any, words: Any, low: Any, high: Any) -> Any:
    """Return the 6 words of a stream, with a 64-bit number, given as two words, added to the counter."""
    parts, carry = [], xp.zeros(1, dtypes.uint32)
    for place in range(4):
        word = words[place : place + 1]
        added = (low, high, 0, 0)[place] + carry
        total = word + added
        # The sum of the number and the carry may wrap around too, to 0.
        carry = ((total < word) | (added < carry)).astype(dtypes.uint32)
        parts.append(total)
    return xp.concatenate([*parts, words[4:]])
