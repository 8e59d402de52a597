"""Kernels with random numbers that follow from the seeds of each element."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

import numpy as np

from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.randomness import philox
from evenfeed.core.randomness.philox import Stream
from evenfeed.core.randomness.random_bits import key_of, keys_of
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images import hot_loops

_LOW_32: Final = 2**32 - 1
_ALL_BITS: Final = 2**64 - 1
# The random words of fewer elements are mixed one by one, unless there are compiled loops.
_FEWEST: Final = 16


@dataclass(frozen=True)
class RandomKernel(RowKernel):
    """A kernel whose arguments are an image and the seeds of its random numbers.

    Attributes:
        salt: Distinguishes several draws with the same seeds.
        stateless: Whether two seeds, here or in `salt`, decide alone, with TensorFlow's numbers.
    """

    _: KW_ONLY
    salt: tuple[int, ...] = ()
    stateless: bool = False

    @property
    def kind(self) -> str:
        """The name of the operation. Two kinds with one seed draw different numbers."""
        return type(self).__name__

    def units(self, seeds: Sequence[Array], count: int) -> Array:
        """Return random floats in [0, 1)."""
        key, counter = (np.array([words], np.uint32) for words in self._start(seeds))
        steps = -(-count // 4)
        words = counter.repeat(steps, axis=0)
        words[:, 0] = np.arange(steps)  # the low words of the counter are 0
        mixed = hot_loops.mixed_words(key.repeat(steps, axis=0), words)
        return philox.units_of(mixed.reshape(-1)[:count])

    def unit(self, seeds: Sequence[Array]) -> np.float32:
        """Return a random float in [0, 1)."""
        return philox.unit(self.few_words(seeds)[0])

    def between(self, seeds: Sequence[Array], low: float, high: float) -> float:
        """Return a random float from `low` up to `high`, computed in single precision."""
        first, last = np.float32(low), np.float32(high)
        return float(self.unit(seeds) * (last - first) + first)

    def integers(self, seeds: Sequence[Array], count: int, low: int, high: int) -> list[int]:
        """Return random integers from `low` up to `high`, exclusive; both are less than 2³¹ and not negative."""
        words = self.few_words(seeds) if count <= 4 else self.stream(seeds).words(count).tolist()
        return [low + word % (high - low) for word in words[:count]]

    def fixed(self, seed: tuple[int, ...]) -> "RandomKernel":
        """Return a kernel with a fixed seed, whose only argument is the image."""
        return replace(self, salt=(*seed, *self.salt))

    def stream(self, seeds: Sequence[Array]) -> Stream:
        """Return the random words that follow from the seeds."""
        key, counter = (
            [np.array([word], np.uint32) for word in words] for words in self._start(seeds)
        )
        return Stream(np, key, counter)

    def few_words(self, seeds: Sequence[Array]) -> list[int]:
        """Return the first four words of the stream, without an array: an image needs no more."""
        return philox.mixed_numbers(*self._start(seeds))

    def words_of_each(self, columns: Sequence[Column], count: int) -> Array:
        """Return the first four words of the stream of each element: a row for each.

        Args:
            columns: The seeds that are parts of the elements.
            count: The number of elements.
        """
        if not columns:
            return np.broadcast_to(np.array(self.few_words(()), np.uint32), (count, 4))
        is_several = count >= _FEWEST or (count > 1 and hot_loops.are_worth_it(0))
        rows = _seed_rows(columns, count) if is_several else None
        if rows is None or (self.stateless and len(rows[0]) + len(self.salt) != 2):
            each = Block(tuple(columns), count).cut_up()
            words = [self.few_words(each.row(index)) for index in range(count)]
            return np.array(words, np.uint32).reshape(count, 4)
        if self.stateless:
            pairs = [[number & _ALL_BITS for number in (*row, *self.salt)] for row in rows]
            words = np.array(pairs, "<u8").view("<u4")
            key = np.array([philox.SCRAMBLE_KEY], np.uint32).repeat(count, axis=0)
            start = hot_loops.mixed_words(key, words)
        else:
            start = keys_of(rows, self.salt)
        counters = start.copy()
        counters[:, :2] = 0
        return hot_loops.mixed_words(start[:, :2], counters)

    def units_of_each(self, columns: Sequence[Column], count: int) -> Array:
        """Return a random float in [0, 1) for each element."""
        return philox.units_of(self.words_of_each(columns, count)[:, 0])

    def numbers_of_each(
        self, columns: Sequence[Column], count: int, low: float, high: float
    ) -> Array:
        """Return a random float from `low` up to `high` for each element, computed in single precision."""
        first, last = np.float32(low), np.float32(high)
        return self.units_of_each(columns, count) * (last - first) + first

    def _start(self, seeds: Sequence[Array]) -> tuple[list[int], list[int]]:
        """Return the words of the key and of the counter of the stream."""
        numbers = [*(int(word) for seed in seeds for word in seed.ravel().tolist()), *self.salt]
        if not self.stateless:
            # The key is random already, so its words need no scrambling.
            key = key_of(*numbers)
            words = [key >> 32 * place & _LOW_32 for place in range(4)]
            return words[:2], [0, 0, *words[2:]]
        if len(numbers) != 2:
            raise InvalidArgumentError(
                f"seed must be two integers, but got {len(numbers)}.",
                fix="pass two integers, for example seed=(1, 2).",
            )
        return philox.scrambled_numbers([number & _ALL_BITS for number in numbers])


def _seed_rows(columns: Sequence[Column], count: int) -> list[list[int]] | None:
    """Return the seeds of each element as Python integers; None if they are not arrays of integers."""
    found: list[list[list[int]]] = []
    for column in columns:
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu":
            return None
        found.append(column.reshape(count, -1).tolist())
    return [[number for part in parts for number in part] for parts in zip(*found, strict=True)]
