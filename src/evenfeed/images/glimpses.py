"""Cuts windows out of images that may reach beyond them: the kernel of `extract_glimpse`."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.geometry import with_size


@final
@dataclass(frozen=True)
class Places:
    """Where the windows of a batch of images begin.

    Attributes:
        window: The height and the width of the windows.
        centered: Whether offsets count from the centre of an image.
        normalized: Whether offsets are fractions of its size.
    """

    window: tuple[int, int]
    centered: bool
    normalized: bool

    def first_pixels(self, shape: tuple[int, ...], offsets: Any) -> Any:
        """Return the first row and column of each window, as whole floats. The offsets are an array of NumPy or JAX."""
        if tuple(offsets.shape) != (shape[0], 2):
            raise InvalidArgumentError(
                f"offsets must be a row and a column for each of {shape[0]} images, but have shape "
                f"{tuple(offsets.shape)}.",
                fix="pass an array [images, 2].",
            )
        lengths = np.array(shape[1:3], np.float32)
        if self.centered and self.normalized:
            return (offsets * lengths + lengths - np.array(self.window, np.float32)) / 2
        if self.centered:
            return offsets + lengths / 2
        return offsets * lengths if self.normalized else offsets


@final
@dataclass(frozen=True)
class Glimpse(RowKernel):
    """Cuts a window out of each image of a batch, with zeros outside of the image."""

    places: Places

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(with_size(given[0].shape, *self.places.window), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        images, offsets = parts
        count, *size, channels = images.shape
        starts = np.trunc(self.places.first_pixels(images.shape, offsets)).astype(dtypes.int32)
        out = np.empty((count, *self.places.window, channels), images.dtype)
        for image, start, new in zip(images, starts.tolist(), out, strict=True):
            ends = zip(start, size, self.places.window, strict=True)
            seen = [(max(at, 0), min(at + room, length)) for at, length, room in ends]
            if any(
                last - first < room
                for (first, last), room in zip(seen, self.places.window, strict=True)
            ):
                new[...] = 0
            if all(first < last for first, last in seen):
                rows, columns = (slice(*each) for each in seen)
                there = (slice(f - at, e - at) for (f, e), at in zip(seen, start, strict=True))
                new[tuple(there)] = image[rows, columns]
        return out
