"""Functions that count: `bincount`, `confusion_matrix`, `histogram_fixed_width`."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from functools import partial
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged import ragged_math
from evenfeed.core.traced.index_checks import checked_index
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.operands import ORDERED, REALS, apply, check_dtypes, in_dtype
from evenfeed.tensors.ragged_dispatch import for_ragged


@for_ragged(ragged_math.bincount)
def bincount(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    arr: object,
    weights: object = None,
    minlength: object = None,
    maxlength: object = None,
    dtype: DTypeLike = dtypes.int32,
    axis: object = None,
    binary_output: bool = False,
    name: str | None = None,
) -> Tensor:
    """Count how often each integer from 0 on appears.

    Args:
        arr: The integers. If their largest is to give the length of the result, they must be known while JAX traces.
        weights: What each integer counts, instead of 1.
        minlength: The least length of the result.
        maxlength: The largest length of the result; larger integers are not counted.
        dtype: The dtype of the counts; with weights, they have that of the weights.
        axis: -1 counts in each row, None or 0 in all.
        binary_output: Return 1 for each integer that appears.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.bincount([1, 3, 1]).tolist()
        [0, 2, 0, 1]
    """
    values = _integers("bincount", arr)
    by_row = ragged_math.counts_by_row(axis)
    if by_row and values.ndim > 2:
        raise InvalidArgumentError(
            f"bincount counts in the rows of a matrix, but got the shape {tuple(values.shape)}.",
            fix="reshape it to a matrix first.",
        )
    if not is_traced(values) and values.size and np.asarray(values).min() < 0:
        raise InvalidArgumentError(
            "bincount needs integers from 0 on.", fix="leave out negative ones."
        )
    length = _length(values, minlength, maxlength)

    def formula(numbers: Any, *heavy: Any) -> Any:
        rows = (
            numbers.reshape(-1, numbers.shape[-1] if numbers.ndim else 1)
            if by_row
            else numbers.reshape(1, -1)
        )
        ones = in_dtype(jnp.ones(rows.shape, dtypes.int32), dtype)
        each = heavy[0].reshape(rows.shape) if heavy else ones
        is_at = (rows[..., None] == jnp.arange(length)).astype(each.dtype)
        counts = jnp.einsum("rn,rnk->rk", each, is_at)
        if binary_output:
            counts = (counts > 0).astype(counts.dtype)
        counts = counts if by_row and numbers.ndim > 1 else counts[0]
        return counts if heavy else in_dtype(counts, dtype)

    given = [] if weights is None else [convert_to_tensor(weights)]
    return apply("bincount", formula, values, *given)


def _integers(function: str, given: object) -> Any:
    """Return class numbers as integers: TensorFlow truncates floats, such as the results of `round`."""
    tensor: Any = convert_to_tensor(given)
    check_dtypes(function, [tensor], ORDERED)
    return tensor if tensor.dtype.kind in "iu" else tensor.astype(dtypes.int32)


def confusion_matrix(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    labels: object,
    predictions: object,
    num_classes: object = None,
    weights: object = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Count each pair of a label (row) and a prediction (column).

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.confusion_matrix([0, 1, 1], [0, 1, 0]).tolist()
        [[1, 0], [1, 1]]
    """
    rows, columns = (
        _integers("confusion_matrix", labels),
        _integers("confusion_matrix", predictions),
    )
    if num_classes is None:
        count = max(int(np.asarray(one).max()) if one.size else -1 for one in (rows, columns)) + 1
    else:
        count = known_integer(num_classes, "num_classes")
    for known in (rows, columns):
        if (
            not is_traced(known)
            and known.size
            and not 0 <= np.asarray(known).min() <= np.asarray(known).max() < count
        ):
            raise InvalidArgumentError(
                f"Labels and predictions must be from 0 to {count - 1}.",
                fix="pass a larger num_classes.",
            )

    def formula(*heavy: Any) -> Any:
        is_row, is_column = (
            jax.nn.one_hot(checked_index(one, count), count, dtype=dtypes.float32)
            for one in (rows, columns)
        )
        each = is_row if not heavy else is_row * heavy[0].astype(dtypes.float32)[:, None]
        return in_dtype(jnp.einsum("nr,nc->rc", each, is_column), dtype)

    return apply("confusion_matrix", formula, *([] if weights is None else [weights]))


def histogram_fixed_width_bins(
    values: object,
    value_range: object,
    nbins: object = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Return for each value the number of its bin, of `nbins` between the two ends of a range.

    Examples:
        >>> import evenfeed as tf
        >>> tf.histogram_fixed_width_bins([-1.0, 0.0, 2.5, 9.0], [0.0, 5.0], nbins=5).tolist()
        [0, 0, 2, 4]
    """
    count = known_integer(nbins, "nbins")
    if count < 1:
        raise InvalidArgumentError(
            f"nbins must be at least 1, but got {count}.", fix="pass the number of bins."
        )
    return apply(
        "histogram_fixed_width_bins",
        partial(_bins, count=count, dtype=dtype),
        values,
        value_range,
        accepts=REALS,
    )


def histogram_fixed_width(
    values: object,
    value_range: object,
    nbins: object = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Count the values in each of `nbins` bins between the two ends of a range.

    Examples:
        >>> import evenfeed as tf
        >>> tf.histogram_fixed_width([-1.0, 0.0, 2.5, 9.0], [0.0, 5.0], nbins=5).tolist()
        [2, 0, 1, 0, 1]
    """
    count = known_integer(nbins, "nbins")
    _check_range(value_range)
    bins = apply(
        "histogram_fixed_width",
        partial(_bins, count=count, dtype=dtypes.int32),
        values,
        value_range,
        accepts=REALS,
    )
    return bincount(bins, minlength=count, maxlength=count, dtype=dtype)


def _length(values: Any, minlength: object, maxlength: object) -> int:
    low = 0 if minlength is None else known_integer(minlength, "minlength")
    high = None if maxlength is None else known_integer(maxlength, "maxlength")
    if high is not None and high < 0:
        raise InvalidArgumentError(
            f"maxlength must be at least 0, but got {high}.", fix="omit it, or pass a length."
        )
    if high is not None and low >= high:
        return high
    found = max(low, int(np.asarray(values).max()) + 1 if values.size else 0)
    return found if high is None else min(found, high)


def _check_range(value_range: object) -> None:
    ends = convert_to_tensor(value_range)
    is_pair = tuple(ends.shape) == (2,)
    # In NumPy: while JAX traces, it would also trace the comparison of constants.
    if not is_pair or (not is_traced(ends) and not np.less(*np.asarray(ends))):
        raise InvalidArgumentError(
            f"value_range must be [low, high] with low < high, but got {shortened(value_range)}.",
            fix="pass the smaller end first.",
        )


def _bins(values: Any, value_range: Any, count: int, dtype: DTypeLike) -> Any:
    if value_range.ndim != 1 or len(value_range) < 2:
        raise InvalidArgumentError(
            f"value_range must be [low, high], but got the shape {tuple(value_range.shape)}.",
            fix="pass both ends.",
        )
    low, high = value_range[0], value_range[1]
    scaled = jnp.floor(count * ((values - low) / (high - low)))
    return in_dtype(jnp.clip(scaled, 0, count - 1).astype(dtypes.int32), dtype)
