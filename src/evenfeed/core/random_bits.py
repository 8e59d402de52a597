"""Random numbers that are a function of a key and a step: any stretch of them can be made anew."""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

_PER_COUNTER: Final = 4  # 64-bit numbers that Philox makes of one counter
_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(2**32 - 1)
_ALL_BITS: Final = 2**64 - 1

# A permutation of more rows than this is computed, not stored: half a second and 32 MB saved.
_STORED: Final = 1 << 22
_ROUNDS: Final = 6


def key_of(*numbers: int) -> int:
    """Return a 128-bit key made of several numbers; near numbers give unrelated keys.

    To add an epoch to a seed would make epoch 1 of seed 7 the order of epoch 0 of seed 8.
    """
    text = ",".join(map(str, numbers)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")


def raw(key: int, start: int, count: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each of the steps from `start` on."""
    first, skip = divmod(start, _PER_COUNTER)
    return np.random.Philox(key=key, counter=first).random_raw(count + skip)[skip:]


def words_at(key: int, steps: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return 64 random bits, as two words, for each of `steps`, which come in any order.

    With one key no two steps have the same: it is a bijection, keyed before and between two mixings.
    """
    low, high = np.uint64(key & _ALL_BITS), np.uint64(key >> 64)
    bits = _hashed(_hashed(steps.astype(np.uint64) ^ low) ^ high)
    return np.stack([bits >> _HALF, bits & _LOW_HALF], axis=-1).astype(np.uint32)


def numbers_below(key: int, start: int, count: int, limit: int) -> NDArray[np.int64]:
    """Return a number below `limit` for each of the steps from `start` on."""
    # The high half of a product: uniform up to limit / 2**32, without a division.
    return ((raw(key, start, count) >> _HALF) * np.uint64(limit) >> _HALF).astype(np.int64)


@final
class Permutation:
    """All numbers below `size` in a random order, any stretch of which can be asked for.

    Stored, and uniform over all orders, where it is small; a keyed bijection (a Feistel network,
    walked until it falls below `size`) where it is not.
    """

    def __init__(self, key: int, size: int) -> None:
        self._size = size
        self._stored: NDArray[np.int64] | None = None
        if size <= _STORED:
            self._stored = np.random.Generator(np.random.Philox(key=key)).permutation(size)
        else:
            self._bits = -(-(size - 1).bit_length() // 2)
            self._keys = raw(key, 0, _ROUNDS)

    def at(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers that come at `steps`."""
        if self._stored is not None:
            return self._stored[steps]
        numbers = self._mixed(steps.astype(np.uint64))
        outside = np.flatnonzero(numbers >= self._size)
        while len(outside):  # at least a quarter falls inside at each turn
            numbers[outside] = self._mixed(numbers[outside])
            outside = outside[numbers[outside] >= self._size]
        return numbers.astype(np.int64)

    def stretch(self, start: int, count: int) -> NDArray[np.int64]:
        """Return the numbers that come at `count` steps from `start` on."""
        if self._stored is not None:
            return self._stored[start : start + count]
        return self.at(np.arange(start, start + count, dtype=np.int64))

    def _mixed(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        bits, mask = np.uint64(self._bits), np.uint64((1 << self._bits) - 1)
        left, right = numbers >> bits, numbers & mask
        for key in self._keys:
            left, right = right, left ^ (_hashed(right ^ key) & mask)
        return left << bits | right


def _hashed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits so that every bit of the result hangs on every bit of the number."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@final
class DrawsForElements(BaseException):
    """A function that is traced draws random numbers: its elements need bits. No user catches it."""

    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self.seed = seed


@final
class ElementDraws:
    """What is drawn for one element.

    Attributes:
        words: Two random words, which follow from the position of the element; or what stands for them.
    """

    def __init__(self, words: Any) -> None:
        self.words = words
        self._drawn = 0

    def salt(self, seed: int | None) -> tuple[int, ...]:
        """Return what tells the next draw apart from those before, and from one with another seed."""
        self._drawn += 1
        return (self._drawn,) if seed is None else (self._drawn, seed)


# What the function that runs now draws from.
DRAWS: Final[ContextVar[ElementDraws | None]] = ContextVar("DRAWS", default=None)


def current_draws() -> ElementDraws | None:
    """Return what the function that runs now draws from; None where it is called for no element."""
    return DRAWS.get()


@contextmanager
def drawing_from(words: Any) -> Generator[None]:
    """Let random functions draw from the bits of an element."""
    token = DRAWS.set(ElementDraws(words))
    try:
        yield
    finally:
        DRAWS.reset(token)
