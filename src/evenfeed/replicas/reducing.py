"""Brings the parts of values together: `Strategy.reduce` and `Strategy.gather`."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.jax_door import jax, jnp
from evenfeed.core.structure import NEST, is_branch, map_structure
from evenfeed.replicas import contexts
from evenfeed.replicas.apart import later
from evenfeed.replicas.collectives import gather_parts, rows_of_all, sum_parts
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_variables import DistributedVariable
from evenfeed.replicas.reduction import ReduceOp, divided
from evenfeed.replicas.values import DistributedValues, Mirrored, PerReplica
from evenfeed.replicas.variables import Variable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.placement import is_traced


def reduced(replicas: Replicas, op: ReduceOp, value: Any, axis: Any) -> Any:
    """Return one value for the parts of `value`: over the replicas, and over axes where asked.

    Over the replicas alone, a nest of values is reduced leaf by leaf.
    """
    if axis is None:
        return map_structure(partial(_over_replicas, replicas, op), value, rules=NEST)
    axes = _whole_axes(axis)
    if _holds_values(value):
        raise TypeError(
            described(
                f"A nest of values, {shortened(value)}, has no axis of its own.",
                fix="reduce each value in it by itself, or all over the replicas alone with axis=None.",
            )
        )
    return _reduced(replicas, op, value, axes)


def _holds_values(value: Any) -> bool:
    """Tell whether a value is a nest; a list or tuple of numbers is a tensor in the making."""
    if isinstance(value, (list, tuple)):
        parts: Sequence[Any] = value
        return any(_has_parts(part) or _holds_values(part) for part in parts)
    return is_branch(value, NEST)


def _over_replicas(replicas: Replicas, op: ReduceOp, leaf: Any) -> Any:
    own = replicas.spans and (op is ReduceOp.MEAN or replicas.local_count == 1)
    if _has_parts(leaf) or own:  # a plain value is this worker's own
        return _reduced(replicas, op, leaf, ())
    if op is ReduceOp.MEAN or replicas.count == 1:
        return leaf.value() if isinstance(leaf, Variable) else leaf
    raise ValueError(
        described(
            f"A value that is the same on all replicas, {shortened(leaf)}, has no sum over them.",
            fix="pass what strategy.run returned, or multiply by strategy.num_replicas_in_sync.",
        )
    )


def _has_parts(value: Any) -> bool:
    return isinstance(value, (DistributedValues, DistributedVariable))


def _reduced(replicas: Replicas, op: ReduceOp, value: Any, axes: tuple[int, ...]) -> Any:
    if _is_apart(value):
        return _afterwards(lambda parts: _of_parts(replicas, op, parts, axes), value)
    if replicas.spans and contexts.staging() is None:
        return _of_parts(replicas, op, _own_parts(replicas, value), axes)
    whole = _whole(value)
    if whole is not None:
        array, count, stacked = whole
        _check_numbers(array.dtype, axes)
        places = _places(_part_shape(array, count, stacked), axes)
        return _done(replicas, array, _of_whole, (op, count, stacked, places))
    if isinstance(value, Mirrored):
        return _of_equal(op, value.values[0], len(value), axes)
    if isinstance(value, DistributedValues):
        return _of_parts(replicas, op, value.values, axes)
    return _of_equal(op, value, replicas.count, axes)


# --- one array of all parts -------------------------------------------------------------------


def _whole(value: Any) -> tuple[Any, int, bool] | None:
    """Return the parts as one array, how many, and whether they have an axis of their own in it."""
    if isinstance(value, DistributedVariable):
        return value.stack, value.replicas.count, True
    if isinstance(value, PerReplica) and value.whole is not None:
        return value.whole, value.replica_count, value.is_lifted
    return None


def _part_shape(array: Any, count: int, stacked: bool) -> tuple[int, ...]:
    return array.shape[1:] if stacked else (array.shape[0] // count, *array.shape[1:])


def _of_whole(array: Any, op: ReduceOp, count: int, stacked: bool, places: tuple[int, ...]) -> Any:
    stack = _stack(array, count, stacked)
    axes = (0, *(place + 1 for place in places))
    total = jnp.sum(stack, axis=axes, dtype=stack.dtype)
    if op is ReduceOp.SUM:
        return total
    return divided(total, math.prod(stack.shape[axis] for axis in axes))


def _joined_whole(array: Any, count: int, stacked: bool, place: int) -> Any:
    stack = _stack(array, count, stacked)
    return jnp.concatenate([stack[replica] for replica in range(count)], place)


def _stack(array: Any, count: int, stacked: bool) -> Any:
    return array if stacked else array.reshape(count, *_part_shape(array, count, stacked))


def _done(replicas: Replicas, array: Any, compute: Callable[..., Any], kind: Any) -> Any:
    """Compute from an array of all parts what all replicas know then, in one program."""
    if is_traced(array):
        result = compute(array, *kind)
        # Else XLA might leave each device a piece of the result.
        return jax.lax.with_sharding_constraint(result, replicas.replicated)
    program = _program(getattr(array.sharding, "mesh", replicas.mesh), compute, kind)
    return program(array).addressable_data(0)


@lru_cache(maxsize=256)
def _program(mesh: Any, compute: Callable[..., Any], kind: Any) -> Any:
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def program(array: Any) -> Any:
        return compute(array, *kind)

    return jax.jit(program, out_shardings=everywhere)


# --- parts that are no one array --------------------------------------------------------------


def _is_apart(value: Any) -> bool:
    """Tell whether the parts of a traced value lie on devices of their own, one shape or not."""
    return (
        isinstance(value, PerReplica)
        and value.whole is None
        and bool(value.values)
        and all(is_traced(part) for part in value.values)
        and contexts.staging() is not None
        and contexts.staging().apart
    )


def _afterwards(call: Callable[[Sequence[Any]], Any], value: PerReplica) -> Any:
    shape: Any = jax.eval_shape(call, list(value.values))
    return later(lambda *parts: [call(parts)], [shape], *value.values)[0]


def _of_parts(
    replicas: Replicas, op: ReduceOp, values: Sequence[Any], axes: tuple[int, ...]
) -> Any:
    parts = [_tensor(part, axes) for part in values]
    _check_one_dtype(parts)
    places = [_places(part.shape, axes) for part in parts]
    sums = [
        jnp.sum(part, axis=at, dtype=part.dtype) if at else part
        for part, at in zip(parts, places, strict=True)
    ]
    if len({part.shape for part in sums}) > 1:
        raise InvalidArgumentError(
            f"Parts of the shapes {[part.shape for part in parts]} have no {op.name.lower()} over "
            "the replicas.",
            fix="reduce over the batch too: strategy.reduce(op, value, axis=0).",
        )
    total = _sum(replicas, sums)
    if op is ReduceOp.SUM:
        return total
    counts = [math.prod(part.shape[i] for i in at) for part, at in zip(parts, places, strict=True)]
    if replicas.spans:
        counts = [row[0] for row in rows_of_all(replicas, [[count] for count in counts])]
    return divided(total, sum(counts))


def _own_parts(replicas: Replicas, value: Any) -> Sequence[Any]:
    """Return the parts of this worker's replicas, of which others may be longer or shorter."""
    return value.values if _has_parts(value) else [value] * replicas.local_count


def _of_equal(op: ReduceOp, value: Any, count: int, axes: tuple[int, ...]) -> Any:
    """Reduce what every replica has alike."""
    tensor = _tensor(value, axes)
    places = _places(tensor.shape, axes)
    total = jnp.sum(tensor, axis=places, dtype=tensor.dtype)
    if op is ReduceOp.SUM:
        return (total * count).astype(tensor.dtype)
    return divided(total, math.prod(tensor.shape[place] for place in places))


def _sum(replicas: Replicas, parts: Sequence[Any]) -> Any:
    if replicas.spans:
        own = [[replicas.to_replica(part, r)] for r, part in enumerate(parts)]
        return sum_parts(replicas, own)[0][0]
    # In the order of the replicas, on one device: the same bits each time.
    total = _on_first(replicas, parts[0])
    for part in parts[1:]:
        total = total + _on_first(replicas, part)
    return total


def _on_first(replicas: Replicas, part: Any) -> Any:
    return part if is_traced(part) or replicas.count == 1 else replicas.to_replica(part, 0)


# --- joining ----------------------------------------------------------------------------------


def gathered(replicas: Replicas, value: Any, axis: Any) -> Any:
    """Join the parts of `value` along an axis, on the device of the first replica.

    Of a nest every value is joined. What is the same on all replicas stays as it is.
    """
    if not isinstance(axis, (int, np.integer)):
        raise ValueError(
            described(
                f"gather joins along an axis, but got axis={shortened(axis)}.", fix="pass axis=0."
            )
        )
    return map_structure(partial(_gathered, replicas, int(axis)), value, rules=NEST)


def _gathered(replicas: Replicas, axis: int, value: Any) -> Any:
    if replicas.count == 1 or not (_has_parts(value) or replicas.spans):
        return value.value() if isinstance(value, Variable) else value
    if _is_apart(value):
        return _afterwards(lambda parts: _joined(replicas, parts, axis), value)
    if replicas.spans and contexts.staging() is None:
        return _joined(replicas, _own_parts(replicas, value), axis)
    whole = _whole(value)
    if whole is None:
        return _joined(replicas, value.values, axis)
    array, count, stacked = whole
    place = _join_place(_part_shape(array, count, stacked), axis)
    return _done(replicas, array, _joined_whole, (count, stacked, place))


def _joined(replicas: Replicas, values: Sequence[Any], axis: int) -> Any:
    parts: list[Any] = [convert_to_tensor(part) for part in values]
    place = _join_place(parts[0].shape, axis)
    others = {(*part.shape[:place], *part.shape[place + 1 :]) for part in parts}
    if len(others) > 1 or len({part.ndim for part in parts}) > 1:
        raise InvalidArgumentError(
            f"Parts of the shapes {[part.shape for part in parts]} cannot be joined along axis {axis}.",
            fix="let the parts differ along that axis only.",
        )
    _check_one_dtype(parts)
    if any(isinstance(part, np.ndarray) for part in parts):  # text
        return np.concatenate(parts, place)
    if replicas.spans:
        return gather_parts(replicas, parts, place)[0]
    return jnp.concatenate([_on_first(replicas, part) for part in parts], place)


def _join_place(shape: Sequence[int], axis: int) -> int:
    if not shape:
        raise ValueError(
            described(
                "Scalars have no axis to be joined along.",
                fix="give each part an axis with jax.numpy.expand_dims(part, 0).",
            )
        )
    if not -len(shape) <= axis < len(shape):
        raise InvalidArgumentError(_no_axis(shape, axis), fix="name an axis that the parts have.")
    return axis % len(shape)


def _no_axis(shape: Sequence[int], axis: int) -> str:
    return f"A part of the shape {tuple(shape)} has no axis {axis}."


# --- checks -----------------------------------------------------------------------------------


def _tensor(part: Any, axes: tuple[int, ...]) -> Any:
    tensor: Any = convert_to_tensor(part)
    _check_numbers(tensor.dtype, axes)
    return tensor


def _check_numbers(dtype: Any, axes: tuple[int, ...]) -> None:
    if dtype.kind not in "bOSU":
        return
    said = "Text has" if dtype.kind != "b" else "Values of True and False have"
    what, fix = f"{said} no sum and no mean.", "count them: evenfeed.cast(value, evenfeed.int32)."
    if dtype.kind == "b" and not axes:
        raise InvalidArgumentError(what, fix=fix)
    raise TypeError(described(what, fix=fix if dtype.kind == "b" else "gather it."))


def _check_one_dtype(parts: Sequence[Any]) -> None:
    names = [str(part.dtype) for part in parts]
    if len(set(names)) > 1:
        raise InvalidArgumentError(
            f"The replicas' parts have several dtypes: {names}.",
            fix="let every replica return the same dtype, with evenfeed.cast.",
        )


def _whole_axes(axis: Any) -> tuple[int, ...]:
    axes = axis if isinstance(axis, tuple) else (axis,)
    if all(isinstance(each, (int, np.integer)) for each in axes):
        return tuple(int(each) for each in axes)
    raise TypeError(
        described(
            f"axis must be None, a whole number or a tuple of them, but got {shortened(axis)}.",
            fix="write axis=0, or axis=(0, 1).",
        )
    )


def _places(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    rank = len(shape)
    for axis in axes:
        if not -rank <= axis < rank:
            fix = "name an axis that the parts have." if rank else "pass axis=None for scalars."
            raise ValueError(described(_no_axis(shape, axis), fix=fix))
    places = tuple(axis % rank for axis in axes)
    if len(set(places)) < len(places):
        raise InvalidArgumentError(
            f"axis={tuple(axes)} names an axis twice.", fix="name each axis once."
        )
    return places
