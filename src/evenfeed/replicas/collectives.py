"""What replicas compute together: sums, means and joins over their devices, in one program each."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from evenfeed.core.jax_door import jax, jnp
from evenfeed.replicas.mesh import AXIS, Replicas, shards
from evenfeed.replicas.reduction import ReduceOp, divided


def reduce_inside(op: ReduceOp, arrays: Sequence[Any], count: int) -> list[Any]:
    """Reduce over the replicas, in code that is mapped over them."""
    totals = jax.lax.psum(list(arrays), AXIS)
    if op is ReduceOp.SUM:
        return totals
    return [divided(total, count) for total in totals]


def reduce_parts(
    replicas: Replicas, op: ReduceOp, parts: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Reduce what lies on the devices.

    Args:
        replicas: The devices.
        op: Sum or mean.
        parts: For each replica the arrays that it brings, on its device.

    Returns:
        For each replica the results, on its device.
    """
    rows = [[jnp.expand_dims(part, 0) for part in row] for row in parts]
    return [[part[0] for part in row] for row in _reduced_rows(replicas, op, rows)]


def sums_over(replicas: Replicas, parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sum arrays with a first axis of length one, each on its replica's device, and keep that axis."""
    return _reduced_rows(replicas, ReduceOp.SUM, parts)


def _reduced_rows(
    replicas: Replicas, op: ReduceOp, parts: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    columns = [replicas.joined(column) for column in zip(*parts, strict=True)]
    totals = _reducer(replicas, op)(columns)
    return [list(row) for row in zip(*(shards(total) for total in totals), strict=True)]


@lru_cache(maxsize=64)
def _reducer(replicas: Replicas, op: ReduceOp) -> Any:
    def reduced(columns: list[Any]) -> list[Any]:
        return reduce_inside(op, columns, replicas.count)

    return jax.jit(mapped(replicas, reduced))


def mapped(replicas: Replicas, function: Any, *, plain: bool = False) -> Any:
    """Map a function over the replicas: arrays in and out are cut along their first axis.

    Args:
        replicas: The devices.
        function: Takes and returns structures of arrays.
        plain: Its results are the same on all replicas, and are not joined.
    """
    spec = jax.sharding.PartitionSpec
    return jax.shard_map(
        function,
        mesh=replicas.mesh,
        in_specs=spec(AXIS),
        out_specs=spec() if plain else spec(AXIS),
        # With the check on, gradients after and through collectives are not TensorFlow's.
        check_vma=False,
    )


def gather_parts(replicas: Replicas, parts: Sequence[Any], axis: int) -> list[Any]:
    """Join arrays of the replicas along an axis, on the device of each."""
    joined = gathered(replicas, parts, axis, 0)
    return [replicas.to_replica(joined, replica) for replica in range(replicas.count)]


def gathered(replicas: Replicas, parts: Sequence[Any], axis: int, replica: int) -> Any:
    """Join arrays of the replicas along an axis, on the device of one."""
    return jnp.concatenate([replicas.to_replica(part, replica) for part in parts], axis)
