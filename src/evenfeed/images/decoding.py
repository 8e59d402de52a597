"""Decodes images: `tf.io.decode_jpeg`, `decode_png`, `decode_image` and so on."""

# ruff: noqa: PLR0913, PLR0917 - TensorFlow's arguments

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_values import single_text
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.colours import converted
from evenfeed.images.geometry import Crop, lengths_of
from evenfeed.images.image_files import (
    WHOLE,
    Format,
    JpegWay,
    format_of,
    frames,
    jpeg_pixels,
    jpeg_size,
    other_pixels,
)

_METHODS: Final = ("", "INTEGER_FAST", "INTEGER_ACCURATE")


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """Decode a JPEG file to uint8 pixels: height, width, channels. PNG and GIF files are accepted too.

    In `Dataset.map` it runs in `num_parallel_calls` threads.

    Args:
        contents: The bytes of the file.
        channels: 1 for grayscale, 3 for RGB, 0 for the channels of the file.
        ratio: 2, 4 or 8 decode to half, a quarter or an eighth of the size, which is faster.
        fancy_upscaling: Smooth the colours when they are stored at half the resolution.
        try_recover_truncated: Accept a truncated file; missing pixels are grey.
        acceptable_fraction: Accepted for compatibility; ignored.
        dct_method: "INTEGER_FAST", "INTEGER_ACCURATE", or "" for "INTEGER_FAST".
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> file = tf.io.encode_jpeg(np.zeros([4, 6, 3], np.uint8))
        >>> tf.io.decode_jpeg(file).shape
        (4, 6, 3)
        >>> tf.io.decode_jpeg(file, channels=1).shape
        (4, 6, 1)
    """
    del acceptable_fraction, name
    jpeg = _jpeg_way(ratio, fancy_upscaling, try_recover_truncated, dct_method)
    return applied(Decode(("JPEG", "PNG", "GIF"), _checked(channels), jpeg=jpeg), contents)


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """Decode a JPEG file, and crop it to a box.

    Args:
        contents: The bytes of the file.
        crop_window: The box: its first row, first column, height and width.
        channels: As for `decode_jpeg`.
        ratio: As for `decode_jpeg`.
        fancy_upscaling: As for `decode_jpeg`.
        try_recover_truncated: As for `decode_jpeg`.
        acceptable_fraction: As for `decode_jpeg`.
        dct_method: As for `decode_jpeg`.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> file = tf.io.encode_jpeg(np.zeros([40, 60, 3], np.uint8))
        >>> tf.io.decode_and_crop_jpeg(file, [10, 20, 3, 4]).shape
        (3, 4, 3)
    """
    del acceptable_fraction, name
    jpeg = _jpeg_way(ratio, fancy_upscaling, try_recover_truncated, dct_method)
    box = Crop(*lengths_of(crop_window, "crop_window", 4))
    if min(box.top, box.left) < 0 or min(box.height, box.width) < 1:
        raise InvalidArgumentError(
            f"Invalid JPEG data or crop window: {list(crop_window)}.",
            fix="pass the first row, the first column, the height and the width.",
        )
    return applied(box, applied(Decode(("JPEG",), _checked(channels), jpeg=jpeg), contents))


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Any:
    """Decode a PNG file to pixels: height, width, channels. JPEG and GIF files are accepted too.

    Args:
        contents: The bytes of the file.
        channels: 1 for grayscale, 3 for RGB, 4 for RGBA, 0 for the channels of the file.
        dtype: uint8 or uint16.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> file = tf.io.encode_png(np.array([[[1], [2]]], np.uint8))
        >>> tf.io.decode_png(file)[..., 0].tolist()
        [[1, 2]]
    """
    del name
    wanted = _one_of(dtype, (dtypes.uint8, dtypes.uint16))
    return applied(Decode(("PNG", "JPEG", "GIF"), _checked(channels), wanted), contents)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Any:
    """Decode a BMP file to uint8 pixels: height, width, channels.

    Args:
        contents: The bytes of the file.
        channels: 3 for RGB, 4 for RGBA, 0 for the channels of the file.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import io
        >>> import PIL.Image
        >>> import evenfeed as tf
        >>> file = io.BytesIO()
        >>> PIL.Image.new("RGB", (6, 4)).save(file, "BMP")
        >>> tf.io.decode_bmp(file.getvalue()).shape
        (4, 6, 3)
    """
    del name
    return applied(Decode(("BMP",), _checked(channels)), contents)


def decode_gif(contents: Any, name: str | None = None) -> Any:
    """Decode all frames of a GIF file to uint8 pixels: frame, height, width, 3 channels.

    Examples:
        >>> import io
        >>> import PIL.Image
        >>> import evenfeed as tf
        >>> file = io.BytesIO()
        >>> PIL.Image.new("RGB", (6, 4)).save(file, "GIF")
        >>> tf.io.decode_gif(file.getvalue()).shape
        (1, 4, 6, 3)
    """
    del name
    return applied(Decode(("GIF",), 3, animated=True), contents)


def decode_webp(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Any:
    """Decode all frames of a WebP file to uint8 pixels: frame, height, width, channels.

    Args:
        contents: The bytes of the file.
        channels: 3 or 4, which the file must have, or 0 for the channels of the file. Animations have 4.
        dtype: uint8.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import io
        >>> import PIL.Image
        >>> import evenfeed as tf
        >>> file = io.BytesIO()
        >>> PIL.Image.new("RGB", (6, 4)).save(file, "WEBP")
        >>> tf.io.decode_webp(file.getvalue()).shape
        (1, 4, 6, 3)
    """
    del name
    wanted = _one_of(dtype, (dtypes.uint8,))
    return applied(Decode(("WEBP",), _checked(channels), wanted, animated=True), contents)


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Any:
    """Decode a JPEG, PNG, GIF, BMP or WebP file.

    Args:
        contents: The bytes of the file.
        channels: 1 for grayscale, 3 for RGB, 4 for RGBA, None for the channels of the file.
        dtype: uint8, uint16, or float32 with values from 0 to 1.
        name: Accepted for compatibility; ignored.
        expand_animations: Return all frames of a GIF or WebP file along an additional first axis. If False, return
            only the first frame.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> file = tf.io.encode_png(np.array([[[0], [255]]], np.uint8))
        >>> tf.io.decode_image(file, dtype=tf.float32)[..., 0].tolist()
        [[0.0, 1.0]]
    """
    del name
    wanted = _one_of(dtype, (dtypes.uint8, dtypes.uint16, dtypes.float32))
    kinds: tuple[Format, ...] = ("JPEG", "PNG", "GIF", "BMP", "WEBP")
    kernel = Decode(kinds, _checked(channels or 0), wanted, animated=bool(expand_animations))
    return applied(kernel, contents)


def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Any:
    """Return the height, width and channels of a JPEG file, without decoding it.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.io.extract_jpeg_shape(tf.io.encode_jpeg(np.zeros([4, 6, 3], np.uint8))).tolist()
        [4, 6, 3]
    """
    del name
    return applied(JpegShape(_one_of(output_type, (dtypes.int32, dtypes.int64))), contents)


def is_jpeg(contents: Any, name: str | None = None) -> Any:
    """Return True if bytes start like a JPEG file.

    Examples:
        >>> import evenfeed as tf
        >>> bool(tf.io.is_jpeg(b"hello"))
        False
    """
    del name
    return applied(IsJpeg(), contents)


@final
@dataclass(frozen=True)
class Decode(RowKernel):
    """Decodes one image.

    Attributes:
        kinds: The accepted formats.
        channels: The number of channels of the result; 0 for the channels of the file.
        dtype: The dtype of the result.
        animated: True to return all frames of a GIF.
        jpeg: The settings for JPEG files.
    """

    kinds: tuple[Format, ...]
    channels: int
    dtype: DType = dtypes.uint8
    animated: bool = False
    jpeg: JpegWay = WHOLE

    def spec(self, *given: TensorSpec) -> TensorSpec:
        if given[0].dtype != dtypes.string or given[0].shape.rank != 0:
            # `one` raises a better error when it runs.
            raise TypeError("Only one image can be decoded at a time.")
        channels = self.channels or None
        if not self.animated:
            return TensorSpec([None, None, channels], self.dtype)
        only = len(self.kinds) == 1
        return TensorSpec([None, None, None, channels] if only else TensorShape(None), self.dtype)

    def one(self, *parts: Array) -> Array:
        content = single_text(parts[0])
        kind = format_of(content)
        if kind not in self.kinds:
            raise InvalidArgumentError(
                f"Trying to decode {kind} format using a wrong op.", fix="call decode_image."
            )
        if kind == "JPEG":
            return self._widened(self._jpeg(content))
        if kind in ("GIF", "WEBP"):
            every = frames(content, kind, self.channels)
            return self._widened(every if self.animated else every[0])
        if kind == "BMP" or self.dtype != dtypes.uint16:
            return self._widened(other_pixels(content, kind, self.channels))
        return other_pixels(content, kind, self.channels, self.dtype)

    def _jpeg(self, content: bytes) -> Array:
        if self.channels == 4:
            raise InvalidArgumentError("JPEG does not support 4 channels.", fix="pass channels=3.")
        return jpeg_pixels(content, self.channels, self.jpeg)

    def _widened(self, pixels: Array) -> Array:
        return converted(pixels, self.dtype)


@final
@dataclass(frozen=True)
class JpegShape(RowKernel):
    """Reads the height, width and channels of a JPEG file."""

    dtype: DType

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([3], self.dtype)

    def one(self, *parts: Array) -> Array:
        return np.array(jpeg_size(single_text(parts[0])), self.dtype)


@final
@dataclass(frozen=True)
class IsJpeg(RowKernel):
    """Checks the first bytes for the JPEG signature."""

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([], dtypes.bool)

    def one(self, *parts: Array) -> Array:
        return np.array(single_text(parts[0]).startswith(b"\xff\xd8\xff"))


def _jpeg_way(ratio: int, fancy: bool, recover: bool, method: str) -> JpegWay:
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(
            f"ratio must be 1, 2, 4, or 8, got {ratio}.", fix="pass ratio=1."
        )
    if method not in _METHODS:
        raise InvalidArgumentError(
            f"dct_method must be one of {_METHODS}, but got {method!r}.",
            fix='pass "INTEGER_FAST" or "INTEGER_ACCURATE".',
        )
    return JpegWay(bool(fancy), method == "INTEGER_ACCURATE", bool(recover), int(ratio))


def _checked(channels: int) -> int:
    if channels not in (0, 1, 3, 4):
        raise InvalidArgumentError(
            f"`channels` must be 0, 1, 3 or 4 but got {channels}.",
            fix="pass 3 for RGB, 1 for grayscale, or 0 for the channels of the file.",
        )
    return int(channels)


def _one_of(dtype: Any, allowed: tuple[DType, ...]) -> DType:
    wanted = dtypes.as_dtype(dtype)
    if wanted not in allowed:
        names = ", ".join(map(dtypes.name_of, allowed))
        raise InvalidArgumentError(
            f"{dtypes.name_of(wanted)} is not in the list of allowed dtypes: {names}.",
            fix="decode to one of these, then convert the image with evenfeed.image.convert_image_dtype.",
        )
    return wanted
