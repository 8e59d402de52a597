"""`Strategy.reduce` and `Strategy.gather`: combine the parts of per-replica values."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged import ragged_arranging
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError
from evenfeed.core.structure import NEST, flatten, is_branch, map_structure
from evenfeed.replicas.collectives.all_gather import gather_parts
from evenfeed.replicas.collectives.all_reduce import sum_parts
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.reduce.parts import (
    afterwards,
    avals_of,
    check_one_dtype,
    computed,
    has_parts,
    is_uneven,
    meets_workers,
    no_axis,
    on_first,
    part_shape,
    spread,
    stack_of,
    tensors_of,
    whole_of,
)
from evenfeed.replicas.reduce.reduce_op import ReduceOp, divided
from evenfeed.replicas.reduce.reduced_slices import (
    is_slices,
    is_split_slices,
    joined_slices,
    part_of_slices,
)
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.variable import Variable
from evenfeed.replicas.worker_parts import check_part_count, of_all_workers
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import unbound
from evenfeed.tensors.indexed_slices import IndexedSlices

_INTEGERS: Any = (int, np.integer)


def reduced(replicas: Replicas, op: ReduceOp, value: Any, axis: Any) -> Any:
    """Reduce a value over the replicas and, if `axis` is given, over axes.

    Without an axis, a structure of values is reduced leaf by leaf.
    """
    if axis is None:
        return map_structure(partial(_over_replicas, replicas, op), value, rules=NEST)
    axes = _whole_axes(axis)
    value = _dense(value)
    if _holds_values(value):
        raise TypeError(
            described(
                f"axis must be None to reduce the structure {shortened(value)}, but got {axis!r}.",
                fix="reduce each value separately, or pass axis=None to reduce over the replicas only.",
            )
        )
    return _reduced(replicas, op, value, axes)


def _holds_values(value: Any) -> bool:
    """Return True if a value is a structure. A list or tuple of numbers counts as a tensor."""
    if isinstance(value, (list, tuple)):
        parts = cast("Sequence[Any]", value)
        return any(has_parts(part) or _holds_values(part) for part in parts)
    return is_branch(value, NEST)


def _over_replicas(replicas: Replicas, op: ReduceOp, leaf: Any) -> Any:
    if isinstance(leaf, IndexedSlices) and has_parts(leaf.values):
        values, indices = (_gathered(replicas, 0, part) for part in (leaf.values, leaf.indices))
        shape = leaf.dense_shape.values[0] if has_parts(leaf.dense_shape) else leaf.dense_shape
        return joined_slices(op, values, indices, shape, replicas.count)
    own = replicas.spans and (op is ReduceOp.MEAN or replicas.local_count == 1)
    if has_parts(leaf) or own:  # a plain value may differ between workers
        return _reduced(replicas, op, leaf, ())
    if op is ReduceOp.MEAN or replicas.count == 1:
        return leaf.value() if isinstance(leaf, Variable) else leaf
    raise ValueError(
        described(
            f"SUM needs a per-replica value, but got {shortened(leaf)}, which is the same on all replicas.",
            fix="pass a result of strategy.run, or multiply by strategy.num_replicas_in_sync.",
        )
    )


def _reduced(replicas: Replicas, op: ReduceOp, value: Any, axes: tuple[int, ...]) -> Any:
    with apart_from_context_mesh():
        return unbound(_reduced_parts(replicas, op, value, axes))


def _reduced_parts(replicas: Replicas, op: ReduceOp, value: Any, axes: tuple[int, ...]) -> Any:
    check_part_count(replicas, value)
    value = of_all_workers(replicas, value)
    if is_uneven(value):
        like = jax.eval_shape(partial(_reduce_equal, op, count=1, axes=axes), value.parts[0])
        return afterwards(lambda own: _reduced(replicas, op, own, axes), like, value)
    whole = whole_of(spread(replicas, value))
    if whole is not None:
        array, count, stacked = whole
        _check_numbers(str(array.dtype))
        positive = _normalized(part_shape(array, count, stacked), axes)
        return computed(replicas, array, _reduce_whole, (op, count, stacked, positive))
    if meets_workers(replicas):
        return _reduce_separate(replicas, op, value, axes)
    if isinstance(value, Mirrored):
        return _reduce_equal(op, value.parts[0], value.part_count, axes)
    if isinstance(value, DistributedValues):
        return _reduce_separate(replicas, op, value, axes)
    return _reduce_equal(op, value, replicas.count, axes)


def _reduce_whole(
    array: Any, op: ReduceOp, count: int, stacked: bool, part_axes: tuple[int, ...]
) -> Any:
    stack = stack_of(array, count, stacked)
    axes = (0, *(axis + 1 for axis in part_axes))
    total = jnp.sum(stack, axis=axes, dtype=stack.dtype)
    if op is ReduceOp.SUM:
        return total
    return divided(total, math.prod(stack.shape[axis] for axis in axes))


def _reduce_separate(replicas: Replicas, op: ReduceOp, value: Any, axes: tuple[int, ...]) -> Any:
    parts = tensors_of(replicas, value)
    avals = avals_of(replicas, value, parts)
    for aval in avals:
        _check_numbers(aval.dtype)
    check_one_dtype(avals)
    axes_of_each = [_normalized(aval.shape, axes) for aval in avals]
    remaining = {_without(aval.shape, at) for aval, at in zip(avals, axes_of_each, strict=True)}
    if len(remaining) > 1:
        raise InvalidArgumentError(
            f"{op.name} over the replicas needs parts of one shape, but got the shapes "
            f"{[aval.shape for aval in avals]}.",
            fix="reduce over the batch too: strategy.reduce(op, value, axis=0).",
        )
    sums = [
        jnp.sum(part, axis=at, dtype=part.dtype) if at else part
        for part, at in zip(parts, _local_entries(replicas, axes_of_each), strict=True)
    ]
    total = _sum(replicas, sums)
    if op is ReduceOp.SUM:
        return total
    counts = (
        math.prod(aval.shape[axis] for axis in at)
        for aval, at in zip(avals, axes_of_each, strict=True)
    )
    return divided(total, sum(counts))


def _local_entries(replicas: Replicas, of_all: Sequence[Any]) -> Sequence[Any]:
    """Select this worker's entries from a list with one entry per replica."""
    if not meets_workers(replicas):
        return of_all
    return replicas.own_entries(of_all)


def _without(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


def _reduce_equal(op: ReduceOp, value: Any, count: int, axes: tuple[int, ...]) -> Any:
    """Reduce a value that is the same on every replica."""
    tensor = _tensor(value)
    positive = _normalized(tensor.shape, axes)
    total = jnp.sum(tensor, axis=positive, dtype=tensor.dtype)
    if op is ReduceOp.SUM:
        return (total * count).astype(tensor.dtype)
    return divided(total, math.prod(tensor.shape[axis] for axis in positive))


def _sum(replicas: Replicas, parts: Sequence[Any]) -> Any:
    if meets_workers(replicas):
        own = [[replicas.to_replica(part, r)] for r, part in enumerate(parts)]
        return sum_parts(replicas, own)[0][0]
    # Sum in replica order on one device, so that the result is bitwise reproducible.
    total = on_first(replicas, parts[0])
    for part in parts[1:]:
        total = total + on_first(replicas, part)
    return total


# --- checks -----------------------------------------------------------------------------------


def _tensor(part: Any) -> Any:
    tensor: Any = convert_to_tensor(part)
    _check_numbers(str(tensor.dtype))
    return tensor


def _check_numbers(dtype: str) -> None:
    if dtype == "object":
        raise WrongDtypeError(
            "Strings cannot be reduced with SUM or MEAN.", fix="use strategy.gather."
        )
    if dtype == "bool":
        raise WrongDtypeError(
            "Bools cannot be reduced with SUM or MEAN.",
            fix="count them: evenfeed.cast(value, evenfeed.int32).",
        )


def _whole_axes(axis: Any) -> tuple[int, ...]:
    axes = cast("tuple[Any, ...]", axis if isinstance(axis, tuple) else (axis,))
    if all(isinstance(each, _INTEGERS) for each in axes):
        return tuple(int(each) for each in axes)
    raise TypeError(
        described(
            f"axis must be None, an integer or a tuple of integers, but got {shortened(cast('object', axis))}.",
            fix="write axis=0, or axis=(0, 1).",
        )
    )


def _normalized(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes counted from the start."""
    rank = len(shape)
    for axis in axes:
        if not -rank <= axis < rank:
            fix = "pass an axis that the parts have." if rank else "pass axis=None for scalars."
            raise ValueError(described(no_axis(shape, axis), fix=fix))
    positive = tuple(axis % rank for axis in axes)
    if len(set(positive)) < len(positive):
        raise InvalidArgumentError(
            f"axis={tuple(axes)} contains an axis twice.", fix="list each axis once."
        )
    return positive


def gathered(replicas: Replicas, value: Any, axis: Any) -> Any:
    """Concatenate the parts of `value` along an axis, on the first replica's device.

    In a structure, each value is gathered. A value that is the same on all replicas is returned as it is.
    """
    if not isinstance(axis, _INTEGERS):
        raise ValueError(
            described(f"axis must be an integer, but got {shortened(axis)}.", fix="pass axis=0.")
        )
    if any(is_slices(leaf) and not is_split_slices(leaf) for leaf in flatten(value, NEST)):
        raise UnimplementedError(
            "gather does not support IndexedSlices that are the same on all replicas.",
            fix="pass a tensor: gather(evenfeed.convert_to_tensor(slices), axis=0).",
        )
    return map_structure(partial(_gathered, replicas, int(axis)), value, rules=NEST)


def _dense(value: Any) -> Any:
    """Return per-replica slices as per-replica tensors."""
    if not is_split_slices(value):
        return value
    parts = range(value.values.part_count)
    return PerReplica([convert_to_tensor(part_of_slices(value, i)) for i in parts])


def _gathered(replicas: Replicas, axis: int, value: Any) -> Any:
    with apart_from_context_mesh():
        return unbound(_gathered_parts(replicas, axis, _dense(value)))


def _gathered_parts(replicas: Replicas, axis: int, value: Any) -> Any:
    if replicas.is_lone or not (has_parts(value) or replicas.spans):
        return value.value() if isinstance(value, Variable) else value
    check_part_count(replicas, value)
    if isinstance(value, PerReplica) and isinstance(value.values[0], RaggedTensor):
        return _joined_rows(replicas, value.values, axis)
    value = of_all_workers(replicas, value)
    if is_uneven(value):
        first = value.parts[0]
        shapes = value.shapes or [part.shape for part in value.parts]
        like = jax.ShapeDtypeStruct(_joined_shape(shapes, axis), first.dtype)
        return afterwards(lambda own: _gathered(replicas, axis, own), like, value)
    whole = whole_of(spread(replicas, value))
    if whole is None:
        return _joined(replicas, value, axis)
    array, count, stacked = whole
    place = _join_place(part_shape(array, count, stacked), axis)
    return computed(replicas, array, _joined_whole, (count, stacked, place))


def _joined_rows(replicas: Replicas, parts: Sequence[Any], axis: int) -> Any:
    if replicas.spans:
        raise UnimplementedError(
            "gather does not support ragged tensors of several workers.",
            fix="gather tensors: call x.to_tensor() in the function that the replicas run.",
        )
    return ragged_arranging.concat(list(parts), axis)


def _joined(replicas: Replicas, value: Any, axis: int) -> Any:
    parts = tensors_of(replicas, value)
    avals = avals_of(replicas, value, parts)
    shapes = [aval.shape for aval in avals]
    _joined_shape(shapes, axis)
    check_one_dtype(avals)
    place = _join_place(shapes[0], axis)
    if avals[0].is_text:
        return np.concatenate(_texts(replicas, parts), place)
    if meets_workers(replicas):
        return gather_parts(replicas, parts, place, [shape[place] for shape in shapes])[0]
    return jnp.concatenate([on_first(replicas, part) for part in parts], place)


def _joined_shape(shapes: Sequence[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    """Return the shape of the concatenated parts."""
    place = _join_place(shapes[0], axis)
    others = {(*shape[:place], *shape[place + 1 :]) for shape in shapes}
    if len(others) > 1 or len(set(map(len, shapes))) > 1:
        raise InvalidArgumentError(
            f"Parts of the shapes {list(shapes)} cannot be concatenated along axis {axis}: {_unlike(shapes, place)}.",
            fix="pass parts whose shapes differ along that axis only.",
        )
    length = sum(shape[place] for shape in shapes)
    return (*shapes[0][:place], length, *shapes[0][place + 1 :])


def _unlike(shapes: Sequence[tuple[int, ...]], place: int) -> str:
    """Return which length, or which rank, differs."""
    first = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(first):
            return f"Shape must be rank {len(first)} but is rank {len(shape)}"
        for axis, (one, other) in enumerate(zip(first, shape, strict=True)):
            if axis != place and one != other:
                return f"Dimension {axis} in both shapes must be equal, but are {one} and {other}"
    return ""


def _texts(replicas: Replicas, parts: Sequence[Array]) -> list[Array]:
    """Return the strings of all replicas. They stay on the host, so workers exchange messages."""
    if not replicas.spans:
        return list(parts)
    own = [[part.shape, [text.decode("latin-1") for text in part.flat]] for part in parts]
    received = replicas.by_replica(replicas.session.exchange("gather of text", own))
    return [
        np.array([text.encode("latin-1") for text in texts], object).reshape(shape)
        for shape, texts in received
    ]


def _join_place(shape: Sequence[int], axis: int) -> int:
    if not shape:
        raise InvalidArgumentError(
            "Scalars have no axis to gather along.",
            fix="add an axis to each part with jax.numpy.expand_dims(part, 0).",
        )
    if not -len(shape) <= axis < len(shape):
        raise InvalidArgumentError(no_axis(shape, axis), fix="pass an axis that the parts have.")
    return axis % len(shape)


def _joined_whole(array: Any, count: int, stacked: bool, place: int) -> Any:
    stack = stack_of(array, count, stacked)
    return jnp.concatenate([stack[replica] for replica in range(count)], place)
