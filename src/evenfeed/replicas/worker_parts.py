"""Values that users make by hand: on a worker among others they hold that worker's parts."""

from typing import Any

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica
from evenfeed.tensors.placement import is_traced


def of_all_workers(replicas: Replicas, value: Any) -> Any:
    """Return a value as one of the replicas of all workers.

    A PerReplica that a user made, or another strategy, does not know of other workers: its parts are
    those of this one.

    Raises:
        Unstaged: A function is traced, where workers cannot tell each other what they have.
        InvalidArgumentError: It does not have a part for each replica of this worker.
    """
    if not (replicas.spans and isinstance(value, PerReplica) and value.is_local):
        return value
    inside = contexts.staging() is not None
    if value.replica_count == replicas.count and (inside or _is_traced(value)):
        return value
    if inside:
        raise Unstaged("it is not known what other workers have of a value", expected=True)
    if _is_traced(value):
        raise InvalidArgumentError(
            "JAX traces a value of which only this worker's parts are known.",
            fix="call the strategy outside of jax.jit, or use evenfeed.function.",
        )
    if value.part_count != replicas.local_count:
        raise InvalidArgumentError(
            "A per-replica value must have one part for each replica of this worker: "
            f"{replicas.local_count} expected, {value.part_count} found.",
            fix="pass the parts of this worker's replicas alone; the other workers pass theirs.",
        )
    return value.among(replicas)


def _is_traced(value: PerReplica) -> bool:
    return any(map(is_traced, value.opened()[0]))
