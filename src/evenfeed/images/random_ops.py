"""Random image operations: crop, flip, brightness and contrast.

In a function passed to `Dataset.map`, random numbers depend on the seed, the pass and the position of the
element, as in `random_map`. Elsewhere they depend on the seeds that `evenfeed.random` uses.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, cast, final

import numpy as np

from evenfeed.core import side_effects
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import RowKernel, applied, stands_for_part
from evenfeed.core.random_bits import DrawsForElements, current_draws, key_of
from evenfeed.core.seeds import draw, operation_seed
from evenfeed.core.specs import TensorSpec
from evenfeed.images.colours import Brightness, Contrast
from evenfeed.images.geometry import COLUMNS, ROWS, check_image, flipped, lengths_of


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
    return _drawn(RandomCrop(lengths_of(size, "size")), value, seed)


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
    return _seeded(RandomCrop(lengths_of(size, "size")), value, seed)


def random_flip_left_right(image: Any, seed: int | None = None) -> Any:
    """Flip an image, or each image of a batch, horizontally with probability 1/2.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_flip_left_right(np.array([[[1], [2]]]))[..., 0].tolist() in ([[1, 2]], [[2, 1]])
        True
    """
    return _drawn(RandomFlip(COLUMNS), image, seed)


def random_flip_up_down(image: Any, seed: int | None = None) -> Any:
    """Flip an image, or each image of a batch, vertically with probability 1/2.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_flip_up_down(np.zeros([2, 3, 1])).shape
        (2, 3, 1)
    """
    return _drawn(RandomFlip(ROWS), image, seed)


def stateless_random_flip_left_right(image: Any, seed: Any) -> Any:
    """Flip an image horizontally with probability 1/2, depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_flip_left_right(np.zeros([2, 3, 1]), seed=(1, 2)).shape
        (2, 3, 1)
    """
    return _seeded(RandomFlip(COLUMNS), image, seed)


def stateless_random_flip_up_down(image: Any, seed: Any) -> Any:
    """Flip an image vertically with probability 1/2, depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_flip_up_down(np.zeros([2, 3, 1]), seed=(1, 2)).shape
        (2, 3, 1)
    """
    return _seeded(RandomFlip(ROWS), image, seed)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """Adjust the brightness of an image by a random delta in [-max_delta, max_delta).

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_brightness(np.zeros([1, 1, 1], np.float32), 0.0).tolist()
        [[[0.0]]]
    """
    if max_delta < 0:
        raise InvalidArgumentError(
            f"max_delta must be non-negative, but got {max_delta}.",
            fix="pass the largest change as a positive number.",
        )
    return _drawn(RandomBrightness(float(max_delta)), image, seed)


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    """Adjust the contrast of an image by a random factor in [lower, upper).

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_contrast(np.ones([2, 2, 1], np.float32), 0.5, 1.5).ravel().tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    if upper <= lower:
        raise InvalidArgumentError(
            f"upper must be > lower, but got {upper} and {lower}.",
            fix="pass two factors in order, such as lower=0.5, upper=1.5.",
        )
    if lower < 0:
        raise InvalidArgumentError(
            f"lower must be non-negative, but got {lower}.", fix="pass lower=0.0 or more."
        )
    return _drawn(RandomContrast(float(lower), float(upper)), image, seed)


@dataclass(frozen=True)
class RandomKernel(RowKernel):
    """A kernel whose arguments are an image and the seeds of its random numbers.

    Attributes:
        salt: Distinguishes several draws with the same seeds.
    """

    _: KW_ONLY
    salt: tuple[int, ...] = ()

    def chance(self, seeds: Sequence[Array], number: int = 0) -> float:
        """Return draw `number`: a random float in [0, 1)."""
        words = [int(word) for seed in seeds for word in seed.ravel()]
        return (key_of(*words, *self.salt, number) >> 75) / 2**53

    def fixed(self, seed: tuple[int, ...]) -> "RandomKernel":
        """Return a kernel with a fixed seed, whose only argument is the image."""
        return replace(self, salt=(*seed, *self.salt))


@final
@dataclass(frozen=True)
class RandomCrop(RandomKernel):
    """Crops to a random box; the result is a view."""

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
        starts = [
            int(self.chance(seeds, axis) * (room + 1)) if room else 0
            for axis, room in enumerate(rooms)
        ]
        return value[
            tuple(slice(at, at + part) for at, part in zip(starts, self.size, strict=True))
        ]


@final
@dataclass(frozen=True)
class RandomFlip(RandomKernel):
    """Randomly reverses one axis."""

    axis: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image, *seeds = parts
        check_image(image)
        if image.ndim == 3:
            return flipped(image, self.axis) if self._flips(seeds, 0) else image
        each = [flipped(x, self.axis) if self._flips(seeds, i) else x for i, x in enumerate(image)]
        return np.stack(each) if each else image

    def _flips(self, seeds: list[Array], number: int) -> bool:
        return self.chance(seeds, number) < 0.5


@final
@dataclass(frozen=True)
class RandomBrightness(RandomKernel):
    """Adds a random number to all values."""

    most: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image, *seeds = parts
        return Brightness((2 * self.chance(seeds) - 1) * self.most).one(image)


@final
@dataclass(frozen=True)
class RandomContrast(RandomKernel):
    """Scales distances from the mean by a random factor."""

    lower: float
    upper: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image, *seeds = parts
        factor = self.lower + self.chance(seeds) * (self.upper - self.lower)
        return Contrast(factor).one(image)


def _drawn(kernel: RandomKernel, image: Any, seed: int | None) -> Any:
    """Run a random kernel, seeded by the current element; outside a dataset function, by the process's seeds."""
    draws = current_draws()
    if draws is not None:
        return applied(replace(kernel, salt=draws.salt(seed)), image, draws.words)
    if stands_for_part(image):
        raise DrawsForElements(seed)
    watcher = side_effects.here.watcher
    if watcher is not None:
        watcher.draw()
    kind = type(kernel).__name__
    words = draw(kind, operation_seed(seed), counted=seed is not None)
    return applied(kernel, image, np.array(words, np.uint32))


def _seeded(kernel: RandomKernel, image: Any, seed: Any) -> Any:
    parts = cast("Sequence[Any]", seed) if isinstance(seed, (tuple, list)) else (seed,)
    if any(map(stands_for_part, parts)):
        return applied(kernel, image, *parts)
    return applied(kernel.fixed(lengths_of(seed, "seed", 2)), image)
