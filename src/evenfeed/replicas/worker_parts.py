"""Hand-made per-replica values: with several workers, they hold the parts of this worker."""

from typing import Any

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica
from evenfeed.tensors.device_arrays import is_traced


def of_all_workers(replicas: Replicas, value: Any) -> Any:
    """Turn a value with this worker's parts into a value over the replicas of all workers.

    A PerReplica that the user or another strategy made has no knowledge of other workers: its parts
    belong to this one.

    Raises:
        Unstaged: A function is being traced, and workers cannot exchange shapes during a trace.
        InvalidArgumentError: It does not have one part for each replica of this worker.
    """
    if not (replicas.spans and isinstance(value, PerReplica) and value.is_local):
        return value
    inside = contexts.staging() is not None
    if value.replica_count == replicas.count and (inside or _is_traced(value)):
        return value
    if inside:
        raise Unstaged("other workers' parts of a value are unknown", expected=True)
    if _is_traced(value):
        raise InvalidArgumentError(
            "JAX is tracing a per-replica value, but only this worker's parts are known.",
            fix="call the strategy outside jax.jit, or use evenfeed.function.",
        )
    if value.part_count != replicas.local_count:
        raise InvalidArgumentError(
            "A per-replica value must have one part for each replica of this worker: "
            f"expected {replicas.local_count}, but got {value.part_count}.",
            fix="pass only the parts of this worker's replicas; the other workers pass theirs.",
        )
    return value.among(replicas)


def check_part_count(replicas: Replicas, value: Any) -> None:
    """Check that a per-replica value has one part for each of several replicas. Other parts would be lost."""
    if replicas.spans or not isinstance(value, PerReplica):
        return
    if replicas.count not in (1, value.replica_count):
        raise InvalidArgumentError(
            f"A per-replica value must have one part for each of the {replicas.count} replicas, but has "
            f"{value.replica_count}.",
            fix="pass a value that this strategy made, or one with as many parts as it has replicas.",
        )


def _is_traced(value: PerReplica) -> bool:
    return any(map(is_traced, value.opened()[0]))
