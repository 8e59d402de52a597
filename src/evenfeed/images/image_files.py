"""PNG files of 16 bits for each number. Pillow gives the upper eight of several channels, or the lower."""

import io
import struct
import zlib
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
    described,
)
from evenfeed.core.lazy import pil_image, simplejpeg

_BEGINNING: Final = b"\x89PNG\r\n\x1a\n"
# The kind of an image, as a PNG file writes it, by the number of its channels.
_KINDS: Final = {1: 0, 2: 4, 3: 2, 4: 6}
# How red, green and blue count in grey, of 2 ** 15.
_GREY: Final = np.array([9797, 19234, 3737], np.int64)


def is_wide(content: bytes) -> bool:
    """Tell whether a PNG file has 16 bits for each number."""
    return content[24:25] == b"\x10"


def wide_pixels(opened: Callable[[], Any], content: bytes) -> Array:
    """Return all bits of a PNG file, which `opened` opens as an image of Pillow's."""
    match content[25]:
        case 0:
            return np.asarray(opened(), np.uint16)[..., None]
        case 4:  # grey and opacity: four bytes for each pixel, as those of four channels
            halves = _as_written(opened(), "RGBA")
            return halves[..., 0::2] << 8 | halves[..., 1::2]
        case kind:
            mode = "RGB" if kind == 2 else "RGBA"
            upper, lower = (_as_written(opened(), f"{mode};16{end}") for end in "BL")
            return upper << 8 | lower


def _as_written(image: Any, raw: str) -> Array:
    """Return the bytes of an image by another reading of what stands in the file."""
    image.tile = [tile._replace(args=raw) for tile in image.tile]
    return np.asarray(image).astype(np.uint16)


def in_channels(pixels: Array, channels: int) -> Array:
    """Return an image of 16 bits with another number of channels, 0 for as many as it has."""
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


def wide_file(pixels: Array, level: int) -> bytes:
    """Return an image of 16 bits and 1 to 4 channels as a PNG file, compressed as zlib does at that level."""
    height, width, channels = pixels.shape
    about = struct.pack(">IIBBBBB", width, height, 16, _KINDS[channels], 0, 0, 0)
    rows = np.zeros(
        (height, 1 + 2 * channels * width), np.uint8
    )  # each behind the number of its filter
    rows[:, 1:] = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    parts = (b"IHDR", about), (b"IDAT", zlib.compress(rows.tobytes(), level)), (b"IEND", b"")
    return _BEGINNING + b"".join(_chunk(*part) for part in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


Format: TypeAlias = Literal["JPEG", "PNG", "GIF", "BMP"]

_BEGINNINGS: Final[dict[bytes, Format]] = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
}
_INSTALL: Final = "install what reads images: pip install 'evenfeed[images]'."
# A picture may say that it has more pixels than any memory; TensorFlow refuses as many.
_MOST_PIXELS: Final = 1 << 29
_ENDS: Final = "end of JPEG file"  # what the library says of a file that is cut


def format_of(content: bytes) -> Format:
    """Return the format of an image."""
    if not content:
        raise InvalidArgumentError("Input is empty.", fix="check what was read, and from where.")
    for beginning, name in _BEGINNINGS.items():
        if content.startswith(beginning):
            return name
    raise InvalidArgumentError(
        f"Unknown image file format: it begins with {content[:8]!r}. One of JPEG, PNG, GIF, BMP required.",
        fix="check what was read, and from where.",
    )


def jpeg_size(content: bytes) -> tuple[int, int, int]:
    """Return height, width and channels of a JPEG file, without decoding it."""
    header = _jpeg().decode_jpeg_header
    with _decoding(content, "JPEG"):
        height, width, space, _ = header(content)
    return height, width, 1 if space.lower() == "gray" else 3


@final
@dataclass(frozen=True)
class JpegWay:
    """How a JPEG file is decoded.

    Attributes:
        fancy: Smooth colours that are stored in half the size.
        exact: The slower of two ways to compute, TensorFlow's INTEGER_ACCURATE.
        recover: Take a file that ends too early, and leave grey what is missing.
        ratio: By how much the image becomes smaller.
    """

    fancy: bool = True
    exact: bool = False
    recover: bool = False
    ratio: int = 1

    def size(self, content: bytes) -> dict[str, int]:
        """Return what the library is asked for: the smallest image that is large enough."""
        if self.ratio == 1:
            return {}
        height, width, _ = jpeg_size(content)
        ratio = self.ratio
        return {
            "min_height": -(-height // ratio),
            "min_width": -(-width // ratio),
            "min_factor": ratio,
        }


# As TensorFlow decodes one by default.
WHOLE: Final = JpegWay()


def jpeg_pixels(content: bytes, channels: int, way: JpegWay) -> Array:
    """Return the pixels of a JPEG file: of 1 or 3 channels, or as many as the file has for 0."""
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
        # The library also complains of what does no harm: TensorFlow only does where the file ends.
        if not way.recover and _ENDS in str(error):
            raise _no_image(content, "JPEG", error) from error
    with _decoding(content, "JPEG"):
        return library.decode_jpeg(content, strict=False, **how)


def other_pixels(content: bytes, kind: Format, channels: int, dtype: DType = dtypes.uint8) -> Array:
    """Return the pixels of a PNG or BMP file, or of the first frame of a GIF."""
    image = _opened(content, kind)
    with _decoding(content, kind):
        if kind == "PNG" and is_wide(content):
            wide = in_channels(wide_pixels(lambda: _opened(content, kind), content), channels)
            return wide if dtype == dtypes.uint16 else (wide >> 8).astype(np.uint8)
        pixels = _in_bytes(image, kind, channels)
    return pixels if dtype == dtypes.uint8 else pixels.astype(np.uint16) * np.uint16(257)


def frames(content: bytes) -> Array:
    """Return all frames of a GIF file, stacked."""
    image = _opened(content, "GIF")
    found: list[Array] = []
    with _decoding(content, "GIF"):
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            _check_pixels("GIF", image.width, image.height * (number + 1))
            found.append(np.asarray(image.convert("RGB")))
        return np.stack(found)


def encoded(pixels: Array, kind: Literal["JPEG", "PNG"], **how: Any) -> bytes:
    """Return an image as a file."""
    if pixels.dtype == np.uint16:
        return wide_file(pixels, how.get("compress_level", -1))
    plain = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    out = io.BytesIO()
    _pil().fromarray(np.ascontiguousarray(plain)).save(out, kind, **how)
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
    """Return the brightness, by the whole numbers with which PNG files are read elsewhere."""
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
            f"The {kind} file says that it has {width} x {height} pixels, which are too many.",
            fix="check the file.",
        )


@contextmanager
def _decoding(content: bytes, kind: Format) -> Generator[None]:
    """Turn whatever a library raises at the bytes of an image into an error of ours.

    Pillow raises what its own code happens to meet in damaged bytes: IndexError, struct.error, SyntaxError.
    """
    try:
        yield
    except EvenfeedError:
        raise
    except MemoryError as error:
        raise ResourceExhaustedError(
            f"There is no memory for a {kind} file of {len(content)} bytes.",
            fix="check the file, or decode fewer images at a time.",
        ) from error
    except Exception as error:
        raise _no_image(content, kind, error) from error


def _no_image(content: bytes, kind: Format, error: Exception) -> InvalidArgumentError:
    if kind == "JPEG" and _ENDS in str(error):
        return InvalidArgumentError(
            f"Invalid JPEG data: the file of {len(content)} bytes ends too early.",
            fix="check the file, or pass try_recover_truncated=True.",
        )
    if type(error).__name__.startswith("DecompressionBomb"):
        return InvalidArgumentError(
            f"The {kind} file of {len(content)} bytes says that it has too many pixels: {error}",
            fix="check the file; PIL.Image.MAX_IMAGE_PIXELS is the limit, if you trust it.",
        )
    return InvalidArgumentError(
        f"Invalid {kind} data, {len(content)} bytes: {error}", fix="check the file."
    )


def _jpeg() -> Any:
    try:
        simplejpeg.decode_jpeg  # noqa: B018 - the door opens here
    except ImportError as error:
        raise ImportError(described("JPEG files are read by simplejpeg.", fix=_INSTALL)) from error
    return simplejpeg


def _pil() -> Any:
    try:
        pil_image.open  # noqa: B018 - the door opens here
    except ImportError as error:
        raise ImportError(
            described("Images are read and written by Pillow.", fix=_INSTALL)
        ) from error
    return pil_image
