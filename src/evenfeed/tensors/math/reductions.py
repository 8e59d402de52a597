"""Functions that reduce axes: `reduce_sum`, `reduce_all`, `argmax`, `count_nonzero` and so on."""

# ruff: noqa: A002, ARG001 - `name` is TensorFlow's argument; there is no graph to show it in

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jax_special, jnp
from evenfeed.core.ragged import ragged_math, ragged_reductions
from evenfeed.tensors.axes import axes_of, axis_of, count_along
from evenfeed.tensors.creation import DTypeLike, Tensor
from evenfeed.tensors.exact_numbers import exact_index, exact_reduction
from evenfeed.tensors.operands import (
    BOOLS,
    COMPUTABLE,
    FLOATS,
    NUMBERS,
    ORDERED,
    REAL_FLOATS,
    REALS,
    Accepted,
    apply,
    in_dtype,
    is_text,
    rearrange,
)
from evenfeed.tensors.ragged_dispatch import for_ragged


@for_ragged(ragged_reductions.reduce_sum)
def reduce_sum(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Sum along `axis`, or over all values. The dtype stays the same.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_sum([[1, 2], [3, 4]], axis=0).tolist()
        [4, 6]
    """
    return _reduced("reduce_sum", _sum, input_tensor, axis, keepdims)


@for_ragged(ragged_reductions.reduce_mean)
def reduce_mean(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Average along `axis`, or over all values. The dtype stays the same, so a mean of integers is truncated.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_mean([[1.0, 2.0], [3.0, 5.0]], axis=1).tolist()
        [1.5, 4.0]
        >>> tf.reduce_mean([1, 2]).tolist()
        1
    """
    return _reduced("reduce_mean", _mean, input_tensor, axis, keepdims)


@for_ragged(ragged_reductions.reduce_prod)
def reduce_prod(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Multiply along `axis`, or all values. The dtype stays the same.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_prod([[1, 2], [3, 4]], axis=0).tolist()
        [3, 8]
    """
    return _reduced("reduce_prod", _product, input_tensor, axis, keepdims)


@for_ragged(ragged_reductions.reduce_max)
def reduce_max(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return the largest value along `axis`, or of all values; without values, the lowest of the dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_max([[1, 5], [3, 4]], axis=1).tolist()
        [5, 4]
    """
    return _reduced(
        "reduce_max",
        partial(_extreme, jnp.max, lowest=True),
        input_tensor,
        axis,
        keepdims,
        accepts=REALS,
    )


@for_ragged(ragged_reductions.reduce_min)
def reduce_min(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return the smallest value along `axis`, or of all values; without values, the highest of the dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_min([[1, 5], [3, 4]], axis=1).tolist()
        [1, 3]
    """
    return _reduced(
        "reduce_min",
        partial(_extreme, jnp.min, lowest=False),
        input_tensor,
        axis,
        keepdims,
        accepts=REALS,
    )


@for_ragged(ragged_reductions.reduce_all)
def reduce_all(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return True if all bools along `axis` are True.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_all([[True, True], [True, False]], axis=1).tolist()
        [True, False]
    """
    return _reduced("reduce_all", jnp.all, input_tensor, axis, keepdims, accepts=BOOLS)


@for_ragged(ragged_reductions.reduce_any)
def reduce_any(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return True if a bool along `axis` is True.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reduce_any([[True, False], [False, False]], axis=1).tolist()
        [True, False]
    """
    return _reduced("reduce_any", jnp.any, input_tensor, axis, keepdims, accepts=BOOLS)


@for_ragged(ragged_math.reduce_variance)
def reduce_variance(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return the variance along `axis`, or of all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.reduce_variance([1.0, 3.0]).tolist()
        1.0
    """
    return _reduced("reduce_variance", jnp.var, input_tensor, axis, keepdims, accepts=FLOATS)


@for_ragged(ragged_math.reduce_std)
def reduce_std(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return the standard deviation along `axis`, or of all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.reduce_std([1.0, 3.0]).tolist()
        1.0
    """
    return _reduced("reduce_std", jnp.std, input_tensor, axis, keepdims, accepts=FLOATS)


@for_ragged(ragged_math.reduce_logsumexp)
def reduce_logsumexp(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return `log(sum(exp(x)))` along `axis`, or over all values, without overflow.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.reduce_logsumexp([0.0, 0.0]):.4f}"
        '0.6931'
    """
    return _reduced(
        "reduce_logsumexp", jax_special.logsumexp, input_tensor, axis, keepdims, accepts=REAL_FLOATS
    )


def reduce_euclidean_norm(
    input_tensor: object, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Return the square root of the sum of the squares along `axis`, or over all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.reduce_euclidean_norm([3.0, 4.0]).tolist()
        5.0
    """
    return _reduced("reduce_euclidean_norm", _euclidean_norm, input_tensor, axis, keepdims)


def count_nonzero(
    input: object,
    axis: object = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Count the values that are not 0, False or empty text.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.count_nonzero([[0, 1], [2, 3]], axis=1).tolist()
        [1, 2]
    """

    def count(xp: Any, tensor: Any) -> Any:
        is_there = tensor != (b"" if is_text(tensor) else 0)
        axes = axes_of(tensor, axis)
        return jnp.sum(
            jnp.asarray(is_there), axis=axes, keepdims=bool(keepdims), dtype=dtypes.int32
        )

    found = rearrange("count_nonzero", count, input)
    return in_dtype(found, dtype)


def zero_fraction(value: object, name: str | None = None) -> Tensor:
    """Return the fraction of the values that are 0, as float32.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.zero_fraction([0, 0, 3, 0]).tolist()
        0.75
    """
    return apply("zero_fraction", _fraction_of_zeros, value, accepts=COMPUTABLE)


def argmax(
    input: object,
    axis: object = None,
    output_type: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Return the index of the largest value along `axis`, by default along the first. NaN never is the largest.

    Examples:
        >>> import evenfeed as tf
        >>> tf.argmax([[1, 5], [3, 4]], axis=1).tolist()
        [1, 1]
    """
    return _index_of(_largest, "argmax", input, axis, output_type)


def argmin(
    input: object,
    axis: object = None,
    output_type: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Return the index of the smallest value along `axis`, by default along the first. NaN never is the smallest.

    Examples:
        >>> import evenfeed as tf
        >>> tf.argmin([[1, 5], [3, 4]], axis=1).tolist()
        [0, 0]
    """
    return _index_of(_smallest, "argmin", input, axis, output_type)


def _index_of(
    find: Callable[..., Any], function: str, value: object, axis: object, output_type: DTypeLike
) -> Any:
    def formula(tensor: Any) -> Any:
        along = axis_of(tensor.ndim, 0 if axis is None else axis)
        if not tensor.shape[along]:
            raise InvalidArgumentError(
                f"{function} needs at least one value along axis {along}, but got shape {tensor.shape}.",
                fix="check the length first.",
            )
        return in_dtype(find(tensor, axis=along), output_type)

    def host(values: Any) -> Any:
        along = axis_of(values.ndim, 0 if axis is None else axis)
        index = exact_index(values, along, largest=function == "argmax")
        return index if index is NotImplemented else index.astype(dtypes.as_dtype(output_type))

    return apply(function, formula, value, accepts=ORDERED, host=host)


def _largest(tensor: Any, axis: int) -> Any:
    # TensorFlow starts from the lowest finite value: NaN and -inf count as that.
    is_whole = tensor.dtype.kind in "iub"
    return jnp.argmax(tensor if is_whole else jnp.fmax(tensor, jnp.finfo(tensor.dtype).min), axis)


def _smallest(tensor: Any, axis: int) -> Any:
    is_whole = tensor.dtype.kind in "iub"
    return jnp.argmin(tensor if is_whole else jnp.fmin(tensor, jnp.finfo(tensor.dtype).max), axis)


def _reduced(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    function: str,
    reduce: Callable[..., Any],
    value: object,
    axis: object,
    keepdims: bool,
    accepts: Accepted = NUMBERS,
) -> Any:
    def formula(tensor: Any) -> Any:
        return reduce(tensor, axis=axes_of(tensor, axis), keepdims=bool(keepdims))

    def host(values: Any) -> Any:
        return _EXACTLY[function](values, axes_of(values, axis), bool(keepdims))

    exact = host if function in _EXACTLY else None
    return apply(function, formula, value, accepts=accepts, host=exact)


def _fraction_of_zeros(tensor: Any) -> Any:
    return jnp.mean(tensor == 0, dtype=dtypes.float32)


def _sum(tensor: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.sum(tensor, axis=axis, keepdims=keepdims, dtype=tensor.dtype)


def _product(tensor: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.prod(tensor, axis=axis, keepdims=keepdims, dtype=tensor.dtype)


def _mean(tensor: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if tensor.dtype.kind not in "iu":
        return jnp.mean(tensor, axis=axis, keepdims=keepdims)
    # The sum needs 64 bits, as in TensorFlow: the mean of two values 2³¹ - 1 is 2³¹ - 1.
    with jax.enable_x64(True):
        longest = dtypes.int64 if tensor.dtype.kind == "i" else dtypes.uint64
        total = jnp.sum(tensor.astype(longest), axis=axis, keepdims=keepdims)
        count = jnp.full_like(total, max(count_along(tensor, axis), 1))
        return jax.lax.div(total, count).astype(tensor.dtype)


def _euclidean_norm(tensor: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    wide = dtypes.float64 if tensor.dtype.itemsize == 8 else dtypes.float32
    floats = tensor.astype(wide) if tensor.dtype.kind in "iu" else tensor
    squares = jnp.real(jnp.conj(floats) * floats)
    return jnp.sqrt(jnp.sum(squares, axis=axis, keepdims=keepdims)).astype(tensor.dtype)


def _extreme(
    reduce: Callable[..., Any], tensor: Any, axis: tuple[int, ...], keepdims: bool, *, lowest: bool
) -> Any:
    empty = count_along(tensor, axis) == 0  # JAX raises for empty input
    initial = extreme_of(tensor.dtype, lowest=lowest) if empty else None
    found = reduce(tensor, axis=axis, keepdims=keepdims, initial=initial)
    return found if tensor.dtype.kind in "biu" else with_nan(found, tensor, axis, keepdims)


def with_nan(found: Any, tensor: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Return extremes of floats, and NaN where a value is: XLA for CPUs loses it in large tensors (jax 0.10.2)."""
    has_nan = jnp.any(jnp.isnan(tensor), axis=axis, keepdims=keepdims)
    return jnp.where(has_nan, jnp.asarray(jnp.nan, found.dtype), found)


_EXACTLY: Final = {
    "reduce_all": exact_reduction(np.all, of_floats=False),
    "reduce_any": exact_reduction(np.any, of_floats=False),
    "reduce_max": exact_reduction(np.max, of_floats=True),
    "reduce_min": exact_reduction(np.min, of_floats=True),
    "reduce_prod": exact_reduction(np.prod, of_floats=False),
    "reduce_sum": exact_reduction(np.sum, of_floats=False),
}


def extreme_of(dtype: DType, *, lowest: bool) -> Array:
    """Return the lowest or the highest value of a dtype; infinity for floats."""
    if dtype.kind in "iu":
        limits = jnp.iinfo(dtype)
        return np.asarray(limits.min if lowest else limits.max, dtype)
    return np.asarray(-np.inf if lowest else np.inf, dtype)
