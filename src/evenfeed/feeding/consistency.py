"""Checks that all workers distribute the same dataset; a mismatch would deadlock.

Only facts that change the steps are compared. File paths, thread counts and buffer sizes may differ between
machines, and functions may make datasets of any length.
"""

import json
from collections.abc import Mapping
from typing import TypeAlias

from evenfeed.core.concurrency.peers import peers
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, map_structure
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.rewrite.worker_plan import Sharded

# Properties of a dataset, with their names in the error message.
Facts: TypeAlias = Mapping[str, object]


def cut_facts(plan: Node, sharded: Sharded, padded: int | None) -> Facts:
    """Return the facts that must agree on all workers, for a dataset whose batches are split.

    Args:
        plan: The user's plan.
        sharded: How it is sharded.
        padded: The number of rows per replica at every step, if batches are padded.
    """
    policy = sharded.policy
    facts: dict[str, object] = {
        "distribution method": "experimental_distribute_dataset",
        "auto_shard_policy": policy.name,
        "number of rows per replica": padded,
        "elements": str(map_structure(_kind, plan.element_spec, rules=DATA)),
    }
    if policy is AutoShardPolicy.DATA:  # all workers read the same dataset and count its rows
        facts |= {
            "elements": str(plan.element_spec),
            "cardinality": plan.size,
            "batch size": global_batch_size(plan),
        }
    if policy is AutoShardPolicy.LANES:  # a lane must be the same, whichever worker reads it
        facts |= {
            "batch size": global_batch_size(plan),
            "number of lanes": len(sharded.lanes),
            "number of steps per lane": str([lane.plan.size for lane in sharded.lanes]),
        }
    return facts


def taken_facts(plan: Node, *, per_replica: bool) -> Facts:
    """Return the facts that must agree on all workers, for datasets that a `dataset_fn` makes."""
    return {
        "distribution method": "distribute_datasets_from_function",
        "replication mode": "PER_REPLICA" if per_replica else "PER_WORKER",
        "elements": str(map_structure(_kind, plan.element_spec, rules=DATA)),
    }


def check_same(topic: Topic, facts: Facts) -> None:
    """Compare this worker's facts with those of the other workers.

    Raises:
        InvalidArgumentError: They differ. The message names the fact and the workers.
    """
    received = [json.loads(text) for text in topic.ask(json.dumps(facts))]
    for name in facts:
        values = [other.get(name) for other in received]
        if any(value != values[0] for value in values):
            raise InvalidArgumentError(
                f"The workers do not distribute the same dataset. Its {name} is {_by_worker(values)}.",
                fix="run the same program on all workers, with the same data; if only one worker needs a "
                "dataset, read it without a strategy.",
            )


def _by_worker(values: list[object]) -> str:
    workers: dict[str, list[str]] = {}
    for worker, value in enumerate(values):
        workers.setdefault(str(value), []).append(peers.name(worker))
    return "; ".join(f"{value} on {', '.join(names)}" for value, names in workers.items())


def _kind(spec: TypeSpec) -> str:
    """Return the dtype of a component, because its shape may differ between workers."""
    return spec.dtype.name if isinstance(spec, TensorSpec) else str(spec)
