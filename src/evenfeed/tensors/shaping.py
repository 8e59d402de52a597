"""`shape`, `reshape`, `stack` and `concat`: text in NumPy, numbers in JAX."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeGuard, cast

import numpy as np

from evenfeed.core import dtypes, promised_shapes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import Handle
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.promised_shapes import promise_reshaped
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged import ragged_arranging, ragged_math
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import HostTensor, host_tensor
from evenfeed.core.traced import traced_rows
from evenfeed.tensors.creation import (
    DTypeLike,
    Tensor,
    convert_to_tensor,
    convert_together,
    whole_numbers,
)
from evenfeed.tensors.device_arrays import (
    asked_dtype,
    computed,
    in_memory,
    is_tracing,
    put,
    stays_on_host,
)
from evenfeed.tensors.ragged_dispatch import for_ragged

# The types of what `shape` returns in a trace, and of its entries.
_LENGTHS: Final = (np.ndarray, np.int32)


def shape(
    input: object,  # noqa: A002 - TensorFlow's name
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the length of each axis, as a vector.

    In a trace, it is a NumPy vector, so that its entries can be lengths of other tensors.

    Examples:
        >>> import evenfeed as tf
        >>> tf.shape([[1, 2, 3], [4, 5, 6]]).tolist()
        [2, 3]
    """
    dtype = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise InvalidArgumentError(
            f"out_type must be int32 or int64, but got {dtypes.name_of(dtype)}.",
            fix="omit out_type, or pass evenfeed.int64.",
        )
    held = asked_dtype(dtype)
    found = traced_rows.shape_of(input, dtype) if isinstance(input, Handle) else None
    if found is not None:
        return found
    if isinstance(input, SparseTensor):
        lengths = tuple(np.asarray(input.dense_shape).tolist())
    else:
        plain = (
            input.view(np.ndarray) if isinstance(input, HostTensor) else convert_to_tensor(input)
        )
        lengths = tuple(plain.shape)
    if is_tracing():
        return np.asarray(lengths, held)
    return computed(np.asarray(lengths, dtype), "the shape")


@for_ragged(ragged_math.reshape)
def reshape(tensor: object, shape: object, name: str | None = None) -> Tensor:
    """Return the values in another shape.

    Args:
        tensor: The values, in row-major order.
        shape: The new lengths; one of them may be -1, which is computed from the others.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.reshape([1, 2, 3, 4], [2, -1]).tolist()
        [[1, 2], [3, 4]]
    """
    made = traced_rows.reshaped(tensor, shape) if isinstance(tensor, Handle) else None
    if made is not None:
        return made
    is_host = isinstance(tensor, HostTensor) and stays_on_host()
    values: Any = tensor if is_host else convert_to_tensor(tensor)
    if promised_shapes.here.stand_ins:
        values = convert_to_tensor(_like(shape, values))
    found = values.reshape(_resolved(shape, values.shape))
    promise_reshaped(found, shape)
    return found


def _like(shape: object, values: Tensor) -> Any:
    """Return zeros that fit the shape, in place of stand-in values."""
    lengths = [1 if length < 0 else length for length in _asked_lengths(shape)]
    return np.full(lengths, b"" if _is_text(values) else 0, values.dtype)


@for_ragged(ragged_arranging.stack, several=True)
def stack(values: object, axis: object = 0, name: str | None = None) -> Tensor:
    """Stack tensors of the same shape along a new axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.stack([[1, 2], [3, 4]], axis=1).tolist()
        [[1, 3], [2, 4]]
    """
    if not _is_several(values):
        return _restacked(convert_to_tensor(values), axis)
    lengths = _traced_lengths(values)
    if lengths:
        _check_one_shape(lengths)
        return np.stack(lengths, _new_axis(axis, lengths[0].ndim + 1))
    parts = _host_arrays(values) or convert_together(values)
    if not parts:
        return convert_to_tensor([])
    _check_one_shape(parts)
    place = _new_axis(axis, parts[0].ndim + 1)
    if type(parts[0]) is np.ndarray:
        return computed_tensor(np.stack(parts, place))
    if _is_text(parts[0]):
        return host_tensor(np.stack(parts, place))
    return put(np.stack(parts, place)) if in_memory(parts) else jnp.stack(parts, place)


@for_ragged(ragged_arranging.concat, several=True)
def concat(values: object, axis: object, name: str | None = None) -> Tensor:
    """Concatenate tensors along an existing axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.concat([[1], [2, 3]], axis=0).tolist()
        [1, 2, 3]
    """
    several = values if _is_several(values) else [values]
    lengths = _traced_lengths(several)
    if lengths and len(lengths) > 1 and lengths[0].ndim:
        place = _known_axis(axis)
        _check_joinable(lengths, place)
        return np.concatenate(lengths, place)
    parts = _host_arrays(several) or convert_together(several)
    place = _known_axis(axis)
    if not parts:
        raise InvalidArgumentError(
            "concat got no tensors, so the dtype is unknown.", fix="pass at least one tensor."
        )
    if len(parts) == 1:
        return parts[0]
    _check_joinable(parts, place)
    if type(parts[0]) is np.ndarray:
        return computed_tensor(np.concatenate(parts, place))
    if _is_text(parts[0]):
        return host_tensor(np.concatenate(parts, place))
    return put(np.concatenate(parts, place)) if in_memory(parts) else jnp.concatenate(parts, place)


def _host_arrays(values: Sequence[object]) -> list[Any]:
    """Return numbers of one dtype that stay on the host; nothing if some do not.

    In a function that a dataset calls for each element, JAX takes 50 times as long to join them.
    """
    found = [value.view(np.ndarray) for value in values if isinstance(value, HostTensor)]
    is_all = len(found) == len(values) > 1 and len({array.dtype for array in found}) == 1
    return found if is_all and stays_on_host() else []


def _traced_lengths(values: Sequence[object]) -> list[Any]:
    """Return lengths in a trace: what `shape` gave, and Python ints. Nothing if some are other tensors.

    They stay in NumPy, so that the result can be the shape of other tensors.
    """
    if not (is_tracing() and any(type(value) in _LENGTHS for value in values)):
        return []
    if not all(type(value) in _LENGTHS or _is_ints(value) for value in values):
        return []
    found = [
        np.asarray(value) if type(value) in _LENGTHS else np.array(value, np.int32)
        for value in values
    ]
    are_lengths = {array.dtype for array in found} == {dtypes.int32}
    return found if are_lengths and max(array.ndim for array in found) < 2 else []


def _is_ints(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        parts = cast("Sequence[object]", value)
        return all(type(part) is np.int32 or _is_int32(part) for part in parts)
    return _is_int32(value)


def _is_int32(value: object) -> bool:
    return type(value) is int and -(2**31) <= value < 2**31


def _is_text(tensor: Tensor) -> bool:
    return tensor.dtype == dtypes.string


def _is_several(values: object) -> TypeGuard[Sequence[object]]:
    return isinstance(values, (list, tuple))


def _resolved(shape: object, old: tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths, with -1 replaced by the length that fits the old shape."""
    lengths = _asked_lengths(shape)
    free = lengths.count(-1)
    if free > 1 or min(lengths, default=0) < -1:
        raise InvalidArgumentError(
            f"A shape must have lengths of at least 0 and at most one -1, but got {shortened(shape)}.",
            fix="pass -1 for one axis at most, and the lengths of the others.",
        )
    known = [length for length in lengths if length != -1]
    left = _left(old, known) if free else 1
    new = tuple(left if length == -1 else length for length in lengths)
    if math.prod(new) != math.prod(old):
        raise InvalidArgumentError(
            f"A tensor of {math.prod(old)} values cannot be reshaped to {shortened(shape)}.",
            fix="pass lengths whose product is the number of values, or -1 for one of them.",
        )
    return new


def _left(old: tuple[int, ...], known: list[int]) -> int:
    """Return the length for -1. Next to a 0, TensorFlow ignores the zeros of both shapes."""
    if 0 in known:
        old, known = tuple(n for n in old if n), [n for n in known if n]
    return math.prod(old) // math.prod(known)


def _asked_lengths(shape: object) -> list[int]:
    lengths = whole_numbers(shape)
    if lengths is None:
        raise InvalidArgumentError(
            f"A shape must be a vector of integers, but got {shortened(shape)}.",
            fix="pass the length of each axis, for example [2, 3].",
        )
    return lengths.reshape(-1).tolist()


def _restacked(tensor: Any, axis: object) -> Tensor:
    """Stack the slices of a tensor along its first axis."""
    if tensor.ndim == 0:
        return tensor
    place = _new_axis(axis, tensor.ndim)
    return np.moveaxis(tensor, 0, place) if _is_text(tensor) else jnp.moveaxis(tensor, 0, place)


def _new_axis(axis: object, rank: int) -> int:
    place = whole_number(axis, "axis")
    if not -rank <= place < rank:
        raise ValueError(
            described(
                f"axis {place} does not exist in the stacked tensor, which has rank {rank}.",
                fix=f"pass an axis from {-rank} to {rank - 1}.",
            )
        )
    return place


def _known_axis(axis: object) -> int:
    place = whole_numbers(axis)
    if place is None or place.size != 1:
        raise InvalidArgumentError(
            f"axis must be a single integer, but got {shortened(axis)}.", fix="pass an int."
        )
    return int(place.item())


def _check_one_shape(parts: Iterable[Any]) -> None:
    shapes = [part.shape for part in parts]
    for index, other in enumerate(shapes):
        if other != shapes[0]:
            raise InvalidArgumentError(
                f"Tensors to stack must have the same shape, but values[0] has {shapes[0]} "
                f"and values[{index}] has {other}.",
                fix="pad them to one shape, or join them along an existing axis with evenfeed.concat.",
            )


def _check_joinable(parts: Sequence[Any], axis: int) -> None:
    rank = parts[0].ndim
    if rank == 0:
        raise InvalidArgumentError(
            "concat cannot join scalars (tensors of shape []).",
            fix="join them with evenfeed.stack.",
        )
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"axis {axis} does not exist in tensors of rank {rank}.",
            fix=f"pass an axis from {-rank} to {rank - 1}.",
        )
    for index, part in enumerate(parts):
        if _but_one(part.shape, axis) != _but_one(parts[0].shape, axis) or part.ndim != rank:
            raise InvalidArgumentError(
                f"Tensors to concatenate may differ only along axis {axis}, but values[0] has shape "
                f"{parts[0].shape} and values[{index}] has {part.shape}.",
                fix="make the lengths of all other axes equal.",
            )


def _but_one(lengths: tuple[int, ...], axis: int) -> tuple[int, ...]:
    rest = list(lengths)
    return tuple(rest[:axis] + rest[axis:][1:])
