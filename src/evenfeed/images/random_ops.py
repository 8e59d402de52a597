"""Random crops and flips, and where the numbers of random image operations come from.

In a function passed to `Dataset.map`, random numbers depend on the seed, the pass and the position of the
element, as in `random_map`. Elsewhere they depend on the seeds that `evenfeed.random` uses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.arguments import whole_number
from evenfeed.core.block import Column, length_of
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.randomness.random_bits import DrawsForElements, current_draws
from evenfeed.core.randomness.seeds import draw, operation_seed
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import (
    STAGE,
    Kernel,
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
from evenfeed.images.random_kernels import RandomKernel

_MOST_OFFSET: Final = 2**31 - 1
# How many random words of each element are mixed together.
_FEW_WORDS: Final = 4


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

    def of_list(self, images: list[Any], *columns: Column) -> Column:
        if len(self.size) > _FEW_WORDS:
            return super().of_list(images, *columns)
        words = self.words_of_each(columns, len(images)).tolist()
        return [self._box(image, row) for image, row in zip(images, words, strict=True)]

    def _box(self, image: Array, words: Sequence[int]) -> Array:
        rooms = self._rooms(image.shape)
        axes = zip(words, rooms, self.size, strict=False)  # images have three
        starts = [(word % _MOST_OFFSET % (room + 1), size) for word, room, size in axes]
        return image[tuple([slice(at, at + size) for at, size in starts])]

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

    def of_list(self, images: list[Any], *columns: Column) -> Column:
        if any(image.ndim != 3 for image in images):
            return super().of_list(images, *columns)
        flips = (self.units_of_each(columns, len(images)) < 0.5).tolist()
        pairs = zip(images, flips, strict=True)
        return [flipped(image, self.axis) if flip else image for image, flip in pairs]

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
