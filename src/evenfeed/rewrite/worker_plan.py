"""Shards a plan for one worker, by the dataset's auto-shard policy."""

from dataclasses import dataclass, replace
from typing import final

from evenfeed.core.batch_split import RowSplit, Share
from evenfeed.core.errors import InvalidArgumentError, NotFoundError
from evenfeed.core.lazy import logging
from evenfeed.plan.addressing import why_not_addressable
from evenfeed.plan.files import reads_files
from evenfeed.plan.node import Node, rebuilt
from evenfeed.plan.options import AutoShardPolicy, options_of
from evenfeed.plan.ordering import HintedShard, Shard
from evenfeed.rewrite.by_file import by_file
from evenfeed.rewrite.by_row import pushed
from evenfeed.rewrite.in_lanes import Lane, in_lanes


@final
@dataclass(frozen=True)
class Sharded:
    """The plan of one worker.

    Attributes:
        plan: The plan that the worker runs.
        policy: How the data is sharded: FILE, DATA, OFF, HINT or LANES.
        in_parts: True if the plan yields the worker's parts of batches (`OwnBatches`); False if it yields
            whole batches.
        is_whole: True if each of these parts is a whole batch, of which the worker gets some rows.
        notes: Messages for the user.
        lanes: With LANES, the lanes of all workers. The plan is that of the worker's first lane.
    """

    plan: Node
    policy: AutoShardPolicy
    in_parts: bool = False
    is_whole: bool = False
    notes: tuple[str, ...] = ()
    lanes: tuple[Lane, ...] = ()


def own_lanes(lanes: int, share: Share) -> range:
    """Return the indices of the lanes that a worker reads."""
    each = lanes // share.workers
    return range(share.worker * each, (share.worker + 1) * each)


def lanes_of_workers(lanes: int, share: Share) -> tuple[tuple[int, ...], ...]:
    """Return the lanes that each worker reads; none without lanes."""
    every = range(share.workers) if lanes else ()
    return tuple(tuple(own_lanes(lanes, share._replace(worker=worker))) for worker in every)


def in_all_lanes(plan: Node) -> Sharded:
    """Return the lanes of a plan, for processes that may share some of them.

    Raises:
        InvalidArgumentError: The dataset cannot be read in lanes.
    """
    lanes = in_lanes(plan, options_of(plan).experimental_distribute, Share())
    return Sharded(lanes[0].plan, AutoShardPolicy.LANES, lanes=lanes)


def sharded(plan: Node, share: Share) -> Sharded:
    """Return the plan that a worker runs.

    Raises:
        NotFoundError: The policy is FILE, but rows do not come from files.
        InvalidArgumentError: The policy is FILE, but there are fewer files than workers; or it is LANES, and the
            dataset cannot be read in lanes.
    """
    options = options_of(plan).experimental_distribute
    policy = options.auto_shard_policy or AutoShardPolicy.AUTO
    match policy:
        case AutoShardPolicy.LANES:
            lanes = in_lanes(plan, options, share)
            first = lanes[own_lanes(len(lanes), share)[0]]
            return Sharded(first.plan, policy, lanes=lanes)
        case AutoShardPolicy.AUTO:
            return _automatic(plan, share)
        case AutoShardPolicy.FILE if share.workers > 1:
            return Sharded(by_file(plan, share), policy)
        case AutoShardPolicy.DATA:
            return sharded_by_row(plan, share)
        case AutoShardPolicy.HINT:
            return Sharded(_hinted(plan, share), policy)
        case _:
            return Sharded(plan, policy)


def _automatic(plan: Node, share: Share) -> Sharded:
    if share.workers == 1:
        files = reads_files(plan)
        return Sharded(plan, AutoShardPolicy.FILE if files else AutoShardPolicy.DATA)
    try:
        return Sharded(by_file(plan, share), AutoShardPolicy.FILE)
    except NotFoundError:
        return _by_row(plan, share)
    except InvalidArgumentError as error:
        note = f"sharding by row, not by file: {error.message}"
    found = _by_row(plan, share)
    _logger().info("%s", note)
    return replace(found, notes=(note, *found.notes))


def sharded_by_row(plan: Node, share: RowSplit) -> Sharded:
    """Return the plan that a worker runs if each reads its rows of every batch."""
    return _by_row(plan, share) if share.workers > 1 else _as_by_row(plan, share)


def _as_by_row(plan: Node, share: RowSplit) -> Sharded:
    """Return the plan of a single worker, whose positions suit any number of workers."""
    if why_not_addressable(plan) is None:  # a position is the number of the batch
        return Sharded(plan, AutoShardPolicy.DATA)
    return whole_batches(plan, share)


def whole_batches(plan: Node, share: RowSplit) -> Sharded:
    """Return a plan whose positions are those of sharding by row, if each worker computes whole batches."""
    found = pushed(plan, Share(replicas=share.replicas))
    if found.plan is None:
        return Sharded(plan, AutoShardPolicy.DATA)
    return Sharded(found.plan, AutoShardPolicy.DATA, in_parts=True, is_whole=True)


def _by_row(plan: Node, share: RowSplit) -> Sharded:
    found = pushed(plan, share)
    notes: tuple[str, ...] = ()
    if found.stops is not None:
        where = "" if found.stops.origin is None else f" at {found.stops.origin}"
        notes = (
            f"every worker computes all rows up to {type(found.stops).__name__.lower()}{where}, "
            "and drops those of other workers",
        )
        _logger().warning("%s", notes[0])
    if found.plan is None:
        return replace(whole_batches(plan, share), notes=notes)
    return Sharded(found.plan, AutoShardPolicy.DATA, in_parts=True, notes=notes)


def _hinted(plan: Node, share: Share) -> Node:
    """Replace each HintedShard with the worker's Shard."""

    def filled(node: Node) -> Node:
        if not isinstance(node, HintedShard):
            return node
        return Shard(node.child, share.workers, share.worker, origin=node.origin)

    return rebuilt(plan, filled)


def _logger() -> "logging.Logger":
    return logging.getLogger("evenfeed")
