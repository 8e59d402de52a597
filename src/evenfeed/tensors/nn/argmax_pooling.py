"""`max_pool_with_argmax`: the largest value in each window, and where it is."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.creation import DTypeLike, Tensor
from evenfeed.tensors.nn.layouts import layout_of, paddings_of, per_axis
from evenfeed.tensors.operands import REALS, apply, in_dtype


def max_pool_with_argmax(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input: object,
    ksize: object,
    strides: object,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: DTypeLike = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the largest value in each window, and its place in the flattened image.

    Args:
        input: Images, as [batch, height, width, channels].
        ksize: The length of a window, for both axes or for each.
        strides: The step, for both axes or for each.
        padding: "SAME" or "VALID".
        data_format: Only "NHWC".
        output_dtype: int32 or int64.
        include_batch_in_index: Count places in the flattened batch.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> image = tf.constant([[[[1.0], [4.0]], [[3.0], [2.0]]]])
        >>> values, places = tf.nn.max_pool_with_argmax(image, 2, 2, "VALID")
        >>> values.tolist(), places.tolist()
        ([[[[4.0]]]], [[[[1]]]])
    """
    if data_format != "NHWC" or not isinstance(paddings_of(padding, "NHWC"), str):
        raise InvalidArgumentError(
            f"max_pool_with_argmax needs NHWC and the padding SAME or VALID, but got {data_format} and {padding!r}.",
            fix="transpose the images with evenfeed.transpose, or pad them with evenfeed.pad.",
        )
    layout = layout_of("max_pool_with_argmax", data_format, 2)
    window, steps = per_axis(ksize, layout), per_axis(strides, layout)

    def formula(x: Any) -> Any:
        cuts = [
            _cuts(length, size, step, padding)
            for length, size, step in zip(x.shape[1:3], window, steps, strict=True)
        ]
        (rows, row_known), (columns, column_known) = cuts
        # [batch, row, column, place in the window, channel]
        found = x[:, rows][:, :, :, columns]
        found = jnp.transpose(found, (0, 1, 3, 2, 4, 5))
        known = row_known[:, None, :, None] & column_known[None, :, None, :]
        lowest = jnp.iinfo(x.dtype).min if x.dtype.kind in "iu" else -jnp.inf
        flat = jnp.where(known[None, ..., None], found, np.asarray(lowest, x.dtype))
        flat = flat.reshape(*flat.shape[:3], -1, x.shape[3])
        best = jnp.argmax(flat, axis=3)
        places = (rows[:, None, :, None] * x.shape[2] + columns[None, :, None, :]).reshape(
            len(rows), len(columns), -1
        )
        index = jnp.take_along_axis(
            jnp.broadcast_to(jnp.asarray(places)[None, ..., None], flat.shape),
            best[:, :, :, None],
            3,
        )[:, :, :, 0]
        index = index * x.shape[3] + jnp.arange(x.shape[3])
        if include_batch_in_index:
            image = x.shape[1] * x.shape[2] * x.shape[3]
            index += jnp.arange(x.shape[0])[:, None, None, None] * image
        return jnp.max(flat, axis=3), in_dtype(index, output_dtype)

    return apply("max_pool_with_argmax", formula, input, accepts=REALS)


def _cuts(length: int, size: int, step: int, padding: str) -> tuple[Any, Any]:
    """Return which values each window has along an axis, and which of them are inside."""
    if padding == "SAME":
        count = -(-length // step)
        before = max((count - 1) * step + size - length, 0) // 2
    else:
        count, before = max((length - size) // step + 1, 0), 0
    places = np.arange(count)[:, None] * step - before + np.arange(size)
    inside = (places >= 0) & (places < length)
    return np.clip(places, 0, max(length - 1, 0)), inside
