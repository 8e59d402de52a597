"""Convolutions: `conv2d` and its kin."""

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

from evenfeed.core.lazy_jax import jax
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.nn.layouts import layout_of, paddings_of, per_axis
from evenfeed.tensors.operands import apply


def conv1d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    stride: object,
    padding: object,
    data_format: str = "NWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Slide filters over rows.

    Args:
        input: The values, as [batch, rows, channels], or with the channels second.
        filters: The filters, as [rows, channels in, channels out].
        stride: The step, for all axes or for each.
        padding: "SAME", "VALID", or a list of [before, after] for each axis.
        data_format: "NWC", or with the channels second, "NCW".
        dilations: The distance of the values under a filter, for all axes or for each.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.conv1d([[[1.0], [2.0], [3.0]]], [[[1.0]], [[1.0]]], stride=1, padding="VALID").tolist()
        [[[3.0], [5.0]]]
    """
    return convolved("conv1d", input, filters, stride, padding, data_format, dilations, rank=1)


def conv2d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    strides: object,
    padding: object,
    data_format: str = "NHWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Slide filters over images.

    Args:
        input: The values, as [batch, rows, columns, channels], or with the channels second.
        filters: The filters, as [rows, columns, channels in, channels out].
        strides: The step, for all axes or for each.
        padding: "SAME", "VALID", or a list of [before, after] for each axis.
        data_format: "NHWC", or with the channels second, "NCHW".
        dilations: The distance of the values under a filter, for all axes or for each.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.conv2d(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), strides=1, padding="VALID").tolist()
        [[[[4.0]]]]
    """
    return convolved("conv2d", input, filters, strides, padding, data_format, dilations, rank=2)


def conv3d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    strides: object,
    padding: object,
    data_format: str = "NDHWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Slide filters over volumes.

    Args:
        input: The values, as [batch, depth, rows, columns, channels], or with the channels second.
        filters: The filters, as [depth, rows, columns, channels in, channels out].
        strides: The step, for all axes or for each.
        padding: "SAME", "VALID", or a list of [before, after] for each axis.
        data_format: "NDHWC", or with the channels second, "NCDHW".
        dilations: The distance of the values under a filter, for all axes or for each.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.conv3d(tf.ones([1, 2, 2, 2, 1]), tf.ones([2, 2, 2, 1, 1]), strides=[1] * 5, padding="VALID").tolist()
        [[[[[8.0]]]]]
    """
    return convolved("conv3d", input, filters, strides, padding, data_format, dilations, rank=3)


def convolution(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    strides: object = None,
    padding: object = "VALID",
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Slide filters over rows, images or volumes, whichever the rank says; see `conv2d`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.convolution(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1])).tolist()
        [[[[4.0]]]]
    """
    rank = convert_to_tensor(filters).ndim - 2
    return convolved(
        "convolution", input, filters, strides, padding, data_format, dilations, rank=rank
    )


def depthwise_conv2d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filter: object,
    strides: object,
    padding: object,
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Slide separate filters over each channel of images. The filters are [rows, columns, channels, filters of each].

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.depthwise_conv2d(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], "VALID").tolist()
        [[[[4.0]]]]
    """
    kernel = convert_to_tensor(filter)
    rows, columns, channels, count = kernel.shape
    one_each = kernel.reshape(rows, columns, 1, channels * count)
    return convolved(
        "depthwise_conv2d",
        input,
        one_each,
        strides,
        padding,
        data_format,
        dilations,
        rank=2,
        groups=channels,
    )


def separable_conv2d(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    depthwise_filter: object,
    pointwise_filter: object,
    strides: object,
    padding: object,
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Slide separate filters over each channel, then mix the channels of each pixel.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.separable_conv2d(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), tf.ones([1, 1, 1, 1]), [1, 1, 1, 1], "VALID").tolist()
        [[[[4.0]]]]
    """
    deep = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return convolved(
        "separable_conv2d", deep, pointwise_filter, 1, "VALID", data_format, None, rank=2
    )


def atrous_conv2d(
    value: object, filters: object, rate: object, padding: object, name: str | None = None
) -> Tensor:
    """Slide filters over images, `rate` pixels apart.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.atrous_conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 2, "VALID").tolist()
        [[[[4.0]]]]
    """
    return convolved("atrous_conv2d", value, filters, 1, padding, "NHWC", rate, rank=2)


def convolved(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    function: str,
    value: object,
    filters: object,
    strides: object,
    padding: object,
    data_format: str | None,
    dilations: object,
    *,
    rank: int,
    groups: int = 1,
) -> Any:
    """Slide filters over a tensor with `rank` spatial axes."""
    layout = layout_of(function, data_format, rank)
    steps = per_axis(strides, layout)
    apart = per_axis(dilations, layout)
    space = "".join(axis for axis in layout if axis not in "NC")

    def formula(x: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            kernel.astype(x.dtype),
            steps,
            paddings_of(padding, layout),
            rhs_dilation=apart,
            dimension_numbers=(layout, f"{space}IO", layout),
            feature_group_count=groups,
        )

    return apply(function, formula, value, filters)
