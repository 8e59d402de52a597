"""Brings the parts of values together: `Strategy.reduce` and `Strategy.gather`."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.jax_door import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.apart import later
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduction import ReduceOp, divided
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables import Variable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.placement import is_traced


def reduced(replicas: Replicas, op: ReduceOp, value: Any, axis: Any) -> Any:
    """Return one value for the parts of `value`: over the replicas, and over axes where asked."""
    if _is_apart(value):
        return _afterwards(lambda parts: _reduced(replicas, op, PerReplica(parts), axis), value)
    return _reduced(replicas, op, value, axis)


def _reduced(replicas: Replicas, op: ReduceOp, value: Any, axis: Any) -> Any:
    if axis is None:
        return _over_replicas(replicas, op, value)
    if (stack := _traced_stack(value)) is not None:
        places = _places(stack[0], axis if isinstance(axis, tuple) else (axis,))
        return _of_stack(op, stack, (0, *(place + 1 for place in places)))
    parts = [_tensor(part) for part in _parts(replicas, value)]
    axes = axis if isinstance(axis, tuple) else (axis,)
    places = [_places(part, axes) for part in parts]
    sums = [
        jnp.sum(part, axis=at, dtype=part.dtype) for part, at in zip(parts, places, strict=True)
    ]
    total = _sum(replicas, sums)
    if op is ReduceOp.SUM:
        return total
    counts = [
        int(np.prod([part.shape[i] for i in at])) for part, at in zip(parts, places, strict=True)
    ]
    return divided(total, sum(counts))


def _over_replicas(replicas: Replicas, op: ReduceOp, value: Any) -> Any:
    if not isinstance(value, (DistributedValues, Variable)) and replicas.count > 1:
        if op is ReduceOp.MEAN:
            return value
        raise ValueError(
            described(
                f"A value that is the same on all replicas, {shortened(value)}, has no sum over them.",
                fix="pass what strategy.run returned, or multiply by strategy.num_replicas_in_sync.",
            )
        )
    if (stack := _traced_stack(value)) is not None:
        return _of_stack(op, stack, (0,))
    parts = [_tensor(part) for part in _parts(replicas, value)]
    shapes = [part.shape for part in parts]
    if len(set(shapes)) > 1:
        raise ValueError(
            described(
                f"Parts of the shapes {shapes} have no {op.name.lower()} over the replicas.",
                fix="reduce over the batch too: strategy.reduce(op, value, axis=0).",
            )
        )
    total = _sum(replicas, parts)
    return total if op is ReduceOp.SUM else divided(total, len(parts)) if len(parts) > 1 else total


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


def _traced_stack(value: Any) -> Any:
    """Return the parts of a traced value with an axis for the replicas; None for other values.

    Sums along that axis become one collective in the compiled program.
    """
    if not isinstance(value, PerReplica):
        return None
    whole = value.whole
    if whole is None or not is_traced(whole):
        return None
    return whole if value.is_lifted else whole.reshape(len(value), -1, *whole.shape[1:])


def _of_stack(op: ReduceOp, stack: Any, axes: tuple[int, ...]) -> Any:
    total = jnp.sum(stack, axis=axes, dtype=stack.dtype)
    if op is ReduceOp.SUM:
        return total
    return divided(total, int(np.prod([stack.shape[axis] for axis in axes])))


def gathered(replicas: Replicas, value: Any, axis: Any) -> Any:
    """Join the parts of `value` along an axis, on the device of the first replica."""
    if _is_apart(value):
        return _afterwards(lambda parts: _gathered(replicas, PerReplica(parts), axis), value)
    return _gathered(replicas, value, axis)


def _gathered(replicas: Replicas, value: Any, axis: Any) -> Any:
    parts = [_tensor(part) for part in _parts(replicas, value)]
    if any(part.ndim == 0 for part in parts):
        raise InvalidArgumentError(
            "Scalars have no axis to be joined along.",
            fix="give each part an axis with jax.numpy.expand_dims(part, 0).",
        )
    place = _places(parts[0], (axis,))[0]
    others = {tuple(np.delete(part.shape, place)) if part.ndim > place else None for part in parts}
    if len(others) > 1:
        raise InvalidArgumentError(
            f"Parts of the shapes {[part.shape for part in parts]} cannot be joined along axis {axis}.",
            fix="let the parts differ along that axis only.",
        )
    if len(parts) == 1:
        return parts[0]
    return jnp.concatenate([_on_first(replicas, part) for part in parts], place)


def _parts(replicas: Replicas, value: Any) -> Sequence[Any]:
    if isinstance(value, (DistributedValues, Variable)):
        return value.values
    return [value] * replicas.count


def _tensor(part: Any) -> Any:
    tensor: Any = convert_to_tensor(part)
    return tensor


def _sum(replicas: Replicas, parts: Sequence[Any]) -> Any:
    # In the order of the replicas, on one device: the same bits each time.
    total = _on_first(replicas, parts[0])
    for part in parts[1:]:
        total = total + _on_first(replicas, part)
    return total


def _on_first(replicas: Replicas, part: Any) -> Any:
    return part if is_traced(part) or replicas.count == 1 else replicas.to_replica(part, 0)


def _places(part: Any, axes: Sequence[Any]) -> tuple[int, ...]:
    places: list[int] = []
    for axis in axes:
        if not isinstance(axis, (int, np.integer)) or not -part.ndim <= axis < part.ndim:
            raise ValueError(
                described(
                    f"axis must be between {-part.ndim} and {part.ndim - 1} for a part of the shape "
                    f"{part.shape}, but got {shortened(axis)}.",
                    fix="name an axis of the parts, or None to reduce over the replicas alone.",
                )
            )
        places.append(int(axis) % part.ndim)
    return tuple(places)
