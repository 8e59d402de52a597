"""Adds the noise that a JPEG file of a given quality has."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.colours import converted
from evenfeed.images.image_files import JpegWay, jpeg_file, jpeg_pixels


def adjust_jpeg_quality(
    image: Any, jpeg_quality: int, dct_method: str = "", name: str | None = None
) -> Any:
    """Encode an image as a JPEG file, and decode it.

    Args:
        image: An image (height, width, channels) with 1 or 3 channels.
        jpeg_quality: The quality, from 0 to 100.
        dct_method: "INTEGER_FAST", "INTEGER_ACCURATE", or "" for "INTEGER_FAST".
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.adjust_jpeg_quality(np.full([8, 8, 3], 128, np.uint8), 90)[0, 0].tolist()
        [128, 128, 128]
    """
    del name
    quality = whole_number(jpeg_quality, "jpeg_quality")
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(
            f"jpeg_quality must be in [0,100], but got {quality}.", fix="pass 75, for example."
        )
    return applied(JpegQuality(quality, dct_method == "INTEGER_ACCURATE"), image)


@final
@dataclass(frozen=True)
class JpegQuality(RowKernel):
    """Encodes and decodes."""

    quality: int
    exact: bool = False

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        if image.ndim != 3 or image.shape[-1] not in (1, 3):
            raise InvalidArgumentError(
                f"image must be 3-dimensional with 1 or 3 channels, but got shape {image.shape}.",
                fix="pass height, width and channels.",
            )
        pixels = converted(image, dtypes.uint8, saturate=True)
        file = jpeg_file(pixels, quality=self.quality, subsampling=2)
        found = jpeg_pixels(file, image.shape[-1], JpegWay(exact=self.exact))
        return converted(found, image.dtype, saturate=True)

    def differentiable(self, *parts: Any) -> Any:
        """Return a result without a gradient, as in TensorFlow."""
        return self.one(np.asarray(parts[0]))
