"""Functions whose result has as many entries as the values say: `where`, `boolean_mask`, `unique` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import in_wanted_dtype
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged import ragged_math, ragged_picking
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor, host_or_device
from evenfeed.tensors.device_arrays import computed, stays_on_host
from evenfeed.tensors.operands import (
    ANY,
    BOOLS,
    COMPUTABLE,
    INTEGERS,
    check_dtypes,
    converted_together,
    elementwise,
    in_dtype,
    is_text,
)
from evenfeed.tensors.ragged_dispatch import for_ragged


class Unique(NamedTuple):
    """The result of `unique`."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The result of `unique_with_counts`."""

    y: Tensor
    idx: Tensor
    count: Tensor  # pyright: ignore[reportIncompatibleMethodOverride] - TensorFlow's name


@for_ragged(ragged_picking.where)
def where(condition: object, x: object = None, y: object = None, name: str | None = None) -> Tensor:
    """Return the values of `x` where the condition is True, and those of `y` elsewhere; or the places that are True.

    Args:
        condition: Bools; with `x` and `y`, the three are broadcast.
        x: The values where it is True.
        y: The values where it is False.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.where([True, False], [1, 2], 0).tolist()
        [1, 0]
        >>> tf.where([False, True, True]).tolist()
        [[1], [2]]
    """
    if (x is None) != (y is None):
        raise ValueError(
            described("where needs both x and y, or neither.", fix="pass the other one too.")
        )
    chosen = host_or_device(condition)
    if x is None:
        if not chosen.ndim:
            raise InvalidArgumentError(
                "where of a scalar has no places.", fix="pass x and y, or a tensor with axes."
            )
        places = np.argwhere(known(chosen) if not is_text(chosen) else known(chosen) != b"")
        return _index(places, dtypes.int64)
    chosen = host_or_device(in_wanted_dtype(condition, dtypes.bool))
    check_dtypes("where", [chosen], BOOLS)
    left, right = converted_together([x, y])
    if is_text(left) or is_text(right):
        return host_tensor(np.where(known(chosen), left, right).astype(dtypes.string))
    host = None if isinstance(chosen, jax.Array) else partial(np.where, np.asarray(chosen))
    return elementwise("where", _chosen(chosen), left, right, accepts=ANY, host=host)


def boolean_mask(
    tensor: object, mask: object, axis: object = None, name: str | None = None
) -> Tensor:
    """Return the entries where the mask is True. In a `map`, the function runs per element.

    Examples:
        >>> import evenfeed as tf
        >>> tf.boolean_mask([1, 2, 3], [True, False, True]).tolist()
        [1, 3]
    """
    values = host_or_device(tensor)
    chosen = host_or_device(mask)
    check_dtypes("boolean_mask", [chosen], COMPUTABLE)
    chosen = chosen if chosen.dtype == dtypes.bool else chosen != 0
    along = 0 if axis is None else axis_of(values.ndim, axis)
    covered = values.shape[along : along + chosen.ndim]
    if not chosen.ndim or tuple(covered) != tuple(chosen.shape):
        raise ValueError(
            described(
                f"A mask of shape {tuple(chosen.shape)} does not fit {tuple(covered)}, the shape that it covers.",
                fix="pass a mask with the lengths of the axes from `axis` on.",
            )
        )
    picked = known(chosen)
    if not isinstance(values, jax.Array):
        return _from_host(known(values)[(*(slice(None),) * along, picked)])
    flat = values.reshape(*values.shape[:along], -1, *values.shape[along + picked.ndim :])
    return jnp.take(flat, np.flatnonzero(picked), axis=along)


def unique(x: object, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> Unique:
    """Return the different values in the order in which they appear, and for each value its place among them.

    Examples:
        >>> import evenfeed as tf
        >>> [part.tolist() for part in tf.unique([5, 3, 5])]
        [[5, 3], [0, 1, 0]]
    """
    different, places, _ = _unique(x)
    return Unique(_from_host(different), _index(places, out_idx))


def unique_with_counts(
    x: object, out_idx: DTypeLike = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """Like `unique`, and count how often each value appears.

    Examples:
        >>> import evenfeed as tf
        >>> [part.tolist() for part in tf.unique_with_counts([5, 3, 5])]
        [[5, 3], [0, 1, 0], [2, 1]]
    """
    different, places, counts = _unique(x)
    return UniqueWithCounts(_from_host(different), _index(places, out_idx), _index(counts, out_idx))


@for_ragged(ragged_math.dynamic_partition)
def dynamic_partition(
    data: object, partitions: object, num_partitions: object, name: str | None = None
) -> list[Tensor]:
    """Sort entries into lists by their partition.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.dynamic_partition([1, 2, 3], [0, 1, 0], 2)]
        [[1, 3], [2]]
    """
    values, groups = host_or_device(data), known(host_or_device(partitions))
    count = known_integer(num_partitions, "num_partitions")
    if groups.size and not 0 <= groups.min() <= groups.max() < count:
        raise InvalidArgumentError(
            f"partitions must be from 0 to {count - 1}, but got {groups.min()} to {groups.max()}.",
            fix="pass a larger num_partitions.",
        )
    return [boolean_mask(values, groups == group) for group in range(count)]


def dynamic_stitch(indices: object, data: object, name: str | None = None) -> Tensor:
    """Put entries together: `data[i][j]` comes to the place `indices[i][j]`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.dynamic_stitch([[0, 2], [1]], [[1, 3], [2]]).tolist()
        [1, 2, 3]
    """
    places = [_places(one) for one in cast("Iterable[object]", indices)]
    parts: list[Any] = [convert_to_tensor(one) for one in cast("Iterable[object]", data)]
    rest = _shape_of_entries(places, parts)
    every = np.concatenate([place.reshape(-1) for place in places])
    sources = np.full(int(every.max(initial=-1)) + 1, -1)
    sources[every] = np.arange(every.size)  # of several entries for one place, the last counts
    filled = (sources >= 0).reshape(-1, *(1,) * len(rest))
    if is_text(parts[0]):
        rows = np.concatenate([known(part).reshape(-1, *rest) for part in parts])
        return _from_host(np.where(filled, rows[sources], b""))
    rows = jnp.concatenate([jnp.reshape(part, (-1, *rest)) for part in parts])
    return jnp.where(
        filled, jnp.take(rows, np.maximum(sources, 0), axis=0), jnp.zeros((), rows.dtype)
    )


def _places(value: object) -> Array:
    places = known(convert_to_tensor(value))
    if not places.size:
        return places.astype(np.int32)  # an empty list has no dtype of its own
    check_dtypes("dynamic_stitch", [places], INTEGERS)
    if places.min() < 0:
        raise InvalidArgumentError(
            f"The indices of dynamic_stitch must be from 0 on, but got {places.min()}.",
            fix="leave out negative ones.",
        )
    return places


def _shape_of_entries(places: list[Array], parts: list[Any]) -> tuple[int, ...]:
    """Return the shape of one entry. Each tensor needs one entry of that shape for each of its indices."""
    if not parts or len(places) != len(parts):
        raise InvalidArgumentError(
            f"dynamic_stitch got {len(places)} tensors of indices and {len(parts)} of data.",
            fix="pass one tensor of data for each tensor of indices.",
        )
    rest = tuple(parts[0].shape[places[0].ndim :])
    for place, part in zip(places, parts, strict=True):
        if tuple(part.shape) != (*place.shape, *rest):
            raise InvalidArgumentError(
                f"Data of shape {tuple(part.shape)} does not fit indices of shape {place.shape} and entries of shape {rest}.",
                fix="pass one entry of that shape for each index.",
            )
    return rest


def known(tensor: Any) -> Array:
    """Return concrete values. A tracer raises JAX's own error, and the function then runs per element."""
    return np.asarray(tensor)


def _from_host(array: Array) -> Tensor:
    return host_tensor(array) if is_text(array) else computed(array, "the tensor")


def _chosen(condition: Any) -> Callable[[Any, Any], Any]:
    return lambda left, right: jnp.where(condition, left, right)


def _unique(x: object) -> tuple[Array, Array, Array]:
    values = known(host_or_device(x))
    if values.ndim != 1:
        raise InvalidArgumentError(
            f"unique needs a vector, but got the shape {values.shape}.",
            fix="flatten it first: evenfeed.reshape(x, [-1]).",
        )
    different, first, places, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return different[order], rank[places], counts[order]


def _index(places: Array, out_idx: DTypeLike) -> Any:
    if stays_on_host():
        return computed(places.astype(dtypes.as_dtype(out_idx)), "the indices")
    return in_dtype(computed(places.astype(np.int32), "the indices"), out_idx)
