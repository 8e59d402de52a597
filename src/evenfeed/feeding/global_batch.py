"""How many rows a global batch has, and how a plan's batches are cut."""

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

# What leaves batches as they are.
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
    """Return how many rows the batches of a plan nominally have; None where TensorFlow cannot tell either.

    A first dimension that is known in all parts says it. Else the last batch in the plan does, seen through
    what leaves batches as they are.
    """
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    lengths = {spec.shape[0] if spec.shape.rank else None for spec in specs}
    if lengths and None not in lengths:
        return lengths.pop() if len(lengths) == 1 else None
    written: dict[int, int | None] = {}
    for node in plan.bottom_up():
        written[id(node)] = _written(node, [written[id(child)] for child in node.children])
    return written[id(plan)]


def _written(node: Node, below: list[int | None]) -> int | None:
    """Return the batch size that was asked for in a node, given those of its children."""
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
    """Return how many rows a short last batch has; None where there is none, or nobody knows."""
    match plan:
        case Batch() | PaddedBatch():
            short = plan.child.size % plan.batch_size if plan.child.size > 0 else 0
            return None if plan.drop_remainder or short == 0 else short
        case Prefetch() | Cache() | WithOptions():
            return short_batch(plan.children[0])
        case _:
            return None


def nominal_sizes(plan: Node, policy: AutoShardPolicy, share: Share) -> tuple[int, ...] | None:
    """Return how many rows the pieces of a worker have in turn; None where every batch is cut by itself.

    Batches are cut by themselves unless a sharding policy says that the rows flow on from one batch to
    the next.

    Args:
        plan: The user's.
        policy: How the data is shared out, not AUTO.
        share: Which worker.
    """
    size = global_batch_size(plan)
    return None if policy == AutoShardPolicy.DATA or size is None else share.sizes(size)


def row_count(plan: Node) -> int:
    """Return how many rows all batches of a plan have together, or INFINITE or UNKNOWN."""
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
