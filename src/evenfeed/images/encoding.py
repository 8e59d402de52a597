"""Encodes images: `tf.io.encode_jpeg` and `tf.io.encode_png`."""

# ruff: noqa: PLR0913, PLR0917 - TensorFlow's arguments

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType, in_wanted_dtype
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.image_files import jpeg_file
from evenfeed.images.png_writing import png_file


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
    channels = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[format]
    # A list of numbers takes this dtype, too.
    pixels = in_wanted_dtype(image, dtypes.uint8)
    if isinstance(image, list):
        pixels = to_array(pixels, dtypes.uint8)
    return applied(EncodeJpeg(channels, how), pixels)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """Encode an image as a PNG file, without loss. Batches of images give a file for each.

    Args:
        image: A uint8 or uint16 image (..., height, width, channels) with 1 to 4 channels.
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
    return applied(EncodePng(compression), image)


@final
@dataclass(frozen=True)
class EncodeJpeg(RowKernel):
    """Encodes one image as a scalar string."""

    channels: tuple[int, ...]
    how: tuple[tuple[str, Any], ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([], dtypes.string)

    def one(self, *parts: Array) -> Array:
        _check(parts[0], self.channels, (dtypes.uint8,))
        return _scalar(jpeg_file(parts[0], **dict(self.how)))


@final
@dataclass(frozen=True)
class EncodePng(RowKernel):
    """Encodes images as strings."""

    compression: int

    def spec(self, *given: TensorSpec) -> TensorSpec:
        rank = given[0].shape.rank
        shape = None if rank is None else list(given[0].shape)[: max(rank - 3, 0)]
        return TensorSpec(shape, dtypes.string)

    def one(self, *parts: Array) -> Array:
        images = parts[0]
        if images.ndim < 3:
            _check(images, _PNG_CHANNELS, _PNG_DTYPES)
        files = np.empty(images.shape[:-3], dtypes.string)
        for place in np.ndindex(files.shape):
            _check(images[place], _PNG_CHANNELS, _PNG_DTYPES)
            files[place] = png_file(images[place], self.compression)
        return files


_PNG_CHANNELS: Final = (1, 2, 3, 4)
_PNG_DTYPES: Final = (dtypes.uint8, dtypes.uint16)


def _check(image: Array, channels: tuple[int, ...], allowed: tuple[DType, ...]) -> None:
    if image.ndim != 3 or image.shape[-1] not in channels or not image.size:
        raise InvalidArgumentError(
            f"image must be 3-dimensional with {channels} channels, but got shape {image.shape}.",
            fix="pass height, width and channels. Of a batch, encode each image: dataset.unbatch().",
        )
    if image.dtype not in allowed:
        raise InvalidArgumentError(
            f"image must be uint8, but is {dtypes.name_of(image.dtype)}.",
            fix="call evenfeed.image.convert_image_dtype(image, evenfeed.uint8).",
        )


def _scalar(file: bytes) -> Array:
    scalar = np.empty((), dtypes.string)
    scalar[()] = file
    return scalar
