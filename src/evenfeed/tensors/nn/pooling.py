"""Pooling: `max_pool`, `avg_pool` and their kin."""

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any, Final

import numpy as np

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.nn.layouts import layout_of, paddings_of, per_axis
from evenfeed.tensors.operands import REAL_FLOATS, REALS, apply

_LARGEST: Final = "largest"
_AVERAGE: Final = "average"


def max_pool(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the largest value in each window.

    Args:
        input: The values, as [batch, ..., channels], or with the channels second.
        ksize: The length of a window, for all axes or for each.
        strides: The step, for all axes or for each.
        padding: "SAME", "VALID", or a list of [before, after] for each axis.
        data_format: For example "NHWC" or "NCHW".
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.constant([[[1.0], [3.0]]])
        >>> tf.nn.max_pool(x, ksize=2, strides=2, padding="VALID").tolist()
        [[[3.0]]]
    """
    rank = convert_to_tensor(input).ndim - 2
    return _pooled("max_pool", _LARGEST, input, ksize, strides, padding, data_format, rank)


def max_pool1d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """Return the largest value in each window; see `max_pool`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.max_pool1d([[[1.0], [3.0]]], 2, 2, "VALID").tolist()
        [[[3.0]]]
    """
    return _pooled("max_pool1d", _LARGEST, input, ksize, strides, padding, data_format, 1)


def max_pool2d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Return the largest value in each window; see `max_pool`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.max_pool2d([[[[1.0], [3.0]]]], [1, 2], [1, 2], "VALID").tolist()
        [[[[3.0]]]]
    """
    return _pooled("max_pool2d", _LARGEST, input, ksize, strides, padding, data_format, 2)


def max_pool3d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the largest value in each window; see `max_pool`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.max_pool3d([[[[[1.0], [3.0]]]]], [1, 1, 2], [1, 1, 2], "VALID").tolist()
        [[[[[3.0]]]]]
    """
    return _pooled("max_pool3d", _LARGEST, input, ksize, strides, padding, data_format, 3)


def avg_pool(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the average in each window.

    Args:
        input: The values, as [batch, ..., channels], or with the channels second.
        ksize: The length of a window, for all axes or for each.
        strides: The step, for all axes or for each.
        padding: "SAME", "VALID", or a list of [before, after] for each axis.
        data_format: For example "NHWC" or "NCHW".
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.constant([[[1.0], [3.0]]])
        >>> tf.nn.avg_pool(x, ksize=2, strides=2, padding="VALID").tolist()
        [[[2.0]]]
    """
    rank = convert_to_tensor(input).ndim - 2
    return _pooled("avg_pool", _AVERAGE, input, ksize, strides, padding, data_format, rank)


def avg_pool1d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """Return the average in each window; see `avg_pool`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.avg_pool1d([[[1.0], [3.0]]], 2, 2, "VALID").tolist()
        [[[2.0]]]
    """
    return _pooled("avg_pool1d", _AVERAGE, input, ksize, strides, padding, data_format, 1)


def avg_pool2d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Return the average in each window; see `avg_pool`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.avg_pool2d([[[[1.0], [3.0]]]], [1, 2], [1, 2], "VALID").tolist()
        [[[[2.0]]]]
    """
    return _pooled("avg_pool2d", _AVERAGE, input, ksize, strides, padding, data_format, 2)


def avg_pool3d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the average in each window; see `avg_pool`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.avg_pool3d([[[[[1.0], [3.0]]]]], [1, 1, 2], [1, 1, 2], "VALID").tolist()
        [[[[[2.0]]]]]
    """
    return _pooled("avg_pool3d", _AVERAGE, input, ksize, strides, padding, data_format, 3)


def pool(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    window_shape: object,
    pooling_type: str,
    strides: object = None,
    padding: object = "VALID",
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Return the largest value or the average in each window.

    Args:
        input: The values, as [batch, ..., channels], or with the channels second.
        window_shape: The length of a window along each spatial axis.
        pooling_type: "MAX" or "AVG".
        strides: The step along each spatial axis; by default 1.
        padding: "SAME", "VALID", or a list of [before, after] for each axis.
        data_format: For example "NHWC" or "NCHW".
        dilations: Only 1 is supported.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.pool([[[1.0], [3.0], [5.0]]], [2], "AVG").tolist()
        [[[2.0], [4.0]]]
    """
    rank = convert_to_tensor(input).ndim - 2
    kind = {"MAX": _LARGEST, "AVG": _AVERAGE}.get(pooling_type)
    if kind is None:
        raise ValueError(
            described(
                f"pooling_type must be MAX or AVG, but got {pooling_type!r}.", fix='pass "MAX".'
            )
        )
    if any(one != 1 for one in per_axis(dilations, layout_of("pool", data_format, rank))):
        raise NotImplementedError(
            described("pool does not support dilations.", fix="leave them out.")
        )
    steps = 1 if strides is None else strides
    return _pooled("pool", kind, input, window_shape, steps, padding, data_format, rank)


def _pooled(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    function: str,
    kind: str,
    value: object,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str | None,
    rank: int,
) -> Any:
    layout = layout_of(function, data_format, rank)
    window, steps = ([*_all_axes(given, layout)] for given in (ksize, strides))
    accepts = REALS if kind == _LARGEST else REAL_FLOATS

    def formula(x: Any) -> Any:
        borders = paddings_of(padding, layout)
        pads = (
            borders
            if isinstance(borders, str)
            else [(0, 0) if axis in "NC" else borders[place] for axis, place in _places(layout)]
        )
        if kind == _LARGEST:
            lowest = jnp.iinfo(x.dtype).min if x.dtype.kind in "iu" else -jnp.inf
            return jax.lax.reduce_window(
                x, np.asarray(lowest, x.dtype), jax.lax.max, window, steps, pads
            )
        zero = np.zeros((), x.dtype)
        totals = jax.lax.reduce_window(x, zero, jax.lax.add, window, steps, pads)
        # Values beyond the border do not count.
        counts = jax.lax.reduce_window(jnp.ones_like(x), zero, jax.lax.add, window, steps, pads)
        return totals / counts

    return apply(function, formula, value, accepts=accepts)


def _all_axes(given: object, layout: str) -> list[int]:
    lengths = per_axis(given, layout)
    return [1 if axis in "NC" else lengths[place] for axis, place in _places(layout)]


def _places(layout: str) -> list[tuple[str, int]]:
    """Return each axis of the layout, with its place among the spatial ones."""
    space = [axis for axis in layout if axis not in "NC"]
    return [(axis, space.index(axis) if axis in space else -1) for axis in layout]
