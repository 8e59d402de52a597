"""How similar two images are: `psnr`, `ssim`, `ssim_multiscale`."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ruff: noqa: ARG001, PLR0913, PLR0917 - TensorFlow's arguments; there is no graph to show `name` in

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.images.differences import PeakRatio, check_pair
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.operands import REALS, apply
from evenfeed.tensors.vision.compiling import by_kernel, compiled, one_by_one

# How much each scale counts, from the finest, by Wang, Simoncelli and Bovik (2003).
_SCALES: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
# How many rows are smoothed at a time.
_TOGETHER: Final = 32


def psnr(a: object, b: object, max_val: object, name: str | None = None) -> Tensor:
    """Return the peak signal-to-noise ratio of two images, or of each pair of two batches, in decibels.

    Args:
        a: The first images (…, height, width, channels).
        b: The other images, of the same shape.
        max_val: The largest value that a pixel can have, such as 255 or 1.0.
        name: Accepted for compatibility.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> float(tf.image.psnr(np.zeros([2, 2, 1], np.float32), np.ones([2, 2, 1], np.float32), 1.0))
        0.0
    """
    if isinstance(max_val, (int, float)):
        found = by_kernel(PeakRatio(float(max_val)), a, b)
        if found is not None:
            return found
    return _compared("psnr", _psnr, (), a, b, max_val)


def ssim(
    img1: object,
    img2: object,
    max_val: object,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """Return the structural similarity of two images, or of each pair of two batches: 1 if they are the same.

    Args:
        img1: The first images (…, height, width, channels).
        img2: The other images, of the same shape.
        max_val: The largest value that a pixel can have, such as 255 or 1.0.
        filter_size: The size of the windows in which pixels are compared.
        filter_sigma: How far the weight of a window reaches from its centre.
        k1: Keeps dark windows stable.
        k2: Keeps flat windows stable.
        return_index_map: Return the similarity of each window instead of the mean of all.

    Examples:
        >>> import evenfeed as tf
        >>> image = tf.ones([16, 16, 1])
        >>> float(tf.image.ssim(image, image, max_val=1.0))
        1.0
    """
    settings = _Window(filter_size, filter_sigma, k1, k2), bool(return_index_map)
    return _compared("ssim", _ssim, settings, img1, img2, max_val)


def ssim_multiscale(
    img1: object,
    img2: object,
    max_val: object,
    power_factors: Sequence[float] = _SCALES,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Return the structural similarity of two images at several scales, each half as large as the one before.

    Args:
        img1: The first images (…, height, width, channels).
        img2: The other images, of the same shape.
        max_val: The largest value that a pixel can have, such as 255 or 1.0.
        power_factors: How much each scale counts, from the finest. Their number is that of the scales.
        filter_size: As for `ssim`.
        filter_sigma: As for `ssim`.
        k1: As for `ssim`.
        k2: As for `ssim`.

    Examples:
        >>> import evenfeed as tf
        >>> image = tf.ones([32, 32, 1])
        >>> score = tf.image.ssim_multiscale(image, image, max_val=1.0, power_factors=[0.5, 0.5])
        >>> f"{score:.4f}"
        '1.0000'
    """
    settings = _Window(filter_size, filter_sigma, k1, k2), tuple(map(float, power_factors))
    return _compared("ssim_multiscale", _at_scales, settings, img1, img2, max_val)


@final
@dataclass(frozen=True)
class _Window:
    """Compares the pixels in Gaussian windows of two images."""

    size: int
    sigma: float
    k1: float
    k2: float

    def compare(self, one: Any, other: Any, most: Any) -> tuple[Any, Any]:
        """Return how similar the brightness and the structure of each window are."""
        if min(one.shape[-3:-1]) < self.size:
            raise InvalidArgumentError(
                f"The images must be at least as large as the filter of {self.size} x {self.size} pixels, "
                f"but got shape {one.shape}.",
                fix="pass larger images or a smaller filter_size; each scale of ssim_multiscale halves the images.",
            )
        least, flat = ((np.float32(k) * most) ** 2 for k in (self.k1, self.k2))
        mean, other_mean = self._smoothed(one), self._smoothed(other)
        product, squares = 2 * mean * other_mean, mean**2 + other_mean**2
        brightness = (product + least) / (squares + least)
        shared = 2 * self._smoothed(one * other) - product
        own = self._smoothed(one**2 + other**2) - squares
        return brightness, (shared + flat) / (own + flat)

    def _smoothed(self, image: Any) -> Any:
        """Return the weighted mean of each window. The weights are a product of one for rows and one for columns.

        XLA takes ten times as long for a convolution. Of two sums of shifted images, it would compute the inner one
        again for each term of the outer one, so the first is a matrix product, whose result is stored.
        """
        *before, height, width, channels = image.shape
        rows = self._smoothed_rows(image.reshape(*before, height, width * channels))
        count = width - self.size + 1
        shifts = [
            rows[..., start * channels : (start + count) * channels] * weight
            for start, weight in enumerate(_gaussian(self.size, self.sigma))
        ]
        smooth: Any = sum(shifts[1:], shifts[0])
        return smooth.reshape(*before, height - self.size + 1, count, channels)

    def _smoothed_rows(self, rows: Any) -> Any:
        """Return the weighted sums of neighbouring rows, some at a time: all others have the weight 0."""
        *before, height, _ = rows.shape
        count = height - self.size + 1
        runs, reach = -(-count // _TOGETHER), _TOGETHER + self.size - 1
        more = [(0, 0)] * len(before) + [(0, runs * _TOGETHER + self.size - 1 - height), (0, 0)]
        whole = jnp.pad(rows, more)
        starts = range(0, runs * _TOGETHER, _TOGETHER)
        parts = jnp.stack([whole[..., start : start + reach, :] for start in starts], axis=-3)
        weights = np.zeros((_TOGETHER, reach), np.float32)
        for row in range(_TOGETHER):
            weights[row, row : row + self.size] = _gaussian(self.size, self.sigma)
        found = jnp.matmul(weights, parts, precision="highest")
        return found.reshape(*before, runs * _TOGETHER, rows.shape[-1])[..., :count, :]


def _psnr(one: Any, other: Any, most: Any) -> Any:
    error = jnp.square(one - other).mean((-3, -2, -1))
    tens = np.log(np.float32(10))
    return 20 * jnp.log(most) / tens - np.float32(10 / np.log(10)) * jnp.log(error)


def _ssim(window: _Window, index_map: bool, one: Any, other: Any, most: Any) -> Any:
    def compare(one: Any, other: Any) -> Any:
        brightness, structure = window.compare(one, other, most)
        both = brightness * structure
        return both.mean(-1) if index_map else _means(both).mean(-1)

    return one_by_one(compare, one, other) if most.ndim == 0 else compare(one, other)


def _at_scales(window: _Window, factors: tuple[float, ...], one: Any, other: Any, most: Any) -> Any:
    def compare(one: Any, other: Any) -> Any:
        scales: list[Any] = []
        for scale in range(len(factors)):
            if scale:
                one, other = _halved(one), _halved(other)
            brightness, structure = window.compare(one, other, most)
            last = scale == len(factors) - 1
            scales.append(_means(brightness * structure if last else structure))
        powers = jax.nn.relu(jnp.stack(scales, axis=-1)) ** np.asarray(factors, np.float32)
        return powers.prod(-1).mean(-1)

    return one_by_one(compare, one, other) if most.ndim == 0 else compare(one, other)


def _means(image: Any) -> Any:
    """Return the mean of each channel. XLA computes a matrix product faster than a sum of what it must compute first."""
    *before, height, width, channels = image.shape
    each = np.tile(np.eye(channels, dtype=np.float32), (width, 1)) / np.float32(width)
    rows = image.reshape(*before, height, width * channels)
    return jnp.matmul(rows, each, precision="highest").mean(-2)


def _gaussian(size: int, sigma: float) -> Array:
    places = np.arange(size, dtype=np.float32) - np.float32(size - 1) / 2
    weights = np.exp(-0.5 * np.square(places) / np.square(np.float32(sigma)))
    return (weights / weights.sum()).astype(np.float32)


def _halved(image: Any) -> Any:
    """Return the means of 2 x 2 pixels. An odd last row or column is repeated."""
    height, width = image.shape[-3:-1]
    room = [(0, 0)] * (image.ndim - 3) + [(0, height % 2), (0, width % 2), (0, 0)]
    whole = jnp.pad(image, room, mode="edge")
    rows, columns = whole.shape[-3] // 2, whole.shape[-2] // 2
    pairs = whole.reshape(*image.shape[:-3], rows, 2, columns, 2, image.shape[-1])
    return pairs.mean((-4, -2))


def _compared(
    function: str,
    formula: Callable[..., Any],
    settings: tuple[Any, ...],
    one: object,
    other: object,
    most: object,
) -> Any:
    whole = compiled(_in_floats, function, formula, settings)
    return apply(function, whole, one, other, most, accepts=REALS)


def _in_floats(
    function: str,
    formula: Callable[..., Any],
    settings: tuple[Any, ...],
    one: Any,
    other: Any,
    most: Any,
) -> Any:
    check_pair(function, tuple(one.shape), tuple(other.shape))
    # The ratio does not depend on the scale. XLA would scale and subtract in one operation, which rounds one side only.
    convert = _unscaled if formula is _psnr else _unit
    return formula(*settings, *(convert(each, one.dtype) for each in (one, other, most)))


def _unscaled(values: Any, like: Any) -> Any:
    return values.astype(like).astype(dtypes.float32)


def _unit(values: Any, like: Any) -> Any:
    """Convert to float32; integers are scaled so that the largest is 1."""
    typed = values.astype(like)
    if dtypes.as_dtype(like).kind not in "iu":
        return typed.astype(dtypes.float32)
    return typed.astype(dtypes.float32) * np.float32(1 / np.iinfo(like).max)
