"""Collectives over the replicas' devices: sums, means and gathers, each in one program."""

# JAX's type stubs are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from evenfeed.core.concurrency.peers import MEETING_ERRORS, peers
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.mesh import AXIS, Replicas, shards
from evenfeed.replicas.reduce.reduce_op import ReduceOp, divided


def unfolded(replicas: Replicas, arrays: Any) -> Any:
    """Keep XLA from constant-folding arrays before a collective over several workers.

    A constant of a traced function may differ between workers. XLA replaces a collective on a constant
    with arithmetic: the result would be wrong, and workers without a constant there would deadlock.
    """
    return jax.lax.optimization_barrier(arrays) if replicas.spans else arrays


def reduce_inside(op: ReduceOp, arrays: Sequence[Any], count: int) -> list[Any]:
    """Reduce over the replicas, inside a shard_map."""
    totals = jax.lax.psum(list(arrays), AXIS)
    if op is ReduceOp.SUM:
        return totals
    return [divided(total, count) for total in totals]


def first_inside(index: Any, array: Any) -> Any:
    """Return replica 0's array, inside a shard_map.

    The other arrays are replaced with zeros, not multiplied by zero, so their NaNs do not spread. JAX sums
    bools as ints, so the dtype is restored.
    """
    own = jnp.where(index == 0, array, jnp.zeros_like(array))
    return jax.lax.psum(own, AXIS).astype(own.dtype)


def sum_parts(replicas: Replicas, parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sum arrays over the replicas, in one program.

    Args:
        replicas: The replicas.
        parts: For each replica, its arrays, on its device.

    Returns:
        For each replica, the sums, on its device.
    """
    # A scalar has no axis to shard along, so it costs one more operation in each direction.
    rows = [[part if part.ndim else jnp.expand_dims(part, 0) for part in row] for row in parts]
    flat = [part.ndim == 0 for part in parts[0]]
    return [
        [total[0] if lifted else total for total, lifted in zip(row, flat, strict=True)]
        for row in sums_over(replicas, rows)
    ]


def sums_over(replicas: Replicas, parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sum arrays over the replicas. The arrays have at least one axis and are on their devices."""
    columns = [replicas.joined(column) for column in zip(*parts, strict=True)]
    totals = _run_collective(replicas, _sum_program(replicas), columns)
    return [list(row) for row in zip(*(shards(total) for total in totals), strict=True)]


@lru_cache(maxsize=64)
def _sum_program(replicas: Replicas) -> Any:
    def summed(columns: list[Any]) -> list[Any]:
        return reduce_inside(ReduceOp.SUM, columns, replicas.count)

    return jax.jit(_mapped(replicas, summed))


@lru_cache(maxsize=64)
def means(count: int) -> Any:
    """Return a program that divides sums by the number of replicas."""

    def divide(totals: list[Any]) -> list[Any]:
        return [divided(total, count) for total in totals]

    return jax.jit(divide)


def _mapped(replicas: Replicas, function: Any) -> Any:
    """Map a function over the replicas. Its arguments and results are sharded along their first axis."""
    spec = jax.sharding.PartitionSpec(AXIS)
    # With check_vma=True, gradients through collectives differ from TensorFlow's.
    return jax.shard_map(
        function, mesh=replicas.mesh, in_specs=spec, out_specs=spec, check_vma=False
    )


def gather_parts(
    replicas: Replicas, parts: Sequence[Any], axis: int, lengths: Sequence[int]
) -> list[Any]:
    """Concatenate the replicas' arrays along an axis, and copy the result to each replica's device.

    Args:
        replicas: The replicas.
        parts: The arrays of this worker's replicas.
        axis: The axis.
        lengths: The lengths of all replicas' arrays along the axis.
    """
    if replicas.spans:
        parts = _from_all_workers(replicas, parts, axis, lengths)
    joined = jnp.concatenate([replicas.to_replica(part, 0) for part in parts], axis)
    return [replicas.to_replica(joined, replica) for replica in range(replicas.local_count)]


def held_by_all(replicas: Replicas, array: Any) -> Any:
    """Gather an array that is sharded over the replicas, on this worker's first device."""
    return _run_collective(replicas, _copy_program(replicas), array).addressable_data(0)


def _run_collective(replicas: Replicas, program: Any, arrays: Any) -> Any:
    """Run a program. With several workers, wait for its results, so that a failure surfaces here."""
    if not replicas.spans:
        return program(arrays)
    try:
        return jax.block_until_ready(program(arrays))
    except MEETING_ERRORS as error:
        peers.reraise(error)


def _from_all_workers(
    replicas: Replicas, parts: Sequence[Any], axis: int, lengths: Sequence[int]
) -> list[Any]:
    """Return the parts of all replicas. All parts are padded to one shape, as an SPMD program needs."""
    own = [jnp.moveaxis(replicas.to_replica(p, r), axis, 0) for r, p in enumerate(parts)]
    longest = max(lengths)
    padded = [jnp.pad(p, [(0, longest - len(p)), *[(0, 0)] * (p.ndim - 1)]) for p in own]
    whole = held_by_all(replicas, replicas.joined(padded))
    return [
        jnp.moveaxis(whole[index * longest : index * longest + length], 0, axis)
        for index, length in enumerate(lengths)
    ]


@lru_cache(maxsize=64)
def _copy_program(replicas: Replicas) -> Any:
    def same(array: Any) -> Any:
        return array

    return jax.jit(same, out_shardings=replicas.replicated)


def copies_of_first(replicas: Replicas, parts: Sequence[Any]) -> list[Any]:
    """Copy replica 0's array to the device of each of this worker's replicas."""
    first = held_by_all(replicas, replicas.stacked(parts))[0] if replicas.spans else parts[0]
    return [replicas.to_replica(first, replica) for replica in range(replicas.local_count)]
