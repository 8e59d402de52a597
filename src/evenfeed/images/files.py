"""The formats of images: which one a file has, and its pixels by the libraries that know it."""

import io
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.doors import pil_image, simplejpeg
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import (
    EvenfeedError,
    InvalidArgumentError,
    ResourceExhaustedError,
    described,
)
from evenfeed.images.wide_png import in_channels, is_wide, wide_file, wide_pixels

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
