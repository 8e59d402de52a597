"""Sharding by row: each worker reads its rows of every global batch, and computes as few others as possible."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, final

from evenfeed.core.batch_split import Share
from evenfeed.core.specs import UNKNOWN
from evenfeed.plan.buffering import Cache, Prefetch
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Map
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Identity, Node, once_for_each
from evenfeed.plan.options import WithOptions
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.own_rows import OwnBatches, OwnRows, gives_all_some
from evenfeed.runtime.positions.indexing import indexed
from evenfeed.runtime.run import Run, next_pass

# A plan of a worker's rows, and the node whose rows every worker computes before selecting its own; None if none.
Selection: TypeAlias = tuple[Node, Node | None]

# Nodes that select elements only by position, whatever their values.
_BY_POSITION: Final = (Repeat, Shard, Shuffle, Skip, Take)


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


def pushed(plan: Node, share: Share) -> RowSelection:
    """Push the selection of a worker's rows down the plan."""
    return once_for_each(partial(_pushed, share))(plan)


def _pushed(share: Share, plan: Node, push: Callable[[Node], RowSelection]) -> RowSelection:
    match plan:
        case Batch() if gives_all_some(share, plan.batch_size):
            return _below_batch(plan, share)
        case Prefetch() | WithOptions() | Repeat() | Shard() | Shuffle() | Skip() | Take():
            return _above(push(plan.child), lambda child: replace(plan, child=child))
        case Cache(filename=""):
            made = partial(replace, plan, identity=Identity())
            return _above(push(plan.child), lambda child: made(child=child))
        case Concatenate():
            return _chained(plan, push(plan.first), push(plan.second))
        case _:
            return RowSelection(None, plan)


def _above(below: RowSelection, make: Callable[[Node], Node]) -> RowSelection:
    return below if below.plan is None else replace(below, plan=make(below.plan))


def _chained(plan: Concatenate, first: RowSelection, second: RowSelection) -> RowSelection:
    for part in (first, second):
        if part.plan is None:
            return part
    assert first.plan is not None
    assert second.plan is not None
    both = replace(plan, first=first.plan, second=second.plan)
    return RowSelection(both, first.stops or second.stops)


def _below_batch(plan: Batch, share: Share) -> RowSelection:
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
    if is_addressed(own(node)):
        return own(node), None
    match node:
        case Map() | WithOptions() | Prefetch():
            rows, stops = select(node.child)
            return replace(node, child=rows), stops
        case Cache(filename=""):
            rows, stops = select(node.child)
            # Otherwise its rows would be selected below the cache, and so only in the first pass.
            if stops is None:
                return replace(node, child=rows, identity=Identity()), None
        case Zip() if len({part.size for part in node.parts}) == 1 and node.size != UNKNOWN:
            found = [select(part) for part in node.parts]
            if all(stops is None for _, stops in found):
                return replace(node, parts=tuple(rows for rows, _ in found)), None
        case _:
            lifted = _lifted(node)
            if isinstance(lifted, Map):
                return select(lifted)
    return own(node), node


def _lifted(node: Node) -> Node:
    """Shuffle(Map(x, f)) → Map(Shuffle(x), f), for all nodes that select by position: map only selected rows."""
    if isinstance(node, _BY_POSITION):
        below = _lifted(node.child)
        if isinstance(below, Map):
            return replace(below, child=_lifted(replace(node, child=below.child)))
    return node


def is_addressed(node: Node) -> bool:
    """Return True if rows can be read by position, without computing other rows."""
    return indexed(node, Run(node, next_pass)) is not None
