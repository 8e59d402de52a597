"""Encodes images: `tf.io.encode_jpeg` and `tf.io.encode_png`."""

# ruff: noqa: PLR0913, PLR0917 - TensorFlow's arguments

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import RowKernel, applied
from evenfeed.core.specs import TensorSpec
from evenfeed.images.image_files import encoded


def encode_jpeg(
    image: Any,
    format: str = "",  # noqa: A002 - TensorFlow's name
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Any:
    """Encode an image as a JPEG file.

    Args:
        image: A uint8 image (height, width, channels) with 1 or 3 channels.
        format: "grayscale" or "rgb"; "" chooses by the number of channels.
        quality: The quality, from 0 to 100.
        progressive: Write a progressive JPEG.
        optimize_size: Spend more time to write a smaller file.
        chroma_downsampling: Store colours at half the resolution.
        density_unit: The unit of the densities: "in" or "cm".
        x_density: The horizontal number of pixels per unit.
        y_density: The vertical number of pixels per unit.
        xmp_metadata: Accepted for compatibility; ignored.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> bool(tf.io.is_jpeg(tf.io.encode_jpeg(np.zeros([4, 6, 3], np.uint8))))
        True
    """
    del xmp_metadata, name
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {quality}.", fix="pass 95.")
    if format not in ("", "grayscale", "rgb"):
        raise InvalidArgumentError(
            f"format must be '', 'grayscale' or 'rgb', but got {format!r}.", fix="omit it."
        )
    inches = 1.0 if density_unit == "in" else 2.54
    how = (
        ("quality", quality),
        ("progressive", bool(progressive)),
        ("optimize", bool(optimize_size)),
        ("subsampling", 2 if chroma_downsampling else 0),
        ("dpi", (x_density * inches, y_density * inches)),
    )
    return applied(Encode("JPEG", {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[format], how), image)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """Encode an image as a PNG file, without loss.

    Args:
        image: A uint8 or uint16 image (height, width, channels) with 1 to 4 channels.
        compression: From 0 (fast, large file) to 9 (slow, small file); -1 for zlib's default.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> file = tf.io.encode_png(np.full([2, 2, 4], 7, np.uint8))
        >>> tf.io.decode_png(file)[0, 0].tolist()
        [7, 7, 7, 7]
    """
    del name
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(
            f"compression should be in [-1,9], got {compression}.", fix="omit it."
        )
    how = () if compression == -1 else (("compress_level", compression),)
    return applied(Encode("PNG", (1, 2, 3, 4), how), image)


@final
@dataclass(frozen=True)
class Encode(RowKernel):
    """Encodes one image as a scalar string."""

    kind: Any
    channels: tuple[int, ...]
    how: tuple[tuple[str, Any], ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([], dtypes.string)

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        if image.ndim != 3 or image.shape[-1] not in self.channels or not image.size:
            raise InvalidArgumentError(
                f"image must be 3-dimensional with {self.channels} channels, but got shape {image.shape}.",
                fix="pass height, width and channels.",
            )
        wide = self.kind == "PNG" and image.dtype == dtypes.uint16
        if image.dtype != dtypes.uint8 and not wide:
            raise InvalidArgumentError(
                f"image must be uint8, but is {dtypes.name_of(image.dtype)}.",
                fix="call evenfeed.image.convert_image_dtype(image, evenfeed.uint8).",
            )
        scalar = np.empty((), dtypes.string)
        scalar[()] = encoded(image, self.kind, **dict(self.how))
        return scalar
