"""Random boxes that cover an object: `sample_distorted_bounding_box`, with TensorFlow's numbers."""

# ruff: noqa: PLR0913, PLR0917 - TensorFlow's arguments

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.randomness import philox
from evenfeed.core.randomness.philox import Stream
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.random_kernels import RandomKernel
from evenfeed.images.random_ops import drawn, seeded

_RATIOS: Final = (0.75, 1.33)
_AREAS: Final = (0.05, 1.0)
_BUFFERED: Final = 64  # random words that are computed at a time
_WORDS: Final = 2**32


class DistortedBox(NamedTuple):
    """A box: where `evenfeed.slice` begins, how large it is, and the same as fractions, to draw it."""

    begin: Any
    size: Any
    bboxes: Any


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = 0,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBox:
    """Choose a random box that covers a part of one of the given boxes, to crop an image to.

    Args:
        image_size: The height, width and channels of the image.
        bounding_boxes: The boxes, as [batch, boxes, 4]: top, left, bottom and right, from 0 to 1.
        seed: Combined with the global seed; makes the boxes the same in every run. 0 for none.
        min_object_covered: The least part of a given box that the random box covers.
        aspect_ratio_range: The least and the largest width, as a multiple of the height.
        area_range: The least and the largest part of the image that the box covers.
        max_attempts: How often to try; the whole image is returned if no attempt succeeds.
        use_image_if_no_bounding_boxes: Without given boxes, cover a part of the image. Otherwise raise.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> image = np.zeros([20, 30, 3])
        >>> begin, size, box = tf.image.sample_distorted_bounding_box(image.shape, [[[0.2, 0.2, 0.8, 0.8]]])
        >>> tf.slice(image, begin, size).shape[2], box.shape
        (3, (1, 1, 4))
    """
    del name
    kernel = _kernel(
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
    )
    return _parts(drawn(kernel, image_size, seed or None, bounding_boxes))


def stateless_sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Any,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBox:
    """Choose a random box that depends only on the seed, as `sample_distorted_bounding_box` does.

    Args:
        image_size: The height, width and channels of the image.
        bounding_boxes: The boxes, as [batch, boxes, 4]: top, left, bottom and right, from 0 to 1.
        seed: Two integers.
        min_object_covered: As for `sample_distorted_bounding_box`.
        aspect_ratio_range: As for `sample_distorted_bounding_box`.
        area_range: As for `sample_distorted_bounding_box`.
        max_attempts: As for `sample_distorted_bounding_box`.
        use_image_if_no_bounding_boxes: As for `sample_distorted_bounding_box`.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> found = tf.image.stateless_sample_distorted_bounding_box([20, 30, 3], [[[0, 0, 1, 1]]], seed=(1, 2))
        >>> found.begin.tolist(), found.size.tolist()
        ([3, 12, 0], [16, 15, -1])
    """
    del name
    kernel = _kernel(
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
    )
    return _parts(seeded(kernel, image_size, seed, bounding_boxes))


def _kernel(
    covered: float, ratios: Any, areas: Any, attempts: int | None, whole: bool | None
) -> "DistortBox":
    low, high = (float(end) for end in (_RATIOS if ratios is None else ratios))
    least, most = (float(end) for end in (_AREAS if areas is None else areas))
    return DistortBox(
        min_object_covered=float(covered),
        aspect_ratios=(low, high),
        areas=(least, most),
        attempts=100 if attempts is None else int(attempts),
        whole=bool(whole),
    )


def _parts(found: Any) -> DistortedBox:
    return DistortedBox(*(applied(PartOfBox(name), found) for name in DistortedBox._fields))


@final
@dataclass(frozen=True)
class PartOfBox(RowKernel):
    """Reads one part of a box that `DistortBox` chose."""

    name: str

    def spec(self, *given: TensorSpec) -> TensorSpec:
        if self.name == "bboxes":
            return TensorSpec([1, 1, 4], dtypes.float32)
        return TensorSpec([3], given[0].dtype)

    def one(self, *parts: Array) -> Array:
        top, left, height, width, *whole = parts[0]
        if self.name == "begin":
            return np.array([top, left, 0], parts[0].dtype)
        if self.name == "size":
            return np.array([height, width, -1], parts[0].dtype)
        corners = np.array([top, left, top + height, left + width], np.float32)
        return (corners / np.array(whole * 2, np.float32)).reshape(1, 1, 4)


@final
@dataclass(frozen=True, kw_only=True)
class DistortBox(RandomKernel):
    """Chooses a box: its first row, first column, height and width, then the height and width of the image."""

    min_object_covered: float
    aspect_ratios: tuple[float, float]
    areas: tuple[float, float]
    attempts: int
    whole: bool

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec([6], given[0].dtype)

    def one(self, *parts: Array) -> Array:
        size, given, *seeds = parts
        if size.shape != (3,) or size.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"image_size must be three integers, but got shape {size.shape} and {size.dtype.name}.",
                fix="pass evenfeed.shape(image).",
            )
        height, width = (int(length) for length in size[:2])
        objects = self._objects(given, height, width)
        words = _Words(self.few_words(seeds), lambda: self.stream(seeds))
        found = (self._attempt(height, width, words) for _ in range(self.attempts))
        fitting = (box for box in found if box and self._covers(box, objects))
        return np.array([*next(fitting, (0, 0, height, width)), height, width], size.dtype)

    def _objects(self, boxes: Array, height: int, width: int) -> list[tuple[int, ...]]:
        floats = boxes.astype(np.float32)
        if floats.ndim != 3 or floats.shape[-1] != 4:
            raise InvalidArgumentError(
                f"bounding_boxes must have the shape [batch, boxes, 4], but got {boxes.shape}.",
                fix="pass top, left, bottom and right of each box, as [[[0.1, 0.2, 0.8, 0.9]]].",
            )
        flat = floats.reshape(-1, 4)
        if not ((flat >= 0) & (flat <= 1)).all():
            raise InvalidArgumentError(
                "bounding_boxes must be fractions of the image, from 0 to 1.",
                fix="divide rows by the height and columns by the width.",
            )
        if len(flat) == 0 and not self.whole:
            raise InvalidArgumentError(
                "There are no bounding boxes.", fix="pass use_image_if_no_bounding_boxes=True."
            )
        if len(flat) == 0:
            return [(0, 0, height, width)]
        scaled = flat * np.array([height, width] * 2, np.float32)
        return [tuple(int(corner) for corner in box) for box in scaled]

    def _attempt(self, height: int, width: int, words: "_Words") -> tuple[int, ...] | None:
        """Return the top, left, height and width of a random box; None if no such box has the wanted area."""
        low, high = (np.float32(end) for end in self.aspect_ratios)
        ratio = words.unit() * (high - low) + low
        least, most = (np.float32(part) * width * height for part in self.areas)
        tall, tallest = (_nearest(np.sqrt(area / ratio)) for area in (least, most))
        if _nearest(tallest * ratio) > width:
            tallest = int((width + 0.5 - 1e-7) / float(ratio))
        tallest = min(tallest, height)
        tall = min(tall, tallest)
        if tall < tallest:
            tall += words.below(tallest - tall + 1)
        if np.float32(_nearest(tall * ratio) * tall) < least:
            tall += 1
        if np.float32(_nearest(tall * ratio) * tall) > most:
            tall -= 1
        wide = _nearest(tall * ratio)
        if not (
            least <= np.float32(wide * tall) <= most and 0 < wide <= width and 0 < tall <= height
        ):
            return None
        top = words.below(height - tall) if tall < height else 0
        left = words.below(width - wide) if wide < width else 0
        return top, left, tall, wide

    def _covers(self, box: tuple[int, ...], objects: list[tuple[int, ...]]) -> bool:
        top, left, tall, wide = box
        for first, before, last, behind in objects:
            area = (last - first) * (behind - before)
            rows = max(0, min(last, top + tall) - max(first, top))
            columns = max(0, min(behind, left + wide) - max(before, left))
            if area >= 1 and np.float32(rows * columns) / np.float32(area) >= np.float32(
                self.min_object_covered
            ):
                return True
        return False


class _Words:
    """Reads the random words of a stream one by one, as TensorFlow's SimplePhilox does."""

    def __init__(self, first: list[int], stream: Callable[[], Stream]) -> None:
        self._next = self._numbers(first, stream).__next__

    def unit(self) -> np.float32:
        """Return a float in [0, 1), with 23 random bits."""
        return philox.unit(self._next())

    def below(self, limit: int) -> int:
        """Return an integer below a limit, each with the same probability."""
        if limit & (limit - 1) == 0:
            return self._next() & (limit - 1)
        skewed = _WORDS % limit
        while (word := self._next()) < skewed:
            pass
        return word % limit

    @staticmethod
    def _numbers(first: list[int], stream: Callable[[], Stream]) -> Iterator[int]:
        # The first attempt usually succeeds, and needs four words: a random ratio, height, row and column.
        yield from first
        words, count = stream(), _BUFFERED // 4
        for start in itertools.count(1, count):
            steps = np.arange(start, start + count, dtype=np.uint32)
            yield from words.blocks(steps).ravel().tolist()


def _nearest(number: Any) -> int:
    return int(np.rint(np.float32(number)))
