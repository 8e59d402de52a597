"""Counter-based random numbers, and the random draws of traced functions.

Random bits are a function of a key and a step, so any range of them can be recomputed, for example on resume.
`ElementDraws` gives a traced function random bits that depend on the position of its element.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy import hashlib

_PER_COUNTER: Final = 4  # 64-bit numbers per Philox counter
_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(2**32 - 1)
_ALL_BITS: Final = 2**64 - 1

# A permutation of more rows than this is computed, not stored. That saves half a second and 32 MB.
_STORED: Final = 1 << 22
_ROUNDS: Final = 6


def key_of(*numbers: int) -> int:
    """Hash several numbers into a 128-bit key. Similar numbers give unrelated keys.

    Adding the epoch to the seed instead would give epoch 1 of seed 7 the same order as epoch 0 of seed 8.
    """
    text = ",".join(map(str, numbers)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")


def keys_of(rows: Iterable[Sequence[int]], last: Sequence[int]) -> Array:
    """Return the key of each row of numbers, with the same last ones, as four words, the low ones first."""
    end, blake = "".join(f",{number}" for number in last), hashlib.blake2b
    texts = [",".join(map(str, row)) + end for row in rows]
    digests = [blake(text.encode(), digest_size=16).digest() for text in texts]
    return np.frombuffer(b"".join(digests), "<u4").reshape(-1, 4)


def raw(key: int, start: int, count: int) -> Array:
    """Return 64 random bits for each of `count` steps from `start`."""
    first, skip = divmod(start, _PER_COUNTER)
    return np.random.Philox(key=key, counter=first).random_raw(count + skip)[skip:]


def words_at(key: int, steps: Array) -> Array:
    """Return 64 random bits, as two words, for each of `steps`, in any order.

    With one key, no two steps get the same bits: the function is a bijection. It mixes the bits twice, each time
    after adding a key.
    """
    low, high = np.uint64(key & _ALL_BITS), np.uint64(key >> 64)
    bits = _hashed(_hashed(steps.astype(np.uint64) ^ low) ^ high)
    return np.stack([bits >> _HALF, bits & _LOW_HALF], axis=-1).astype(np.uint32)


def numbers_below(key: int, start: int, count: int, limit: int) -> Array:
    """Return a random number below `limit` for each of `count` steps from `start`."""
    # The high half of a product: no division, and a bias below limit / 2**32.
    return ((raw(key, start, count) >> _HALF) * np.uint64(limit) >> _HALF).astype(np.int64)


def is_stored(size: int) -> bool:
    """Return True if a permutation of `size` numbers is drawn at once, which takes up to a tenth of a second."""
    return size <= _STORED


@final
class Permutation:
    """A random permutation of the numbers below `size`, with access to any range of it.

    A small one is stored, and uniform over all orders. A large one is a keyed bijection: a Feistel network,
    iterated until the result is below `size`.
    """

    def __init__(self, key: int, size: int) -> None:
        self._size = size
        self._stored: Array | None = None
        if is_stored(size):
            self._stored = np.random.Generator(np.random.Philox(key=key)).permutation(size)
        else:
            self._bits = -(-(size - 1).bit_length() // 2)
            self._keys = raw(key, 0, _ROUNDS)

    def at(self, steps: Array) -> Array:
        """Return the numbers at `steps`."""
        if self._stored is not None:
            return self._stored[steps]
        numbers = self._mixed(steps.astype(np.uint64))
        outside = np.flatnonzero(numbers >= self._size)
        while len(outside):  # at least a quarter falls inside at each iteration
            numbers[outside] = self._mixed(numbers[outside])
            outside = outside[numbers[outside] >= self._size]
        return numbers.astype(np.int64)

    def stretch(self, start: int, count: int) -> Array:
        """Return the numbers at `count` steps from `start`."""
        if self._stored is not None:
            return self._stored[start : start + count]
        return self.at(np.arange(start, start + count, dtype=np.int64))

    def _mixed(self, numbers: Array) -> Array:
        bits, mask = np.uint64(self._bits), np.uint64((1 << self._bits) - 1)
        left, right = numbers >> bits, numbers & mask
        for key in self._keys:
            left, right = right, left ^ (_hashed(right ^ key) & mask)
        return left << bits | right


def _hashed(numbers: Array) -> Array:
    """Mix 64 bits, so that every bit of the result depends on every bit of the number."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@final
class DrawsForElements(BaseException):
    """A traced function draws random numbers, so the trace must restart with random bits per element.

    Users never see it.
    """

    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self.seed = seed


@final
class ElementDraws:
    """The random draws for one element.

    Attributes:
        words: Two random words that depend on the position of the element, or placeholders for them.
    """

    def __init__(self, words: Any) -> None:
        self.words = words
        self._drawn = 0

    def salt(self, seed: int | None) -> tuple[int, ...]:
        """Return numbers that distinguish the next draw from earlier ones, and from draws with another seed."""
        self._drawn += 1
        return (self._drawn,) if seed is None else (self._drawn, seed)


# The draws of the function that is running.
DRAWS: Final[ContextVar[ElementDraws | None]] = ContextVar("DRAWS", default=None)


def current_draws() -> ElementDraws | None:
    """Return the draws of the function that is running; None if it is not called for an element."""
    return DRAWS.get()


@contextmanager
def drawing_from(words: Any) -> Generator[None]:
    """Let random functions in a `with` block draw from the random bits of an element."""
    token = DRAWS.set(ElementDraws(words))
    try:
        yield
    finally:
        DRAWS.reset(token)
