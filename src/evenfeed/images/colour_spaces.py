"""Converts between RGB, HSV, YIQ and YUV, and adjusts the hue, saturation and gamma of images."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import EvenfeedError, FailedPreconditionError, InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images import hot_loops
from evenfeed.images.colours import converted, in_floats, mixed

_FLOATS: Final = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
# The order of the largest, middle and smallest of red, green and blue, in each sixth of the circle of hues.
_ORDERS: Final = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0], [2, 0, 1], [0, 2, 1]])

_TO_YIQ: Final = (
    (0.299, 0.59590059, 0.2115),
    (0.587, -0.27455667, -0.52273617),
    (0.114, -0.32134392, 0.31119955),
)
_FROM_YIQ: Final = (
    (1.0, 1.0, 1.0),
    (0.95598634, -0.27201283, -1.10674021),
    (0.6208248, -0.64720424, 1.70423049),
)
_TO_YUV: Final = (
    (0.299, -0.14714119, 0.61497538),
    (0.587, -0.28886916, -0.51496512),
    (0.114, 0.43601035, -0.10001026),
)
_FROM_YUV: Final = (
    (1.0, 1.0, 1.0),
    (0.0, -0.394642334, 2.03206185),
    (1.13988303, -0.58062185, 0.0),
)


def rgb_to_hsv(images: Any, name: str | None = None) -> Any:
    """Convert RGB images of floats to hue, saturation and value, all in [0, 1].

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.rgb_to_hsv(np.array([[[0.0, 1.0, 1.0]]])).tolist()
        [[[0.5, 1.0, 1.0]]]
    """
    del name
    return applied(OfPixels("rgb_to_hsv", to_hsv), images)


def hsv_to_rgb(images: Any, name: str | None = None) -> Any:
    """Convert images of hue, saturation and value, as floats in [0, 1], to RGB.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.hsv_to_rgb(np.array([[[0.5, 1.0, 1.0]]])).tolist()
        [[[0.0, 1.0, 1.0]]]
    """
    del name
    return applied(OfPixels("hsv_to_rgb", _from_hsv), images)


def rgb_to_yiq(images: Any) -> Any:
    """Convert RGB images of floats to YIQ, the colours of NTSC television.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.rgb_to_yiq(np.zeros([1, 1, 3])).tolist()
        [[[0.0, 0.0, 0.0]]]
    """
    return applied(Mix("rgb_to_yiq", _TO_YIQ), images)


def yiq_to_rgb(images: Any) -> Any:
    """Convert YIQ images to RGB.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.yiq_to_rgb(np.array([[[0.5, 0.0, 0.0]]])).tolist()
        [[[0.5, 0.5, 0.5]]]
    """
    return applied(Mix("yiq_to_rgb", _FROM_YIQ), images)


def rgb_to_yuv(images: Any) -> Any:
    """Convert RGB images of floats to YUV: the brightness and two differences of colours.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.rgb_to_yuv(np.zeros([1, 1, 3])).tolist()
        [[[0.0, 0.0, 0.0]]]
    """
    return applied(Mix("rgb_to_yuv", _TO_YUV), images)


def yuv_to_rgb(images: Any) -> Any:
    """Convert YUV images to RGB.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.yuv_to_rgb(np.array([[[0.5, 0.0, 0.0]]])).tolist()
        [[[0.5, 0.5, 0.5]]]
    """
    return applied(Mix("yuv_to_rgb", _FROM_YUV), images)


def adjust_hue(image: Any, delta: float, name: str | None = None) -> Any:
    """Turn the hues of RGB images.

    Args:
        image: An RGB image, or several.
        delta: The part of a full turn, from -1 to 1.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.adjust_hue(np.array([[[9, 0, 0]]], np.uint8), 0.5).tolist()
        [[[0, 9, 9]]]
    """
    del name
    if not -1 <= delta <= 1:
        raise InvalidArgumentError(
            f"delta must be in the interval [-1, 1], but got {delta}.",
            fix="pass the part of a full turn.",
        )
    return applied(Hue(float(delta)), image)


def adjust_saturation(image: Any, saturation_factor: float, name: str | None = None) -> Any:
    """Multiply the saturation of RGB images. 0 makes them grey.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.adjust_saturation(np.array([[[9, 0, 0]]], np.uint8), 0.0).tolist()
        [[[9, 9, 9]]]
    """
    del name
    return applied(Saturation(float(saturation_factor)), image)


def adjust_gamma(image: Any, gamma: float = 1, gain: float = 1) -> Any:
    """Raise all values, scaled to [0, 1], to the power of `gamma`, and multiply them by `gain`.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.image.adjust_gamma(np.array([0, 51, 255], np.uint8), 2.0).tolist()
        [0, 10, 255]
    """
    if gamma < 0:
        raise InvalidArgumentError(
            f"Gamma should be a non-negative real number, but got {gamma}.",
            fix="pass a number from 0 to 1 for brighter images, above 1 for darker ones.",
        )
    return applied(Gamma(float(gamma), float(gain)), image)


@final
@dataclass(frozen=True)
class OfPixels(RowKernel):
    """Converts the three channels of each pixel of floats."""

    takes_batches = True

    name: str
    formula: Callable[[Array], Array]

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        return self.formula(_pixels_of_floats(self.name, parts[0], FailedPreconditionError))


@final
@dataclass(frozen=True)
class Mix(RowKernel):
    """Multiplies each pixel by a matrix."""

    takes_batches = True

    name: str
    matrix: tuple[tuple[float, ...], ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image = _pixels_of_floats(self.name, parts[0])
        return mixed(image, np.array(self.matrix, image.dtype))

    def differentiable(self, *parts: Any) -> Any:
        image = _pixels_of_floats(self.name, parts[0])
        return image @ np.array(self.matrix, image.dtype)


@final
@dataclass(frozen=True)
class Hue(RowKernel):
    """Turns hues."""

    takes_batches = True

    delta: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        check_channels("adjust_hue", parts[0])
        image = in_floats(parts[0])
        turned = _turned(image.astype(np.float32, copy=False), np.float32(self.delta))
        return converted(turned.astype(image.dtype, copy=False), parts[0].dtype)


@final
@dataclass(frozen=True)
class Saturation(RowKernel):
    """Multiplies saturations."""

    takes_batches = True

    factor: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        check_channels("adjust_saturation", parts[0])
        image = in_floats(parts[0])
        found = _saturated(image.astype(np.float32, copy=False), np.float32(self.factor))
        return converted(found.astype(image.dtype, copy=False), parts[0].dtype)


@final
@dataclass(frozen=True)
class Gamma(RowKernel):
    """Raises values to a power, and multiplies them."""

    takes_batches = True

    gamma: float
    gain: float

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return given[0]

    def one(self, *parts: Array) -> Array:
        image = parts[0]
        if image.dtype != dtypes.uint8 or image.size < 256:
            return self.differentiable(image)
        return hot_loops.looked_up(image, self.differentiable(np.arange(256, dtype=np.uint8)))

    def differentiable(self, *parts: Any) -> Any:
        image = in_floats(parts[0])
        number = image.dtype.type
        return converted(
            number(self.gain) * image ** number(self.gamma), parts[0].dtype, saturate=True
        )


def check_channels(name: str, image: Array) -> None:
    """Raise unless an array has an axis of three channels, and pixels."""
    if image.ndim < 3 or image.shape[-1] != 3:
        raise InvalidArgumentError(
            f"{name} needs images with 3 channels, but got shape {image.shape}.",
            fix="pass RGB images: height, width and 3 channels.",
        )


def _pixels_of_floats(
    name: str, image: Array, error: type[EvenfeedError] = InvalidArgumentError
) -> Array:
    if image.ndim < 1 or image.shape[-1] != 3:
        raise error(
            f"{name} needs 3 channels as the last axis, but got shape {image.shape}.",
            fix="pass images with 3 channels.",
        )
    if image.dtype not in _FLOATS:
        raise InvalidArgumentError(
            f"{name} needs floats, but got {dtypes.name_of(image.dtype)}.",
            fix="call evenfeed.image.convert_image_dtype(image, evenfeed.float32) first.",
        )
    return image


def to_hsv(image: Array) -> Array:
    """Convert RGB to hue, saturation and value."""
    found = hot_loops.by_pixel("to_hsv", image)
    if found is not None:
        return found
    red, green, blue = (image[..., place] for place in range(3))
    value = image.max(axis=-1)
    spread = value - image.min(axis=-1)
    number: Any = image.dtype.type
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = _choice(value > 0, spread / value, number(0))
        norm = number(1) / (number(6) * spread)
        hue = _choice(
            red == value,
            norm * (green - blue),
            _choice(
                green == value,
                norm * (blue - red) + number(2 / 6),
                norm * (red - green) + number(4 / 6),
            ),
        )
    hue = _choice(spread > 0, hue, number(0))
    hue = _choice(hue < 0, hue + number(1), hue)
    return np.stack([hue, saturation, value], axis=-1).astype(image.dtype)


def _choice(condition: Array, one: Array, other: Array) -> Array:
    """Like `np.where`, whose result has no type if a value has none."""
    return np.where(condition, one, other)


def _from_hsv(image: Array) -> Array:
    found = hot_loops.by_pixel("from_hsv", image)
    if found is not None:
        return found
    hue, saturation, value = (image[..., place] for place in range(3))
    number = image.dtype.type
    sixths = hue * number(6)
    shares = [
        abs(sixths - number(3)) - number(1),
        number(2) - abs(sixths - number(2)),
        number(2) - abs(sixths - number(4)),
    ]
    rest = number(1) - saturation
    mixed = [(rest + saturation * np.clip(share, 0, 1)) * value for share in shares]
    return np.stack(mixed, axis=-1).astype(image.dtype)


def _saturated(image: Array, factor: np.float32) -> Array:
    """Multiply saturations."""
    found = hot_loops.by_pixel("saturate", image, factor)
    if found is not None:
        return found
    colours = to_hsv(image)
    colours[..., 1] = np.clip(colours[..., 1] * factor, 0, 1)
    return _by_chroma(colours)


def _by_chroma(colours: Array) -> Array:
    """Convert hue, saturation and value to RGB as TensorFlow's kernel for saturations does."""
    hue, saturation, value = (colours[..., place] for place in range(3))
    chroma = saturation * value
    sixths = hue * np.float32(6)
    middle = chroma * (1 - abs(sixths % np.float32(2) - 1))
    return _ordered(sixths, chroma, middle, np.zeros_like(chroma)) + (value - chroma)[..., None]


def _turned(image: Array, delta: np.float32) -> Array:
    """Turn hues, keeping the largest and the smallest of the three colours, as TensorFlow's kernel does."""
    found = hot_loops.by_pixel("turn", image, delta * np.float32(6))
    if found is not None:
        return found
    red, green, blue = (image[..., place] for place in range(3))
    least, middle, most = (np.sort(image, axis=-1)[..., place] for place in range(3))
    below = np.where(blue < red, 1, np.where(blue > green, 3, 2))
    above = np.where(blue < green, 0, np.where(blue > red, 4, 5))
    sixth = np.where(red < green, below, above)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (middle - least) / (most - least)
    hue = np.where(most == least, 0, sixth + np.where(sixth % 2 == 0, share, 1 - share))
    hue = (hue.astype(np.float32) + delta * np.float32(6)) % np.float32(6)
    sixth = np.minimum(hue.astype(np.int64), 5)
    share = hue - sixth.astype(np.float32)
    share = np.where(sixth % 2 == 0, share, 1 - share)
    return _ordered(hue, most, least + share * (most - least), least)


def _ordered(sixths: Array, most: Array, middle: Array, least: Array) -> Array:
    """Put the largest, the middle and the smallest of the three colours where the hue wants them."""
    order = _ORDERS[np.clip(sixths.astype(np.int64), 0, 5)]
    found = np.empty((*most.shape, 3), np.float32)
    np.put_along_axis(found, order, np.stack([most, middle, least], axis=-1), axis=-1)
    return found
