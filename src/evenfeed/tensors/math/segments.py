"""Functions of groups of entries that share an id: `segment_sum`, `unsorted_segment_max` and so on."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Callable
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.traced.index_checks import checked_index
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.operands import apply


def segment_sum(data: object, segment_ids: object, name: str | None = None) -> Tensor:
    """Add up the entries of each segment. The ids must be sorted, and known while JAX traces.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.segment_sum([1, 2, 3], [0, 0, 1]).tolist()
        [3, 3]
    """
    return _of_sorted("segment_sum", _sum, data, segment_ids)


def segment_mean(data: object, segment_ids: object, name: str | None = None) -> Tensor:
    """Average the entries of each segment. The ids must be sorted, and known while JAX traces.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.segment_mean([1.0, 2.0, 3.0], [0, 0, 1]).tolist()
        [1.5, 3.0]
    """
    return _of_sorted("segment_mean", _mean, data, segment_ids)


def segment_prod(data: object, segment_ids: object, name: str | None = None) -> Tensor:
    """Multiply the entries of each segment. The ids must be sorted, and known while JAX traces.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.segment_prod([1, 2, 3], [0, 0, 1]).tolist()
        [2, 3]
    """
    return _of_sorted("segment_prod", _product, data, segment_ids)


def segment_max(data: object, segment_ids: object, name: str | None = None) -> Tensor:
    """Return the largest of the entries of each segment. The ids must be sorted, and known while JAX traces.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.segment_max([1, 2, 3], [0, 0, 1]).tolist()
        [2, 3]
    """
    return _of_sorted("segment_max", _largest, data, segment_ids)


def segment_min(data: object, segment_ids: object, name: str | None = None) -> Tensor:
    """Return the smallest of the entries of each segment. The ids must be sorted, and known while JAX traces.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.segment_min([1, 2, 3], [0, 0, 1]).tolist()
        [1, 3]
    """
    return _of_sorted("segment_min", _smallest, data, segment_ids)


def unsorted_segment_sum(
    data: object, segment_ids: object, num_segments: object, name: str | None = None
) -> Tensor:
    """Add up the entries of each segment. Entries with a negative id are left out.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.unsorted_segment_sum([1, 2, 3], [1, 0, 1], 2).tolist()
        [2, 4]
    """
    return _of_segments("unsorted_segment_sum", _sum, data, segment_ids, num_segments)


def unsorted_segment_mean(
    data: object, segment_ids: object, num_segments: object, name: str | None = None
) -> Tensor:
    """Average the entries of each segment. Entries with a negative id are left out.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.unsorted_segment_mean([1.0, 2.0, 3.0], [1, 0, 1], 2).tolist()
        [2.0, 2.0]
    """
    return _of_segments("unsorted_segment_mean", _mean, data, segment_ids, num_segments)


def unsorted_segment_prod(
    data: object, segment_ids: object, num_segments: object, name: str | None = None
) -> Tensor:
    """Multiply the entries of each segment. Entries with a negative id are left out.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.unsorted_segment_prod([1, 2, 3], [1, 0, 1], 2).tolist()
        [2, 3]
    """
    return _of_segments("unsorted_segment_prod", _product, data, segment_ids, num_segments)


def unsorted_segment_max(
    data: object, segment_ids: object, num_segments: object, name: str | None = None
) -> Tensor:
    """Return the largest of the entries of each segment. Entries with a negative id are left out.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.unsorted_segment_max([1, 2, 3], [1, 0, 1], 2).tolist()
        [2, 3]
    """
    return _of_segments("unsorted_segment_max", _largest, data, segment_ids, num_segments)


def unsorted_segment_min(
    data: object, segment_ids: object, num_segments: object, name: str | None = None
) -> Tensor:
    """Return the smallest of the entries of each segment. Entries with a negative id are left out.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.unsorted_segment_min([1, 2, 3], [1, 0, 1], 2).tolist()
        [2, 1]
    """
    return _of_segments("unsorted_segment_min", _smallest, data, segment_ids, num_segments)


def unsorted_segment_sqrt_n(
    data: object, segment_ids: object, num_segments: object, name: str | None = None
) -> Tensor:
    """Add up, and divide by the square root of their number, the entries of each segment. Entries with a negative id are left out.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.unsorted_segment_sqrt_n([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], 1).tolist()
        [5.0]
    """
    return _of_segments("unsorted_segment_sqrt_n", _sum_by_root, data, segment_ids, num_segments)


def _of_sorted(function: str, reduce: Callable[..., Any], data: object, segment_ids: object) -> Any:
    ids = np.asarray(convert_to_tensor(segment_ids))
    if ids.ndim != 1 or (ids.size and (ids[0] < 0 or (np.diff(ids) < 0).any())):
        raise InvalidArgumentError(
            f"segment_ids must be a sorted vector of ids from 0 on, but got {shortened(ids.tolist())}.",
            fix=f"call unsorted_{function}, and pass num_segments.",
        )
    count = int(ids[-1]) + 1 if ids.size else 0

    def formula(values: Any) -> Any:
        _check_prefix(function, values, ids)
        found = reduce(values, jnp.asarray(ids), count)
        if reduce not in (_largest, _smallest):
            return found
        # Segments without entries are 0 here, and the limit of the dtype in the unsorted functions.
        is_empty = ~np.isin(np.arange(count), ids)
        return jnp.where(is_empty.reshape(-1, *(1,) * (values.ndim - 1)), 0, found)

    return apply(function, formula, data)


def _of_segments(
    function: str,
    reduce: Callable[..., Any],
    data: object,
    segment_ids: object,
    num_segments: object,
) -> Any:
    ids, count = convert_to_tensor(segment_ids), known_integer(num_segments, "num_segments")

    def formula(values: Any) -> Any:
        _check_prefix(function, values, ids)
        flat = values.reshape(-1, *values.shape[ids.ndim :])
        each = checked_index(jnp.asarray(ids).reshape(-1), count, may_be_negative=True)
        return reduce(flat, each, count)

    if not is_traced(ids) and ids.size and np.asarray(ids).max() >= count:
        raise InvalidArgumentError(
            f"A segment id is {np.asarray(ids).max()}, but num_segments is {count}.",
            fix="pass a larger num_segments.",
        )
    return apply(function, formula, data)


def _check_prefix(function: str, values: Any, ids: Any) -> None:
    if tuple(values.shape[: ids.ndim]) != tuple(ids.shape):
        raise InvalidArgumentError(
            f"{function} needs an id for each entry, but the data has shape {tuple(values.shape)} "
            f"and segment_ids {tuple(ids.shape)}.",
            fix="pass segment_ids in the shape of the first axes of the data.",
        )


def _reduced(operation: Callable[..., Any], values: Any, ids: Any, count: int) -> Any:
    # Ids that are out of range go to an extra segment, which is cut off.
    inside = jnp.where((ids >= 0) & (ids < count), ids, count)
    return operation(values, inside, count + 1)[:count]


def _sum(values: Any, ids: Any, count: int) -> Any:
    return _reduced(jax.ops.segment_sum, values, ids, count)


def _product(values: Any, ids: Any, count: int) -> Any:
    return _reduced(jax.ops.segment_prod, values, ids, count)


def _largest(values: Any, ids: Any, count: int) -> Any:
    return _with_finite_limit(_reduced(jax.ops.segment_max, values, ids, count), ids, count, -1)


def _smallest(values: Any, ids: Any, count: int) -> Any:
    return _with_finite_limit(_reduced(jax.ops.segment_min, values, ids, count), ids, count, 1)


def _with_finite_limit(found: Any, ids: Any, count: int, sign: int) -> Any:
    """Return the limit of the dtype for segments without entries, where JAX has infinity."""
    if found.dtype.kind in "iu":
        return found
    is_empty = _entries(ids, count) == 0
    limit = sign * float(jnp.finfo(found.dtype).max)
    return jnp.where(is_empty.reshape(-1, *(1,) * (found.ndim - 1)), limit, found).astype(
        found.dtype
    )


def _entries(ids: Any, count: int) -> Any:
    return _sum(jnp.ones(ids.shape, dtypes.int32), ids, count)


def _counts(values: Any, ids: Any, count: int) -> Any:
    counts = jnp.maximum(_entries(ids, count), 1)
    return counts.reshape(-1, *(1,) * (values.ndim - 1))


def _mean(values: Any, ids: Any, count: int) -> Any:
    total, counts = _sum(values, ids, count), _counts(values, ids, count)
    if values.dtype.kind in "iu":
        return jax.lax.div(*jnp.broadcast_arrays(total, counts.astype(values.dtype)))
    return total / counts.astype(values.dtype)


def _sum_by_root(values: Any, ids: Any, count: int) -> Any:
    return _sum(values, ids, count) / jnp.sqrt(_counts(values, ids, count).astype(values.dtype))
