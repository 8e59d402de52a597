"""What replicas compute together: sums, means and joins over their devices, in one program each."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from evenfeed.core.concurrency.peers import MEETING_ERRORS, peers
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.mesh import AXIS, Replicas, shards
from evenfeed.replicas.reduce.reduce_op import ReduceOp, divided


def unfolded(replicas: Replicas, arrays: Any) -> Any:
    """Hide from XLA how arrays are computed, before workers bring them together in a program.

    A constant of a traced function may be another one on another worker. XLA replaces a collective on a
    constant by arithmetic: the result would be wrong, and workers that have no constant there would wait.
    """
    return jax.lax.optimization_barrier(arrays) if replicas.spans else arrays


def reduce_inside(op: ReduceOp, arrays: Sequence[Any], count: int) -> list[Any]:
    """Reduce over the replicas, in code that is mapped over them."""
    totals = jax.lax.psum(list(arrays), AXIS)
    if op is ReduceOp.SUM:
        return totals
    return [divided(total, count) for total in totals]


def first_inside(index: Any, array: Any) -> Any:
    """Return replica 0's array, in code that is mapped over the replicas.

    What the others hold is not even multiplied by zero. JAX sums bools as ints, so the dtype is set again.
    """
    own = jnp.where(index == 0, array, jnp.zeros_like(array))
    return jax.lax.psum(own, AXIS).astype(own.dtype)


def sum_parts(replicas: Replicas, parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sum what lies on the devices, in one program.

    Args:
        replicas: The devices.
        parts: For each replica the arrays that it brings, on its device.

    Returns:
        For each replica the sums, on its device.
    """
    # A scalar has no axis that its parts could be cut along; one more operation for it, each way.
    rows = [[part if part.ndim else jnp.expand_dims(part, 0) for part in row] for row in parts]
    flat = [part.ndim == 0 for part in parts[0]]
    return [
        [total[0] if lifted else total for total, lifted in zip(row, flat, strict=True)]
        for row in sums_over(replicas, rows)
    ]


def sums_over(replicas: Replicas, parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sum arrays that have a first axis, each on its replica's device."""
    columns = [replicas.joined(column) for column in zip(*parts, strict=True)]
    totals = _met(replicas, _summer(replicas), columns)
    return [list(row) for row in zip(*(shards(total) for total in totals), strict=True)]


@lru_cache(maxsize=64)
def _summer(replicas: Replicas) -> Any:
    def summed(columns: list[Any]) -> list[Any]:
        return reduce_inside(ReduceOp.SUM, columns, replicas.count)

    return jax.jit(_mapped(replicas, summed))


@lru_cache(maxsize=64)
def means(count: int) -> Any:
    """Return the program that makes means of sums over so many replicas."""

    def divide(totals: list[Any]) -> list[Any]:
        return [divided(total, count) for total in totals]

    return jax.jit(divide)


def _mapped(replicas: Replicas, function: Any) -> Any:
    """Map a function over the replicas: arrays in and out are cut along their first axis."""
    spec = jax.sharding.PartitionSpec(AXIS)
    # With the check on, gradients after and through collectives are not TensorFlow's.
    return jax.shard_map(
        function, mesh=replicas.mesh, in_specs=spec, out_specs=spec, check_vma=False
    )


def gather_parts(
    replicas: Replicas, parts: Sequence[Any], axis: int, lengths: Sequence[int]
) -> list[Any]:
    """Join arrays of the replicas along an axis, on the device of each.

    Args:
        replicas: The devices.
        parts: What this worker's replicas bring.
        axis: Which one.
        lengths: How long the parts of all replicas are along it.
    """
    if replicas.spans:
        parts = _from_all_workers(replicas, parts, axis, lengths)
    joined = jnp.concatenate([replicas.to_replica(part, 0) for part in parts], axis)
    return [replicas.to_replica(joined, replica) for replica in range(replicas.local_count)]


def held_by_all(replicas: Replicas, array: Any) -> Any:
    """Return the whole of an array that is cut over the replicas, on this worker's first device."""
    return _met(replicas, _copier(replicas), array).addressable_data(0)


def _met(replicas: Replicas, program: Any, arrays: Any) -> Any:
    """Run a program; on several workers wait for its results, so that none of them fails later, in a variable."""
    if not replicas.spans:
        return program(arrays)
    try:
        return jax.block_until_ready(program(arrays))
    except MEETING_ERRORS as error:
        peers.reraise(error)


def _from_all_workers(
    replicas: Replicas, parts: Sequence[Any], axis: int, lengths: Sequence[int]
) -> list[Any]:
    """Return the parts of all replicas. No program may see shapes that others do not have: all are filled up."""
    own = [jnp.moveaxis(replicas.to_replica(p, r), axis, 0) for r, p in enumerate(parts)]
    most = max(lengths)
    filled = [jnp.pad(p, [(0, most - len(p)), *[(0, 0)] * (p.ndim - 1)]) for p in own]
    whole = held_by_all(replicas, replicas.joined(filled))
    return [
        jnp.moveaxis(whole[place * most : place * most + length], 0, axis)
        for place, length in enumerate(lengths)
    ]


@lru_cache(maxsize=64)
def _copier(replicas: Replicas) -> Any:
    def same(array: Any) -> Any:
        return array

    return jax.jit(same, out_shardings=replicas.replicated)


def copies_of_first(replicas: Replicas, parts: Sequence[Any]) -> list[Any]:
    """Return what the first of all replicas brings, on the device of each of this worker."""
    first = held_by_all(replicas, replicas.stacked(parts))[0] if replicas.spans else parts[0]
    return [replicas.to_replica(first, replica) for replica in range(replicas.local_count)]
