"""Sharding by row: each worker reads its rows of every global batch, and computes as few others as possible."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, final

from evenfeed.core.batch_split import RowSplit
from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.specs import UNKNOWN
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.addressing import why_not_addressable
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node, once_for_each, with_children, with_own_children
from evenfeed.plan.own_rows import OwnBatches, OwnRows

# A plan of a worker's rows, and the node whose rows every worker computes before selecting its own; None if none.
Selection: TypeAlias = tuple[Node, Node | None]


@final
@dataclass(frozen=True)
class RowSelection:
    """A plan in which a worker's rows are selected as early as possible.

    Attributes:
        plan: The plan, which yields the elements of `OwnBatches`; None if each worker must compute whole batches.
        stops: The node up to which every worker computes all rows; None if there is none.
    """

    plan: Node | None
    stops: Node | None = None


def pushed(plan: Node, share: RowSplit) -> RowSelection:
    """Push the selection of a worker's rows down the plan."""
    return once_for_each(partial(_pushed, share))(plan)


def _pushed(share: RowSplit, plan: Node, push: Callable[[Node], RowSelection]) -> RowSelection:
    if isinstance(plan, Batch) and share.gives_all_some(plan.batch_size):
        # Ragged and sparse rows are cut from the batch of all workers.
        return _below_batch(plan, share) if _has_tensors_only(plan) else RowSelection(None, plan)
    facts = plan.facts
    if not (facts.by_position or facts.same_elements) or facts.writes_files:
        return RowSelection(None, plan)
    parts = [push(child) for child in plan.children]
    plans = [part.plan for part in parts if part.plan is not None]
    if len(plans) < len(parts):
        return next(part for part in parts if part.plan is None)
    stops = next((part.stops for part in parts if part.stops is not None), None)
    return RowSelection(with_own_children(plan, tuple(plans)), stops)


def _has_tensors_only(plan: Node) -> bool:
    """Return True if no part of an element is a ragged or sparse tensor."""
    return not any(isinstance(spec, BatchableSpec) for spec in flatten(plan.element_spec, DATA))


def _below_batch(plan: Batch, share: RowSplit) -> RowSelection:
    def own(node: Node) -> OwnRows:
        return OwnRows(
            node,
            plan.batch_size,
            share,
            drop_remainder=plan.drop_remainder,
            origin=node.origin,
        )

    rows, stops = once_for_each(partial(_selected, own))(plan.child)
    return RowSelection(OwnBatches(rows, origin=plan.origin), stops)


def _selected(
    own: Callable[[Node], OwnRows], node: Node, select: Callable[[Node], Selection]
) -> Selection:
    """Return a plan of the worker's rows, and the node up to which every worker computes all rows."""
    if why_not_addressable(own(node)) is None:
        return own(node), None
    if _has_own_rows(node):
        found = [select(child) for child in node.children]
        stops = next((stops for _, stops in found if stops is not None), None)
        # A stored pass must not hold rows of other workers. Several children must all yield this worker's rows.
        if stops is None or (len(found) == 1 and not node.facts.keeps_passes):
            return with_own_children(node, tuple(rows for rows, _ in found)), stops
    elif (above := lifted(node)) is not node:
        return select(above)
    return own(node), node


def _has_own_rows(node: Node) -> bool:
    """Return True if each row of a node is made of the same row of its children, and of nothing else."""
    facts, sizes = node.facts, {child.size for child in node.children}
    alike = len(node.children) == 1 or (len(sizes) == 1 and node.size != UNKNOWN)
    return facts.elementwise and alike and not facts.writes_files


def lifted(node: Node) -> Node:
    """Shuffle(Map(x, f)) → Map(Shuffle(x), f), for all nodes that select by position: map only selected rows."""
    if node.facts.by_position and len(node.children) == 1:
        below = lifted(node.children[0])
        computes = below.facts.elementwise and not below.facts.same_elements
        if computes and len(below.children) == 1:
            return with_children(below, (lifted(with_children(node, below.children)),))
    return node
