"""Transposed convolutions: the gradients of convolutions for their input, which make tensors larger."""

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.creation import Tensor, convert_to_tensor, static_shape
from evenfeed.tensors.nn.convolutions import convolved
from evenfeed.tensors.operands import REAL_FLOATS, apply


def conv1d_transpose(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: object = "SAME",
    data_format: str = "NWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of `conv1d` for its input. The filters are [length, channels out, channels in].

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.conv1d_transpose(tf.ones([1, 1, 1]), tf.ones([2, 1, 1]), [1, 2, 1], 2).tolist()
        [[[1.0], [1.0]]]
    """
    given = (input, filters, output_shape, strides, padding, data_format, dilations)
    return _transposed("conv1d_transpose", *given, rank=1)


def conv2d_transpose(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: object = "SAME",
    data_format: str = "NHWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of `conv2d` for its input. The filters are [rows, columns, channels out, channels in].

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.conv2d_transpose(tf.ones([1, 1, 1, 1]), tf.ones([2, 2, 1, 1]), [1, 2, 2, 1], strides=2, padding="VALID").tolist()
        [[[[1.0], [1.0]], [[1.0], [1.0]]]]
    """
    given = (input, filters, output_shape, strides, padding, data_format, dilations)
    return _transposed("conv2d_transpose", *given, rank=2)


def conv3d_transpose(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: object = "SAME",
    data_format: str = "NDHWC",
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of `conv3d` for its input. The filters end with [channels out, channels in].

    Examples:
        >>> import evenfeed as tf
        >>> x, filters = tf.ones([1, 1, 1, 1, 1]), tf.ones([1, 1, 2, 1, 1])
        >>> tf.nn.conv3d_transpose(x, filters, [1, 1, 1, 2, 1], [1, 1, 1, 2, 1]).shape
        (1, 1, 1, 2, 1)
    """
    given = (input, filters, output_shape, strides, padding, data_format, dilations)
    return _transposed("conv3d_transpose", *given, rank=3)


def conv_transpose(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: object = "SAME",
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of a convolution for its input, with one, two or three spatial axes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.conv_transpose(tf.ones([1, 1, 1]), tf.ones([2, 1, 1]), [1, 2, 1], 2).tolist()
        [[[1.0], [1.0]]]
    """
    rank = convert_to_tensor(filters).ndim - 2
    given = (input, filters, output_shape, strides, padding, data_format, dilations)
    return _transposed("conv_transpose", *given, rank=rank)


def _transposed(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    function: str,
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: object,
    data_format: str | None,
    dilations: object,
    *,
    rank: int,
) -> Tensor:
    lengths = static_shape(output_shape)

    def formula(values: Any, kernel: Any) -> Any:
        def forward(whole: Any) -> Any:
            return convolved(
                function, whole, kernel, strides, padding, data_format, dilations, rank=rank
            )

        _, backward = jax.vjp(forward, jnp.zeros(lengths, values.dtype))
        return backward(values)[0]

    return apply(function, formula, input, filters, accepts=REAL_FLOATS)
