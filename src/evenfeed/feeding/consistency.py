"""Finds out that the workers distribute different datasets, before they wait for each other for ever.

Only what would let workers take unlike steps is compared. Files have other paths on other machines, threads and
buffers other numbers, and functions may make datasets of any length.
"""

import json
from collections.abc import Mapping
from typing import TypeAlias

from evenfeed.core.concurrency.peers import peers
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, map_structure
from evenfeed.feeding.agreed_steps import Topic
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy

# What a dataset is, by the names that a person knows it by.
Facts: TypeAlias = Mapping[str, object]


def cut_facts(plan: Node, policy: AutoShardPolicy, padded: int | None) -> Facts:
    """Return what must be the same on all workers of a dataset that is cut.

    Args:
        plan: The user's.
        policy: How the data is shared out.
        padded: How many rows each replica gets at every step, where all are filled up.
    """
    facts: dict[str, object] = {
        "way in which it is distributed": "experimental_distribute_dataset",
        "auto_shard_policy": policy.name,
        "rows of each replica": padded,
        "elements": str(map_structure(_kind, plan.element_spec, rules=DATA)),
    }
    if policy is AutoShardPolicy.DATA:  # all read the same dataset, and count its rows themselves
        facts |= {
            "elements": str(plan.element_spec),
            "cardinality": plan.size,
            "batch size": global_batch_size(plan),
        }
    return facts


def taken_facts(plan: Node, *, per_replica: bool) -> Facts:
    """Return what must be the same on all workers of datasets that functions make."""
    return {
        "way in which it is distributed": "distribute_datasets_from_function",
        "replication mode": "PER_REPLICA" if per_replica else "PER_WORKER",
        "elements": str(map_structure(_kind, plan.element_spec, rules=DATA)),
    }


def check_same(topic: Topic, facts: Facts) -> None:
    """Tell the other workers what is distributed here.

    Raises:
        InvalidArgumentError: They distribute something else; it says what, and who.
    """
    told = [json.loads(text) for text in topic.ask(json.dumps(facts))]
    for name in facts:
        known = [other.get(name) for other in told]
        if any(value != known[0] for value in known):
            raise InvalidArgumentError(
                f"The workers do not distribute the same dataset. Its {name} is {_said(known)}.",
                fix="run the same program on all workers, with the same data; what only one of them needs, "
                "it can read without a strategy.",
            )


def _said(known: list[object]) -> str:
    places: dict[str, list[str]] = {}
    for place, value in enumerate(known):
        places.setdefault(str(value), []).append(peers.name(place))
    return "; ".join(f"{value} on {', '.join(names)}" for value, names in places.items())


def _kind(spec: TypeSpec) -> str:
    """Return the dtype of a part: how long it is may differ from worker to worker."""
    return spec.dtype.name if isinstance(spec, TensorSpec) else str(spec)
