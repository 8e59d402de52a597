"""Reads and writes image files (JPEG, PNG, GIF, BMP, WebP) with simplejpeg and Pillow.

16-bit PNG files with several channels are decoded here, because Pillow returns only eight of the bits.
"""

import io
import struct
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import (
    EvenfeedError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from evenfeed.core.lazy import installed, pil_image, simplejpeg
from evenfeed.images import hot_loops
from evenfeed.images.png_files import plain_pixels

# The weights of red, green and blue in grayscale, out of 2 ** 15.
_GREY: Final = np.array([9797, 19234, 3737], np.int64)


def is_wide(content: bytes) -> bool:
    """Return True if a PNG file has 16 bits per channel."""
    return content[24:25] == b"\x10"


def wide_pixels(opened: Callable[[], Any], content: bytes) -> Array:
    """Return the pixels of a 16-bit PNG file. `opened` opens it as a Pillow image."""
    match content[25]:
        case 0:
            return np.asarray(opened(), np.uint16)[..., None]
        case 4:  # Grayscale with alpha: read the four bytes of a pixel as four 8-bit channels.
            halves = _as_written(opened(), "RGBA")
            return halves[..., 0::2] << 8 | halves[..., 1::2]
        case kind:
            mode = "RGB" if kind == 2 else "RGBA"
            upper, lower = (_as_written(opened(), f"{mode};16{end}") for end in "BL")
            return upper << 8 | lower


def _as_written(image: Any, raw: str) -> Array:
    """Return the bytes of an image, decoded with another Pillow raw mode."""
    image.tile = [tile._replace(args=raw) for tile in image.tile]
    return np.asarray(image).astype(np.uint16)


def in_channels(pixels: Array, channels: int) -> Array:
    """Convert a 16-bit image to another number of channels; 0 keeps them."""
    have = pixels.shape[-1]
    if channels in (0, have):
        return pixels
    colours = pixels[..., : 3 if have > 2 else 1]
    if channels == 1:
        return colours if have == 2 else _wide_grey(colours)
    parts = [np.broadcast_to(colours, (*colours.shape[:-1], 3))]
    if channels == 4:
        opaque = np.full_like(pixels[..., :1], np.iinfo(np.uint16).max)
        parts.append(pixels[..., -1:] if have == 2 else opaque)
    return np.concatenate(parts, axis=-1)


def _wide_grey(colours: Array) -> Array:
    weighed = (colours.astype(np.int64) * _GREY).sum(axis=-1, keepdims=True)
    return (weighed + (1 << 14) >> 15).astype(np.uint16)


Format: TypeAlias = Literal["JPEG", "PNG", "GIF", "BMP", "WEBP"]

_SIGNATURES: Final[dict[bytes, Format]] = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
}
# Of a BMP file: where the pixels start, the size of the header, the width and height, planes, bits, the compression.
_BITMAP: Final = struct.Struct("<10xIIiiHHI")
_INSTALL: Final = "install the image libraries: pip install 'evenfeed[images]'."
# A header may claim more pixels than fit into memory. TensorFlow has the same limit.
_MOST_PIXELS: Final = 1 << 29
_ENDS: Final = "end of JPEG file"  # simplejpeg's message for a truncated file


def format_of(content: bytes) -> Format:
    """Return the format of an image."""
    if not content:
        raise InvalidArgumentError("Input is empty.", fix="check the file and its path.")
    for signature, name in _SIGNATURES.items():
        if content.startswith(signature):
            return name
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    raise InvalidArgumentError(
        f"Unknown image file format: it starts with {content[:8]!r}. One of JPEG, PNG, GIF, BMP, WEBP required.",
        fix="check the file and its path.",
    )


def jpeg_size(content: bytes) -> tuple[int, int, int]:
    """Return the height, width and channels of a JPEG file, without decoding it."""
    header = _jpeg().decode_jpeg_header
    with _decoding(content, "JPEG"):
        height, width, space, _ = header(content)
    return height, width, 1 if space.lower() == "gray" else 3


@final
@dataclass(frozen=True)
class JpegWay:
    """Settings for decoding JPEG files.

    Attributes:
        fancy: Smooth colours that are stored at half the resolution.
        exact: Use the slower DCT, TensorFlow's INTEGER_ACCURATE.
        recover: Accept a truncated file; missing pixels are grey.
        ratio: The factor by which the image is downscaled.
    """

    fancy: bool = True
    exact: bool = False
    recover: bool = False
    ratio: int = 1

    def size(self, content: bytes) -> dict[str, int]:
        """Return simplejpeg's arguments for the downscaled size."""
        if self.ratio == 1:
            return {}
        height, width, _ = jpeg_size(content)
        ratio = self.ratio
        return {
            "min_height": -(-height // ratio),
            "min_width": -(-width // ratio),
            "min_factor": ratio,
        }


# TensorFlow's defaults.
WHOLE: Final = JpegWay()


def jpeg_pixels(content: bytes, channels: int, way: JpegWay) -> Array:
    """Decode a JPEG file to 1 or 3 channels; 0 keeps the channels of the file."""
    library = _jpeg()
    height, width, found = jpeg_size(content)
    _check_pixels("JPEG", width, height)
    channels = channels or found
    how: dict[str, Any] = {
        "colorspace": "GRAY" if channels == 1 else "RGB",
        "fastdct": not way.exact,
        "fastupsample": not way.fancy,
        **way.size(content),
    }
    try:
        return library.decode_jpeg(content, **how)
    except ValueError as error:
        # simplejpeg also raises for harmless defects; TensorFlow raises only for truncated files.
        if not way.recover and _ENDS in str(error):
            raise _no_image(content, "JPEG", error) from error
    with _decoding(content, "JPEG"):
        return library.decode_jpeg(content, strict=False, **how)


def other_pixels(content: bytes, kind: Format, channels: int, dtype: DType = dtypes.uint8) -> Array:
    """Decode a PNG or BMP file, or the first frame of a GIF file."""
    plain = plain_pixels(content, channels) if kind == "PNG" and dtype == dtypes.uint8 else None
    if kind == "BMP" and channels in (0, 3):
        plain = _plain_bitmap(content)
    if plain is not None:
        return plain
    image = _opened(content, kind)
    with _decoding(content, kind):
        if kind == "PNG" and is_wide(content):
            wide = in_channels(wide_pixels(lambda: _opened(content, kind), content), channels)
            return wide if dtype == dtypes.uint16 else (wide >> 8).astype(np.uint8)
        pixels = _in_bytes(image, kind, channels)
    return pixels if dtype == dtypes.uint8 else pixels.astype(np.uint16) * np.uint16(257)


def _plain_bitmap(content: bytes) -> Array | None:
    """Return the pixels of a BMP file of 24 bits per pixel; None if Pillow must decode it, which holds the GIL."""
    if len(content) < _BITMAP.size:
        return None
    start, header, width, height, _, bits, packed = _BITMAP.unpack_from(content)
    row, rows = -(-3 * width // 4) * 4, abs(height)
    if (header, bits, packed) != (40, 24, 0) or width < 1 or not rows:
        return None
    if start < 14 + header or len(content) < start + row * rows:
        return None
    stored = np.frombuffer(content, np.uint8, row * rows, start).reshape(rows, row)
    if (found := hot_loops.with_colours_reversed(stored, width, upward=height > 0)) is not None:
        return found
    # Blue comes first.
    downward = stored[:: -1 if height > 0 else 1, : 3 * width]
    return downward.reshape(rows, width, 3)[..., ::-1].copy()


def frames(content: bytes, kind: Literal["GIF", "WEBP"], channels: int) -> Array:
    """Decode and stack all frames of a file."""
    image = _opened(content, kind)
    found: list[Array] = []
    mode = "RGB"
    if kind == "WEBP":
        mode = _webp_mode(image, channels)
    with _decoding(content, kind):
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            _check_pixels(kind, image.width, image.height * (number + 1))
            found.append(np.asarray(image.convert(mode)))
        return np.stack(found)


def _webp_mode(image: Any, channels: int) -> str:
    """Return Pillow's name for the channels of a WebP file; animations always have four, as in TensorFlow."""
    mode = "RGBA" if getattr(image, "is_animated", False) else image.mode
    if channels not in (0, len(mode)):
        raise InvalidArgumentError(
            f"The WebP file has {len(mode)} channels, but channels={channels} was passed.",
            fix="pass channels=0, and convert the pixels, for example with evenfeed.image.rgb_to_grayscale.",
        )
    return mode


def jpeg_file(pixels: Array, **how: Any) -> bytes:
    """Encode an image as a JPEG file, with the arguments of Pillow."""
    height, width, channels = pixels.shape
    # Pillow reads these layouts in place. It would store four bytes for each RGB pixel itself, in twice the time.
    mode, plain = ("L", pixels) if channels == 1 else ("RGBX", hot_loops.in_fours(pixels))
    memory = np.ascontiguousarray(plain).data
    out = io.BytesIO()
    _pil().frombuffer(mode, (width, height), memory, "raw", mode, 0, 1).save(out, "JPEG", **how)
    return out.getvalue()


def _in_bytes(image: Any, kind: Format, channels: int) -> Array:
    if channels == 0:
        channels = _channels(image, kind)
    if channels == 1 and image.mode != "L":
        return _grey(np.asarray(image.convert("RGB")))
    modes = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
    pixels = np.asarray(image.convert(modes[channels]))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _channels(image: Any, kind: Format) -> int:
    if image.mode in ("1", "L"):
        return 3 if kind == "GIF" else 1
    if image.mode in ("LA", "RGBA"):
        return len(image.mode)
    return 4 if image.mode == "P" and "transparency" in image.info and kind == "PNG" else 3


def _grey(pixels: Array) -> Array:
    """Convert RGB to grayscale with integer weights, as libpng does."""
    red, green, blue = (pixels[..., i].astype(np.int32) for i in range(3))
    weighed = 9798 * red + 19235 * green + 3735 * blue
    return (weighed >> 15).astype(np.uint8)[..., None]


def _opened(content: bytes, kind: Format) -> Any:
    library = _pil()
    with _decoding(content, kind):
        image = library.open(io.BytesIO(content), formats=[kind])
    _check_pixels(kind, image.width, image.height)
    return image


def _check_pixels(kind: Format, width: int, height: int) -> None:
    if width * height >= _MOST_PIXELS:
        raise InvalidArgumentError(
            f"The {kind} file claims to have {width} x {height} pixels, which is too many.",
            fix="check the file.",
        )


@contextmanager
def _decoding(content: bytes, kind: Format) -> Generator[None]:
    """Convert any exception that a library raises for an image into an evenfeed error.

    For corrupt bytes, Pillow raises all kinds of exceptions: IndexError, struct.error, SyntaxError.
    """
    try:
        yield
    except EvenfeedError:
        raise
    except MemoryError as error:
        raise ResourceExhaustedError(
            f"Out of memory while decoding a {kind} file of {len(content)} bytes.",
            fix="check the file, or decode fewer images at a time.",
        ) from error
    except Exception as error:
        raise _no_image(content, kind, error) from error


def _no_image(content: bytes, kind: Format, error: Exception) -> InvalidArgumentError:
    if kind == "JPEG" and _ENDS in str(error):
        return InvalidArgumentError(
            f"Invalid JPEG data: the file of {len(content)} bytes is truncated.",
            fix="check the file, or pass try_recover_truncated=True.",
        )
    if type(error).__name__.startswith("DecompressionBomb"):
        return InvalidArgumentError(
            f"The {kind} file of {len(content)} bytes claims to have too many pixels: {error}",
            fix="check the file; if you trust it, raise PIL.Image.MAX_IMAGE_PIXELS.",
        )
    return InvalidArgumentError(
        f"Invalid {kind} data, {len(content)} bytes: {error}", fix="check the file."
    )


def _jpeg() -> Any:
    return installed(simplejpeg, "Reading JPEG files requires simplejpeg.", _INSTALL)


def _pil() -> Any:
    return installed(pil_image, "Reading and writing images requires Pillow.", _INSTALL)
