"""The size of a plan's global batches, and how they are split over replicas."""

from typing import Final

from evenfeed.core.batch_split import Share
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.batching import PaddedBatch
from evenfeed.plan.buffering import Cache, Prefetch
from evenfeed.plan.checking import AssertCardinality
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Filter
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy, WithOptions
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take

# Nodes that leave batches unchanged.
_THROUGH: Final = (
    AssertCardinality,
    Cache,
    Filter,
    Prefetch,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    WithOptions,
)


def global_batch_size(plan: Node) -> int | None:
    """Return the nominal batch size of a plan, or None if TensorFlow cannot determine it either.

    It is the first dimension, if all components know it. Otherwise it is the size of the last batch node,
    looking through nodes that leave batches unchanged.
    """
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    lengths = {spec.shape[0] if spec.shape.rank else None for spec in specs}
    if lengths and None not in lengths:
        return lengths.pop() if len(lengths) == 1 else None
    sizes: dict[int, int | None] = {}
    for node in plan.bottom_up():
        sizes[id(node)] = _batch_size(node, [sizes[id(child)] for child in node.children])
    return sizes[id(plan)]


def _batch_size(node: Node, below: list[int | None]) -> int | None:
    """Return the batch size of a node's elements, from those of its children."""
    match node:
        case Batch():
            return None if node.parallel else node.batch_size
        case PaddedBatch():
            return node.batch_size
        case Zip() | Concatenate():
            return below[0] if len(set(below)) == 1 else None
        case _ if isinstance(node, _THROUGH):
            return below[0]
        case _:
            return None


def short_batch(plan: Node) -> int | None:
    """Return the number of rows of a short last batch, or None if it is full or unknown."""
    match plan:
        case Batch() | PaddedBatch():
            short = plan.child.size % plan.batch_size if plan.child.size > 0 else 0
            return None if plan.drop_remainder or short == 0 else short
        case Prefetch() | Cache() | WithOptions():
            return short_batch(plan.children[0])
        case _:
            return None


def nominal_sizes(plan: Node, policy: AutoShardPolicy, share: Share) -> tuple[int, ...] | None:
    """Return the sizes of a worker's pieces, in turn, or None if every batch is split separately.

    Batches are split separately unless the sharding policy lets rows flow on from batch to batch.

    Args:
        plan: The user's plan.
        policy: The sharding policy, not AUTO.
        share: The worker.
    """
    size = global_batch_size(plan)
    return None if policy == AutoShardPolicy.DATA or size is None else share.sizes(size)


def row_count(plan: Node) -> int:
    """Return the total number of rows of a plan's batches, or INFINITE or UNKNOWN."""
    match plan:
        case Batch() | PaddedBatch():
            size = plan.child.size
            short = size % plan.batch_size if plan.drop_remainder and size > 0 else 0
            return size - short
        case Prefetch() | Cache() | WithOptions():
            return row_count(plan.child)
        case Repeat():
            return plan.size_of(row_count(plan.child))
        case _:
            return INFINITE if plan.size == INFINITE else UNKNOWN
