"""Parts of images that models read: `extract_patches`, `crop_and_resize`, `extract_glimpse`."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.images.glimpses import Glimpse, Places
from evenfeed.tensors.arrays.picking import gather
from evenfeed.tensors.creation import Tensor, convert_to_tensor, static_shape
from evenfeed.tensors.operands import COMPUTABLE, REALS, apply
from evenfeed.tensors.randomness import normal, uniform
from evenfeed.tensors.vision.compiling import by_kernel, compiled

_METHODS: Final = ("bilinear", "nearest")
_NOISES: Final = ("uniform", "gaussian", "zero")
# JAX fills what an index out of range would read with NaN. A map notices that and raises.
_FILLED: Final[dict[str, Any]] = {"mode": "fill", "wrap_negative_indices": False}


def extract_patches(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    images: object,
    sizes: object,
    strides: object,
    rates: object,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Cut images into patches, and lay the pixels of each patch along the last axis.

    Args:
        images: A batch of images, as [batch, rows, columns, channels].
        sizes: The size of a patch: [1, rows, columns, 1].
        strides: The distance of the patches: [1, rows, columns, 1].
        rates: The distance of the pixels of a patch: [1, rows, columns, 1].
        padding: "VALID" for patches inside the image, or "SAME" to add zeros around it.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> images = tf.reshape(tf.range(16), [1, 4, 4, 1])
        >>> tf.image.extract_patches(images, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")[0, 0].tolist()
        [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    if padding not in ("SAME", "VALID"):
        raise InvalidArgumentError(
            f"padding must be SAME or VALID, but got {padding!r}.", fix='pass "SAME".'
        )
    size, stride, rate = (
        _middle(numbers, what)
        for numbers, what in ((sizes, "sizes"), (strides, "strides"), (rates, "rates"))
    )

    formula = compiled(_patches, size, stride, rate, padding == "SAME")
    return apply("extract_patches", formula, images, accepts=COMPUTABLE)


def crop_and_resize(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    image: object,
    boxes: object,
    box_indices: object,
    crop_size: object,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Cut boxes out of images, and resize them to one size. The result is float32.

    Args:
        image: A batch of images, as [batch, rows, columns, channels].
        boxes: The boxes, as [boxes, 4]: top, left, bottom and right, where 1.0 is the last row or column.
        box_indices: The image of each box.
        crop_size: The height and the width of the results.
        method: "bilinear" or "nearest".
        extrapolation_value: The value of pixels outside the image.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: An index is not that of an image.

    Examples:
        >>> import evenfeed as tf
        >>> image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
        >>> tf.image.crop_and_resize(image, [[0, 0, 0.5, 0.5]], [0], [2, 2])[..., 0].tolist()
        [[[0.0, 1.0], [3.0, 4.0]]]
    """
    if method not in _METHODS:
        raise InvalidArgumentError(
            f'method must be "bilinear" or "nearest", but got {method!r}.',
            fix='pass "bilinear" or "nearest".',
        )
    height, width = _size(crop_size, "crop_size")
    batch = convert_to_tensor(image)
    _check_rank("crop_and_resize", batch)
    corners = convert_to_tensor(boxes, dtypes.float32)
    which = _image_of_each(corners, box_indices, batch.shape[0])

    cut = compiled(_crops, height, width, method == "nearest", float(extrapolation_value))

    def formula(images: Any, boxes: Any) -> Any:
        return cut(images, boxes, which)

    return apply("crop_and_resize", formula, batch, corners, accepts=REALS)


def extract_glimpse(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    size: object,
    offsets: object,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """Cut a window out of each image. The parts of a window that lie outside its image are noise.

    Args:
        input: A batch of float32 images, as [batch, rows, columns, channels].
        size: The height and the width of the windows.
        offsets: The row and the column of each window.
        centered: Count from the centre of the image instead of its first pixel.
        normalized: The offsets are fractions of the image's size: -1 and 1 are its borders if they are centered,
            and the window has its centre there. Otherwise they are pixels, and the window begins there.
        noise: "uniform" or "gaussian" noise, or "zero".
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> image = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
        >>> tf.image.extract_glimpse(image, [2, 2], [[0.0, 0.0]], noise="zero")[0, ..., 0].tolist()
        [[5.0, 6.0], [9.0, 10.0]]
    """
    if noise not in _NOISES:
        raise InvalidArgumentError(
            f"noise must be one of {_NOISES}, but got {noise!r}.", fix='pass "zero".'
        )
    window = _size(size, "size")

    places = Places(window, bool(centered), bool(normalized))
    batch = convert_to_tensor(input, dtypes.float32)
    starts = offsets if is_tensor(offsets) else np.array(offsets, np.float32)
    if noise == "zero" and batch.ndim == 4:
        found = by_kernel(Glimpse(places), batch, starts)
        if found is not None:
            return found
    cut = compiled(_glimpses, places)

    def formula(images: Any, offsets: Any) -> Any:
        found, inside = cut(images, offsets)
        return jnp.where(inside[..., None], found, _noise(noise, images, found.shape))

    return apply(
        "extract_glimpse",
        formula,
        batch,
        convert_to_tensor(offsets, dtypes.float32),
    )


def _patches(
    size: tuple[int, int], stride: tuple[int, int], rate: tuple[int, int], padded: bool, batch: Any
) -> Any:
    _check_rank("extract_patches", batch)
    (rows, above), (columns, before) = (
        _windows(length, *each, padded=padded)
        for length, *each in zip(batch.shape[1:3], size, stride, rate, strict=True)
    )
    if size == stride and rate == (1, 1) and not padded:
        return _tiles(batch, size)
    room = [(0, 0), _around(rows, above, batch.shape[1])]
    room += [_around(columns, before, batch.shape[2]), (0, 0)]
    whole = jnp.pad(batch, room)
    found = whole[:, (rows + above)[:, None, :, None], (columns + before)[None, :, None, :]]
    return found.reshape(*found.shape[:3], size[0] * size[1] * batch.shape[3])


def _tiles(batch: Any, size: tuple[int, int]) -> Any:
    """Cut images into patches side by side, which XLA does faster by exchanging axes than by indices."""
    count, height, width, channels = batch.shape
    rows, columns = height // size[0], width // size[1]
    whole = batch[:, : rows * size[0], : columns * size[1]]
    tiles = whole.reshape(count, rows, size[0], columns, size[1], channels).swapaxes(2, 3)
    return tiles.reshape(count, rows, columns, size[0] * size[1] * channels)


def _crops(  # noqa: PLR0913, PLR0917 - the settings, then the arrays
    height: int, width: int, nearest: bool, outside: float, images: Any, boxes: Any, which: Any
) -> Any:
    rows = _places(boxes[:, 0], boxes[:, 2], images.shape[1], height)
    columns = _places(boxes[:, 1], boxes[:, 3], images.shape[2], width)

    def crop(box: tuple[Any, Any, Any]) -> Any:
        row, column, number = box
        image = images.at[number].get(**_FILLED)

        def pixels(row: Any, column: Any) -> Any:
            """Take rows, then columns: XLA copies whole rows at once."""
            inner = [
                jnp.clip(at, 0, length - 1).astype(dtypes.int32)
                for at, length in zip((row, column), image.shape, strict=False)
            ]
            return image[inner[0]].astype(dtypes.float32)[:, inner[1]]

        if nearest:
            found = pixels(_rounded(row), _rounded(column))
        else:
            found = _interpolated(pixels, row, column)
        inside = _within(row, image.shape[0])[:, None] & _within(column, image.shape[1])
        known = (number >= 0) & (number < images.shape[0])
        return jnp.where(known, jnp.where(inside[..., None], found, jnp.float32(outside)), np.nan)

    # One at a time: the intermediate values of a box stay in the cache.
    return jax.lax.map(crop, (rows, columns, which))


def _glimpses(places: Places, images: Any, offsets: Any) -> tuple[Any, Any]:
    """Return the windows, and which of their pixels lie inside the image."""
    _check_rank("extract_glimpse", images)
    starts = jnp.trunc(places.first_pixels(images.shape, offsets)).astype(dtypes.int32)
    rows = (starts[:, :1] + np.arange(places.window[0]))[:, :, None]
    columns = (starts[:, 1:] + np.arange(places.window[1]))[:, None, :]
    found = images[
        np.arange(images.shape[0])[:, None, None],
        jnp.clip(rows, 0, images.shape[1] - 1),
        jnp.clip(columns, 0, images.shape[2] - 1),
    ]
    return found, _within(rows, images.shape[1]) & _within(columns, images.shape[2])


def _noise(kind: str, images: Any, shape: tuple[int, ...]) -> Any:
    if kind == "zero":
        return jnp.zeros((), images.dtype)
    if kind == "gaussian":
        return normal(shape)
    return images.min() + uniform(shape) * (images.max() - images.min())


def _windows(length: int, size: int, stride: int, rate: int, *, padded: bool) -> tuple[Array, int]:
    """Return the indices that each window reads, and how many zeros stand before the first entry."""
    reach = (size - 1) * rate + 1
    count = -(-length // stride) if padded else max(0, -(-(length - reach + 1) // stride))
    before = max((count - 1) * stride + reach - length, 0) // 2 if padded else 0
    starts = np.arange(count) * stride - before
    return starts[:, None] + np.arange(size) * rate, before


def _around(places: Array, before: int, length: int) -> tuple[int, int]:
    return before, max(int(places.max(initial=0)) - length + 1, 0)


def _middle(numbers: object, what: str) -> tuple[int, int]:
    """Return the rows and the columns of [1, rows, columns, 1]."""
    given = static_shape(numbers)
    if len(given) != 4 or given[0] != 1 or given[3] != 1 or min(given) < 1:
        raise InvalidArgumentError(
            f"{what} must be [1, rows, columns, 1], but got {list(given)}.",
            fix=f"pass for example {what}=[1, 2, 2, 1].",
        )
    return given[1], given[2]


def _size(numbers: object, what: str) -> tuple[int, int]:
    given = static_shape(numbers)
    if len(given) != 2 or min(given) < 1:
        raise InvalidArgumentError(
            f"{what} must be a height and a width of at least 1, but got {list(given)}.",
            fix=f"pass for example {what}=[24, 24].",
        )
    return given[0], given[1]


def _check_rank(function: str, batch: Any) -> None:
    if batch.ndim != 4:
        raise InvalidArgumentError(
            f"{function} needs a batch of images, but got shape {tuple(batch.shape)}.",
            fix="pass [batch, rows, columns, channels]; add a missing batch axis with images[None].",
        )


def _image_of_each(boxes: Any, indices: object, count: int) -> Any:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InvalidArgumentError(
            f"boxes must have the shape [boxes, 4], but got {tuple(boxes.shape)}.",
            fix="pass top, left, bottom and right of each box.",
        )
    which = gather(np.arange(count, dtype=np.int32), indices)
    if which.shape != boxes.shape[:1]:
        raise InvalidArgumentError(
            f"box_indices must have one index for each of {boxes.shape[0]} boxes, but got shape {which.shape}.",
            fix="pass the index of the image that each box belongs to.",
        )
    return which


def _places(start: Any, stop: Any, length: int, count: int) -> Any:
    """Return which pixel, and which fraction of the way to the next, each new pixel shows."""
    last = np.float32(length - 1)
    if count == 1:
        return (np.float32(0.5) * (start + stop) * last)[:, None]
    step = (stop - start) * last / np.float32(count - 1)
    return (start * last)[:, None] + np.arange(count, dtype=np.float32) * step[:, None]


def _within(places: Any, length: int) -> Any:
    return (places >= 0) & (places <= length - 1)


def _rounded(places: Any) -> Any:
    """Round to the nearest integer; halves away from zero, as C does."""
    return jnp.floor(places + np.float32(0.5))


def _interpolated(pixels: Any, rows: Any, columns: Any) -> Any:
    top, left = jnp.floor(rows), jnp.floor(columns)
    down, right = (rows - top)[:, None, None], (columns - left)[:, None]
    edges = [(pixels(at, left), pixels(at, jnp.ceil(columns))) for at in (top, jnp.ceil(rows))]
    upper, lower = (first + (last - first) * right for first, last in edges)
    return upper + (lower - upper) * down
