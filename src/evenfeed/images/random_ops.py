"""Random crops and flips, and where the numbers of random image operations come from.

In a function passed to `Dataset.map`, random numbers depend on the seed, the pass and the position of the
element, as in `random_map`. Elsewhere they depend on the seeds that `evenfeed.random` uses.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.arguments import whole_number
from evenfeed.core.block import Block, Column, length_of
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.randomness import philox
from evenfeed.core.randomness.philox import Stream
from evenfeed.core.randomness.random_bits import DrawsForElements, current_draws, key_of, keys_of
from evenfeed.core.randomness.seeds import draw, operation_seed
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import (
    STAGE,
    Kernel,
    RowKernel,
    is_small,
    results_of,
    stands_for_part,
)
from evenfeed.images import hot_loops
from evenfeed.images.bound_kernels import applied_beside_constants
from evenfeed.images.geometry import (
    COLUMNS,
    ROWS,
    boxes_of_each,
    check_image,
    flipped,
    lengths_of,
)

_LOW_32: Final = 2**32 - 1
_MOST_OFFSET: Final = 2**31 - 1
_ALL_BITS: Final = 2**64 - 1
# The random words of fewer elements are mixed one by one.
_FEWEST: Final = 16


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Any:
    """Crop an image, or any array, to a random box of a given size.

    Args:
        value: An array of any shape.
        size: The length of the box along each axis.
        seed: Combined with the global seed; makes the boxes the same in every run.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_crop(np.zeros([256, 320, 3]), [224, 224, 3]).shape
        (224, 224, 3)
    """
    del name
    return drawn(RandomCrop(lengths_of(size, "size")), value, seed)


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Any:
    """Crop an image, or any array, to a random box that depends only on the seed.

    Args:
        value: An array of any shape.
        size: The length of the box along each axis.
        seed: Two integers.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> image = np.arange(100).reshape(10, 10, 1)
        >>> one, two = (tf.image.stateless_random_crop(image, [3, 3, 1], seed=(1, 2)) for _ in "ab")
        >>> one.tolist() == two.tolist()
        True
    """
    del name
    return seeded(RandomCrop(lengths_of(size, "size")), value, seed)


def random_flip_left_right(image: Any, seed: int | None = None) -> Any:
    """Flip an image, or each image of a batch, horizontally with probability 1/2.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_flip_left_right(np.array([[[1], [2]]]))[..., 0].tolist() in ([[1, 2]], [[2, 1]])
        True
    """
    return drawn(RandomFlip(COLUMNS), image, seed)


def random_flip_up_down(image: Any, seed: int | None = None) -> Any:
    """Flip an image, or each image of a batch, vertically with probability 1/2.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_flip_up_down(np.zeros([2, 3, 1])).shape
        (2, 3, 1)
    """
    return drawn(RandomFlip(ROWS), image, seed)


def stateless_random_flip_left_right(image: Any, seed: Any) -> Any:
    """Flip an image horizontally with probability 1/2, depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_flip_left_right(np.zeros([2, 3, 1]), seed=(1, 2)).shape
        (2, 3, 1)
    """
    return seeded(RandomFlip(COLUMNS), image, seed)


def stateless_random_flip_up_down(image: Any, seed: Any) -> Any:
    """Flip an image vertically with probability 1/2, depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_flip_up_down(np.zeros([2, 3, 1]), seed=(1, 2)).shape
        (2, 3, 1)
    """
    return seeded(RandomFlip(ROWS), image, seed)


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
        rows = _seed_rows(columns, count) if count >= _FEWEST else None
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


@final
@dataclass(frozen=True)
class RandomCrop(RandomKernel):
    """Crops to a random box; the result is a view."""

    moves_values = True
    takes_batches = True

    size: tuple[int, ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(self.size, given[0].dtype)

    def one(self, *parts: Array) -> Array:
        value, *seeds = parts
        rooms = self._rooms(value.shape)
        offsets = self.integers(seeds, value.ndim, 0, _MOST_OFFSET)
        starts = [offset % (room + 1) for offset, room in zip(offsets, rooms, strict=True)]
        return value[
            tuple(slice(at, at + part) for at, part in zip(starts, self.size, strict=True))
        ]

    def all_at_once(self, images: Array, *columns: Column) -> Column:
        count, *shape = images.shape
        rooms = self._rooms(tuple(shape))
        # A fourth length is not used: images have three.
        offsets = self.words_of_each(columns, count)[:, :3] % np.uint32(_MOST_OFFSET)
        starts = offsets % (np.array(rooms, np.uint32) + np.uint32(1))
        if is_small(images[:1]):
            return boxes_of_each(images, starts, self.size)
        boxes: list[Array] = []
        height, width, channels = self.size
        for image, (top, left, first) in zip(images, starts.tolist(), strict=True):
            boxes.append(image[top : top + height, left : left + width, first : first + channels])
        return boxes

    def _rooms(self, shape: tuple[int, ...]) -> list[int]:
        """Return how many places for the box there are along each axis, less one."""
        if len(shape) != len(self.size):
            raise InvalidArgumentError(
                f"size must have a length for each axis, but got {len(self.size)} for shape {shape}.",
                fix="pass a length for each axis, including the channels.",
            )
        rooms = [whole - part for whole, part in zip(shape, self.size, strict=True)]
        if min(rooms, default=0) < 0:
            raise InvalidArgumentError(
                f"Need value.shape >= size, got {shape} and {self.size}.",
                fix="resize smaller images first.",
            )
        return rooms


@final
@dataclass(frozen=True)
class RandomFlip(RandomKernel):
    """Randomly reverses one axis."""

    moves_values = True
    takes_batches = True

    axis: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image, *seeds = parts
        check_image(image)
        if image.ndim == 3:
            return flipped(image, self.axis) if self.unit(seeds) < 0.5 else image
        # TensorFlow rounds the numbers of a batch, and flips at 1.
        return self._some_flipped(image, self.units(seeds, len(image)) > 0.5)

    def all_at_once(self, images: Array, *columns: Column) -> Array:
        return self._some_flipped(images, self.units_of_each(columns, len(images)) < 0.5)

    def _some_flipped(self, images: Array, flips: Array) -> Array:
        if self.axis == COLUMNS:
            found = hot_loops.some_mirrored(images, flips)
            if found is not None:
                return found
        if not is_small(images[:1]):
            out = np.empty(images.shape, images.dtype)
            for image, flip, new in zip(images, flips, out, strict=True):
                new[...] = flipped(image, self.axis) if flip else image
            return out
        out, chosen = images.copy(), np.flatnonzero(flips)
        out[chosen] = flipped(images[chosen], self.axis)
        return out


def _seed_rows(columns: Sequence[Column], count: int) -> list[list[int]] | None:
    """Return the seeds of each element as Python integers; None if they are not arrays of integers."""
    found: list[list[list[int]]] = []
    for column in columns:
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu":
            return None
        found.append(column.reshape(count, -1).tolist())
    return [[number for part in parts for number in part] for parts in zip(*found, strict=True)]


@final
@dataclass(frozen=True)
class JoinSeeds(Kernel):
    """Joins integers of each element with those that are the same for all.

    Attributes:
        fixed: The latter; None where an integer of the element belongs.
    """

    stays_on_host = True

    fixed: tuple[int | None, ...]

    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        if any(spec.shape.rank != 0 or spec.dtype.kind not in "iu" for spec in given):
            raise TypeError("Seeds are whole numbers.")
        return [TensorSpec([len(self.fixed)], dtypes.int64)]

    def run(self, *columns: Column) -> list[Column]:
        out, left = np.empty((length_of(columns[0]), len(self.fixed)), np.int64), iter(columns)
        for place, number in enumerate(self.fixed):
            out[:, place] = np.asarray(next(left)) if number is None else number
        return [out]


def drawn(kernel: RandomKernel, image: Any, seed: int | None, *more: Any) -> Any:
    """Run a random kernel, seeded by the current element; outside a dataset function, by the process's seeds."""
    draws = current_draws()
    if draws is not None:
        salted = replace(kernel, salt=draws.salt(seed))
        return applied_beside_constants(salted, image, *more, draws.words)
    if STAGE.get() is not None:
        raise DrawsForElements(seed)
    watcher = side_effects.here.watcher
    if watcher is not None:
        watcher.draw()
    words = draw(kernel.kind, operation_seed(seed), counted=seed is not None)
    return applied(kernel, image, *more, np.array(words, np.uint32))


def seeded(kernel: RandomKernel, image: Any, seed: Any, *more: Any) -> Any:
    """Run a random kernel that depends on nothing but the seed: two integers, or parts of the element."""
    kernel = replace(kernel, stateless=True)
    parts = cast("Sequence[Any]", seed) if isinstance(seed, (tuple, list)) else (seed,)
    vary = [part for part in parts if stands_for_part(part)]
    if vary:
        if len(vary) < len(parts):
            fixed = [
                None if stands_for_part(part) else whole_number(part, "seed") for part in parts
            ]
            parts = results_of(JoinSeeds(tuple(fixed)), *vary) or parts
        return applied(kernel, image, *more, *parts)
    return applied(kernel.fixed(lengths_of(seed, "seed", 2)), image, *more)
