"""Functions that read or write values at indices: `gather`, `scatter_nd`, `one_hot` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged import ragged_picking
from evenfeed.core.text.picked_texts import picked
from evenfeed.core.traced.index_checks import checked_index
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor, host_or_device, static_shape
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.operands import (
    COMPUTABLE,
    INTEGERS,
    apply,
    check_dtypes,
    evaluated_if_known,
    in_dtype,
    rearrange,
)
from evenfeed.tensors.ragged_dispatch import for_flat_values, for_ragged


@for_ragged(ragged_picking.gather)
def gather(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    params: object,
    indices: object,
    validate_indices: object = None,
    axis: object = None,
    batch_dims: object = 0,
    name: str | None = None,
) -> Tensor:
    """Pick the entries with these indices along `axis`.

    Args:
        params: The values to pick from.
        indices: The indices, of any shape.
        validate_indices: Accepted for compatibility.
        axis: The axis to pick from; by default the first after the batch axes.
        batch_dims: The number of leading axes that `params` and `indices` share.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.gather([10, 20, 30], [2, 0]).tolist()
        [30, 10]
        >>> tf.gather(["a", "b"], [1]).tolist()
        [b'b']
    """
    shared = known_integer(batch_dims, "batch_dims")
    tensor, places = host_or_device(params), indices_of(indices)
    shared += places.ndim if shared < 0 else 0
    along = axis_of(tensor.ndim, shared if axis is None else axis)
    _check_range("gather", places, tensor.shape[along])
    if (
        isinstance(tensor, np.ndarray)
        and tensor.dtype == dtypes.string
        and (tensor.ndim, shared) == (1, 0)
    ):
        found = picked(tensor, places)
        if found is not None:
            return found

    def formula(xp: Any, values: Any, at: Any) -> Any:
        return _picked(xp, values, at, along, shared)

    return rearrange("gather", partial(_with_places, formula, places), tensor)


@for_ragged(ragged_picking.gather_nd)
def gather_nd(
    params: object, indices: object, batch_dims: object = 0, name: str | None = None
) -> Tensor:
    """Pick the entries at these places; the last axis of `indices` holds the index along each axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).tolist()
        [2, 3]
    """
    shared = known_integer(batch_dims, "batch_dims")
    tensor, places = host_or_device(params), indices_of(indices)
    check_places("gather_nd", places, tensor.shape[shared:])

    def formula(xp: Any, values: Any, at: Any) -> Any:
        return _picked_at(xp, values, at, shared)

    return rearrange("gather_nd", partial(_with_places, formula, places), tensor)


def scatter_nd(indices: object, updates: object, shape: object, name: str | None = None) -> Tensor:
    """Create a tensor of zeros, and add the updates at these places.

    Examples:
        >>> import evenfeed as tf
        >>> tf.scatter_nd([[0], [2]], [5, 7], [4]).tolist()
        [5, 0, 7, 0]
    """
    places, lengths = indices_of(indices), static_shape(shape)
    check_places("scatter_nd", places, lengths)

    def formula(values: Any) -> Any:
        zeros = in_dtype(jnp.zeros(lengths, values.dtype), values.dtype)
        return _at(zeros, places).add(values, **_DROPPED)

    return apply("scatter_nd", formula, updates, accepts=COMPUTABLE)


def tensor_scatter_nd_update(
    tensor: object, indices: object, updates: object, name: str | None = None
) -> Tensor:
    """Return a copy of a tensor, with the values at these places replaced.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tensor_scatter_nd_update([1, 2, 3], [[1]], [9]).tolist()
        [1, 9, 3]
    """
    return _written("tensor_scatter_nd_update", "set", tensor, indices, updates)


def tensor_scatter_nd_add(
    tensor: object, indices: object, updates: object, name: str | None = None
) -> Tensor:
    """Return a copy of a tensor, with the updates added at these places.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tensor_scatter_nd_add([1, 2, 3], [[1]], [9]).tolist()
        [1, 11, 3]
    """
    return _written("tensor_scatter_nd_add", "add", tensor, indices, updates)


def tensor_scatter_nd_sub(
    tensor: object, indices: object, updates: object, name: str | None = None
) -> Tensor:
    """Return a copy of a tensor, with the updates subtracted at these places.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tensor_scatter_nd_sub([1, 2, 3], [[1]], [9]).tolist()
        [1, -7, 3]
    """
    return _written("tensor_scatter_nd_sub", "add", tensor, indices, _negated(updates))


def tensor_scatter_nd_max(
    tensor: object, indices: object, updates: object, name: str | None = None
) -> Tensor:
    """Return a copy of a tensor, with the larger one of both values at these places.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tensor_scatter_nd_max([1, 2, 3], [[1]], [9]).tolist()
        [1, 9, 3]
    """
    return _written("tensor_scatter_nd_max", "max", tensor, indices, updates)


def tensor_scatter_nd_min(
    tensor: object, indices: object, updates: object, name: str | None = None
) -> Tensor:
    """Return a copy of a tensor, with the smaller one of both values at these places.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tensor_scatter_nd_min([1, 2, 3], [[1]], [9]).tolist()
        [1, 2, 3]
    """
    return _written("tensor_scatter_nd_min", "min", tensor, indices, updates)


@for_flat_values
def one_hot(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    indices: object,
    depth: object,
    on_value: object = None,
    off_value: object = None,
    axis: object = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return vectors that are 1 at these indices and 0 elsewhere; all 0 for an index that is out of range.

    Examples:
        >>> import evenfeed as tf
        >>> tf.one_hot([0, 2], 3).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
        >>> tf.one_hot(1, 2, on_value=5, off_value=-1).tolist()
        [-1, 5]
    """
    count = known_integer(depth, "depth")
    if count < 0 or np.ndim(cast("Any", depth)):
        raise InvalidArgumentError(
            f"depth must be an integer from 0 on, but got {shortened(depth)}.",
            fix="pass the number of classes.",
        )
    places = indices_of(indices)
    on, off = (
        default if value is None else value for value, default in ((on_value, 1), (off_value, 0))
    )
    if dtype is None and on_value is None and off_value is None:
        dtype = dtypes.float32

    def formula(high: Any, low: Any) -> Any:
        along = axis_of(places.ndim + 1, -1 if axis is None else axis)
        is_on = jnp.expand_dims(places, along) == _along(jnp.arange(count), along, places.ndim + 1)
        found = jnp.where(is_on, high, low)
        return found if dtype is None else in_dtype(found, dtype)

    def host(high: Any, low: Any) -> Any:
        if isinstance(places, jax.Array):
            return NotImplemented
        along = axis_of(places.ndim + 1, -1 if axis is None else axis)
        numbers = _along(np.arange(count), along, places.ndim + 1)
        found = np.where(np.expand_dims(places, along) == numbers, high, low)
        return found if dtype is None else found.astype(dtypes.as_dtype(dtype))

    with evaluated_if_known([places]):
        return apply("one_hot", formula, on, off, accepts=COMPUTABLE, host=host)


def unravel_index(indices: object, dims: object, name: str | None = None) -> Tensor:
    """Return the index along each axis for indices into the flattened tensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.unravel_index([5], [2, 3]).tolist()
        [[1], [2]]
    """
    lengths = static_shape(dims)
    _check_range("unravel_index", indices_of(indices), math.prod(lengths))

    def formula(places: Any) -> Any:
        inside = checked_index(places, math.prod(lengths))
        return jnp.stack(jnp.unravel_index(inside, lengths)).astype(places.dtype)

    return apply("unravel_index", formula, indices, accepts=INTEGERS)


def invert_permutation(x: object, name: str | None = None) -> Tensor:
    """Return the permutation that undoes `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.invert_permutation([2, 0, 1]).tolist()
        [1, 2, 0]
    """

    def formula(places: Any) -> Any:
        return in_dtype(jnp.argsort(places), places.dtype)

    _check_range("invert_permutation", indices_of(x), len(indices_of(x)))
    return apply("invert_permutation", formula, x, accepts=INTEGERS)


# What JAX does with an index that is out of range: a map finds out and raises, other compiled code goes on.
_FILLED: Final[dict[str, Any]] = {"mode": "fill", "wrap_negative_indices": False}
_DROPPED: Final[dict[str, Any]] = {"mode": "drop", "wrap_negative_indices": False}


def indices_of(value: object) -> Any:
    """Convert indices to a tensor of integers."""
    tensor = host_or_device(value)
    check_dtypes("An index", [tensor], INTEGERS)
    return tensor


def _check_range(function: str, places: Any, length: int) -> None:
    """Raise if an index that is known is out of range."""
    if is_traced(places) or not places.size:
        return
    known = np.asarray(places)
    for place in (known.min(), known.max()):
        if not 0 <= place < length:
            raise InvalidArgumentError(
                f"{function} got the index {place}, but there are {length} entries.",
                fix="pass indices that are at least 0 and below the length.",
            )


def check_places(function: str, places: Any, lengths: Sequence[int]) -> None:
    """Check the shape of the indices of entries, and the values that are known."""
    if not places.ndim or places.shape[-1] > len(lengths):
        raise InvalidArgumentError(
            f"{function} needs indices whose last axis is at most {len(lengths)} long, but got {tuple(places.shape)}.",
            fix="pass one index for each axis, for example [[0, 1], [1, 0]].",
        )
    for axis in range(places.shape[-1]):
        _check_range(function, places[..., axis], lengths[axis])


def _with_places(formula: Callable[..., Any], places: Any, xp: Any, values: Any) -> Any:
    return formula(xp, values, np.asarray(places) if xp is np else places)


def _picked(xp: Any, values: Any, at: Any, along: int, shared: int) -> Any:
    if shared and xp is np:
        rows = [
            _picked(np, one, two, along - 1, shared - 1)
            for one, two in zip(values, at, strict=True)
        ]
        return np.stack(rows)
    if shared:
        pick = partial(_picked, jnp, along=along - 1, shared=shared - 1)
        return jax.vmap(pick)(values, at)
    if xp is np:
        return values[(*(slice(None),) * along, at)]
    where = (*(slice(None),) * along, traced_index(at, values.shape[along]))
    return values.at[where].get(**_FILLED)


def _picked_at(xp: Any, values: Any, at: Any, shared: int) -> Any:
    if shared and xp is np:
        return np.stack(
            [_picked_at(np, one, two, shared - 1) for one, two in zip(values, at, strict=True)]
        )
    if shared:
        return jax.vmap(lambda one, two: _picked_at(jnp, one, two, shared - 1))(values, at)
    if xp is np:
        where = tuple(at[..., axis] for axis in range(at.shape[-1]))
        return np.asarray(values[where], values.dtype)
    return _at(values, at).get(**_FILLED)


def _at(tensor: Any, places: Any) -> Any:
    lengths = tensor.shape[: places.shape[-1]]
    where = [traced_index(places[..., axis], length) for axis, length in enumerate(lengths)]
    return tensor.at[tuple(where)]


def traced_index(places: Any, length: int) -> Any:
    """Return indices for JAX, which drops the upper 32 bits: those that are out of range stay so.

    Args:
        places: The indices.
        length: The length of the axis. JAX keeps 64 bits for longer ones than 32 bits can hold.
    """
    if not is_traced(places):  # they were checked
        return places
    places, most = checked_index(places, length), np.iinfo(np.int32).max
    if places.dtype.name not in ("int64", "uint32", "uint64") or length > most:
        return places
    return jnp.minimum(places, most) if places.dtype.kind == "u" else jnp.clip(places, -1, most)


def _written(function: str, method: str, tensor: object, indices: object, updates: object) -> Any:
    places = indices_of(indices)

    def formula(values: Any, new: Any) -> Any:
        check_places(function, places, values.shape)
        return getattr(_at(values, places), method)(new.astype(values.dtype), **_DROPPED)

    return apply(function, formula, tensor, updates, accepts=COMPUTABLE)


def _negated(updates: object) -> Any:
    return apply("tensor_scatter_nd_sub", jnp.negative, updates)


def _along(vector: Any, axis: int, rank: int) -> Any:
    return vector.reshape([-1 if place == axis else 1 for place in range(rank)])
