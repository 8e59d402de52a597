"""Random changes of brightness, contrast, hue, saturation and JPEG quality."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.colour_spaces import Hue, Saturation
from evenfeed.images.jpeg_quality import JpegQuality
from evenfeed.images.levels import Brightness, Contrast
from evenfeed.images.random_kernels import RandomKernel
from evenfeed.images.random_ops import drawn, seeded


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """Adjust the brightness of an image by a random delta in [-max_delta, max_delta).

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_brightness(np.zeros([1, 1, 1], np.float32), 0.0).tolist()
        [[[0.0]]]
    """
    return drawn(_brightness(max_delta), image, seed)


def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> Any:
    """Adjust the brightness of an image by a random delta, depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_brightness(np.zeros([1, 1, 1], np.float32), 0.0, (1, 2)).tolist()
        [[[0.0]]]
    """
    return seeded(_brightness(max_delta), image, seed)


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    """Adjust the contrast of an image by a random factor in [lower, upper).

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_contrast(np.ones([2, 2, 1], np.float32), 0.5, 1.5).ravel().tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    return drawn(_factor(Contrast, lower, upper, Contrast.of_each), image, seed)


def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> Any:
    """Adjust the contrast of an image by a random factor in [lower, upper), depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_contrast(np.ones([1, 2, 1], np.float32), 0.5, 1.5, (1, 2)).tolist()
        [[[1.0], [1.0]]]
    """
    return seeded(_factor(Contrast, lower, upper, Contrast.of_each), image, seed)


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """Turn the hues of an image by a random part of a full turn in [-max_delta, max_delta).

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_hue(np.array([[[9, 0, 0]]], np.uint8), 0.0).tolist()
        [[[9, 0, 0]]]
    """
    return drawn(_hue(max_delta), image, seed)


def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> Any:
    """Turn the hues of an image by a random part of a full turn, depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_hue(np.array([[[9, 0, 0]]], np.uint8), 0.0, (1, 2)).tolist()
        [[[9, 0, 0]]]
    """
    return seeded(_hue(max_delta), image, seed)


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    """Multiply the saturation of an image by a random factor in [lower, upper).

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_saturation(np.array([[[9, 9, 9]]], np.uint8), 0.5, 1.5).tolist()
        [[[9, 9, 9]]]
    """
    return drawn(_factor(Saturation, lower, upper), image, seed)


def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any) -> Any:
    """Multiply the saturation of an image by a random factor in [lower, upper), depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_saturation(np.array([[[9, 9, 9]]], np.uint8), 0.5, 1.5, (1, 2)).tolist()
        [[[9, 9, 9]]]
    """
    return seeded(_factor(Saturation, lower, upper), image, seed)


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Any:
    """Add the noise of a JPEG file with a random quality in [min_jpeg_quality, max_jpeg_quality).

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.random_jpeg_quality(np.zeros([8, 8, 3], np.uint8), 50, 90).shape
        (8, 8, 3)
    """
    return drawn(_quality(min_jpeg_quality, max_jpeg_quality), image, seed)


def stateless_random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any
) -> Any:
    """Add the noise of a JPEG file with a random quality, depending only on the seed.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.stateless_random_jpeg_quality(np.zeros([8, 8, 3], np.uint8), 50, 90, (1, 2)).shape
        (8, 8, 3)
    """
    return seeded(_quality(min_jpeg_quality, max_jpeg_quality), image, seed)


@final
@dataclass(frozen=True)
class RandomAdjustment(RandomKernel):
    """Runs another kernel with a random number.

    Attributes:
        make: Makes the kernel of a number.
        lower: The lower bound of the number, inclusive.
        upper: The upper bound, exclusive.
        whole: Whether the number is an integer.
        each: Changes each image of a batch by a number of its own, if there is a fast way.
    """

    takes_batches = True

    make: Callable[[Any], RowKernel]
    lower: float
    upper: float
    whole: bool = False
    each: Callable[[Array, Array], Array] | None = None

    @property
    def joins(self) -> bool:
        return self.make is not Brightness  # which reads crops where they are

    @property
    def kind(self) -> str:
        return f"Random{self.make.__name__}"

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image, *seeds = parts
        return self._made(seeds).one(image)

    def of_list(self, images: list[Any], *columns: Column) -> Column:
        if self.whole or not images:
            return super().of_list(images, *columns)
        numbers = self.numbers_of_each(columns, len(images), self.lower, self.upper)
        if self.make is not Brightness or not _are_floats_of_one_shape(images):
            pairs = zip(images, numbers.tolist(), strict=True)
            return [self.make(number).one(image) for image, number in pairs]
        out: Array = np.empty((len(images), *images[0].shape), np.float32)
        for row, image in enumerate(images):
            np.add(image, numbers[row], out=out[row])
        return out

    def all_at_once(self, images: Array, *columns: Column) -> Array:
        if self.whole:
            rows = Block((images, *columns), len(images)).cut_up()
            return np.array([self.one(*rows.row(index)) for index in range(len(images))])
        numbers = self.numbers_of_each(columns, len(images), self.lower, self.upper)
        if self.each is not None:
            return self.each(images, numbers)
        pairs = zip(images, numbers.tolist(), strict=True)
        return np.array([self.make(number).one(image) for image, number in pairs])

    def differentiable(self, *parts: Any) -> Any:
        image, *seeds = parts
        return self._made(seeds).differentiable(image)

    def _made(self, seeds: Sequence[Array]) -> RowKernel:
        if self.whole:
            return self.make(self.integers(seeds, 1, int(self.lower), int(self.upper))[0])
        return self.make(self.between(seeds, self.lower, self.upper))


def _are_floats_of_one_shape(images: Sequence[Any]) -> bool:
    kind = (np.ndarray, images[0].shape, dtypes.float32)
    return all((type(image), image.shape, image.dtype) == kind for image in images)


def _brightness(most: float) -> RandomAdjustment:
    _check_delta(most)
    return RandomAdjustment(Brightness, -float(most), float(most), each=Brightness.of_each)


def _hue(most: float) -> RandomAdjustment:
    _check_delta(most)
    if most > 0.5:
        raise InvalidArgumentError(
            f"max_delta must be <= 0.5, but got {most}.",
            fix="pass the largest part of a full turn.",
        )
    return RandomAdjustment(Hue, -float(most), float(most))


def _check_delta(most: float) -> None:
    if most < 0:
        raise InvalidArgumentError(
            f"max_delta must be non-negative, but got {most}.",
            fix="pass the largest change as a positive number.",
        )


def _factor(
    make: Callable[[Any], RowKernel],
    lower: float,
    upper: float,
    each: Callable[[Array, Array], Array] | None = None,
) -> RandomAdjustment:
    if upper <= lower:
        raise InvalidArgumentError(
            f"upper must be > lower, but got {upper} and {lower}.",
            fix="pass two factors in order, such as lower=0.5, upper=1.5.",
        )
    if lower < 0:
        raise InvalidArgumentError(
            f"lower must be non-negative, but got {lower}.", fix="pass lower=0.0 or more."
        )
    return RandomAdjustment(make, float(lower), float(upper), each=each)


def _quality(lower: int, upper: int) -> RandomAdjustment:
    if not 0 <= lower < upper <= 100:
        raise InvalidArgumentError(
            f"The qualities must be in order and between 0 and 100, but got {lower} and {upper}.",
            fix="pass min_jpeg_quality and max_jpeg_quality, such as 75 and 95.",
        )
    return RandomAdjustment(JpegQuality, lower, upper, whole=True)
