"""Random crops and flips, and where the numbers of random image operations come from.

In a function passed to `Dataset.map`, random numbers depend on the seed, the pass and the position of the
element, as in `random_map`. Elsewhere they depend on the seeds that `evenfeed.random` uses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.randomness import philox
from evenfeed.core.randomness.philox import Stream
from evenfeed.core.randomness.random_bits import DrawsForElements, current_draws, key_of
from evenfeed.core.randomness.seeds import draw, operation_seed
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import STAGE, RowKernel, stands_for_part
from evenfeed.images import hot_loops
from evenfeed.images.bound_kernels import applied_beside_constants
from evenfeed.images.geometry import COLUMNS, ROWS, check_image, flipped, lengths_of

_LOW_32: Final = 2**32 - 1
_ALL_BITS: Final = 2**64 - 1


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
        return philox.units(self.stream(seeds), count, dtypes.float32)

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

    size: tuple[int, ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(self.size, given[0].dtype)

    def one(self, *parts: Array) -> Array:
        value, *seeds = parts
        if value.ndim != len(self.size):
            raise InvalidArgumentError(
                f"size must have a length for each axis, but got {len(self.size)} for shape {value.shape}.",
                fix="pass a length for each axis, including the channels.",
            )
        rooms = [whole - part for whole, part in zip(value.shape, self.size, strict=True)]
        if min(rooms, default=0) < 0:
            raise InvalidArgumentError(
                f"Need value.shape >= size, got {value.shape} and {self.size}.",
                fix="resize smaller images first.",
            )
        offsets = self.integers(seeds, value.ndim, 0, 2**31 - 1)
        starts = [offset % (room + 1) for offset, room in zip(offsets, rooms, strict=True)]
        return value[
            tuple(slice(at, at + part) for at, part in zip(starts, self.size, strict=True))
        ]


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
        flips = self.units(seeds, len(image)) > 0.5
        each = [flipped(x, self.axis) if flip else x for x, flip in zip(image, flips, strict=True)]
        return np.stack(each) if each else image

    def all_at_once(self, images: Array, *columns: Column) -> Array:
        flips = [bool(self.unit(seeds) < 0.5) for seeds in seeds_of(columns, len(images))]
        if self.axis == COLUMNS:
            found = hot_loops.some_mirrored(images, flips)
            if found is not None:
                return found
        out = np.empty(images.shape, images.dtype)
        for image, flip, new in zip(images, flips, out, strict=True):
            new[...] = flipped(image, self.axis) if flip else image
        return out


def seeds_of(columns: Sequence[Column], count: int) -> Iterator[Sequence[Array]]:
    """Yield the seeds of each of several elements, given those that are parts of the elements."""
    rows = Block(tuple(columns), count).cut_up()
    return (rows.row(index) for index in range(count))


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
    if any(map(stands_for_part, parts)):
        return applied(kernel, image, *more, *parts)
    return applied(kernel.fixed(lengths_of(seed, "seed", 2)), image, *more)
