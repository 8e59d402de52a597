"""Builds the operators that run a plan: one per node, or one walk over rows where elements have positions.

`make_room` raises Python's recursion limit for deep plans.
"""

import sys
from dataclasses import replace
from typing import Any, Final, final

from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError
from evenfeed.plan.batching import PaddedBatch, Rebatch, Unbatch
from evenfeed.plan.buffering import Cache, Prefetch, Snapshot
from evenfeed.plan.checking import AssertCardinality, IgnoreErrors, Unique
from evenfeed.plan.combining import Choose, Concatenate, Counter, Random, Sample, Zip
from evenfeed.plan.elementwise import Enumerate, Filter, Map, Scan, TakeWhile, WithKeys
from evenfeed.plan.files import Files
from evenfeed.plan.flattening import FlatMap, GroupByWindow, Interleave, Opens
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.options import WithOptions
from evenfeed.plan.ordering import HintedShard, Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.own_rows import OwnBatches, OwnRows
from evenfeed.plan.sources import FromGenerator
from evenfeed.plan.windows import Window
from evenfeed.runtime.caches.cache import KeepElements
from evenfeed.runtime.caches.cache_files import store_of
from evenfeed.runtime.caches.saving import KeepSnapshot
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.operators.batching import PadBatches, RecutBatches, SplitBatches
from evenfeed.runtime.operators.buffering import ReadAhead
from evenfeed.runtime.operators.checking import CountPromised, DropFailed, DropSeen
from evenfeed.runtime.operators.combining import (
    CountOn,
    DrawChoices,
    DrawNumbers,
    Parts,
    ReadChosen,
    ReadInTurn,
    ReadTogether,
)
from evenfeed.runtime.operators.elementwise import (
    CarryState,
    CountElements,
    DrawKeys,
    KeepSome,
    StopAtFalse,
    mapped,
)
from evenfeed.runtime.operators.files import ReadFiles
from evenfeed.runtime.operators.flattening import ReadGroups, ReadInner, ReadInnersInTurn, starter
from evenfeed.runtime.operators.grouping import StackBatches
from evenfeed.runtime.operators.ordering import PlayAgain, ShuffleBuffer, TakeEvery, TakeSome
from evenfeed.runtime.operators.sources import PullElements
from evenfeed.runtime.operators.windows import CutWindows
from evenfeed.runtime.positions.indexing import indexed
from evenfeed.runtime.positions.orders import first_round
from evenfeed.runtime.positions.own_rows import Owned, ReadOwnRows, StackOwnRows
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.processes.process_map import mapped_in_processes
from evenfeed.runtime.read_size import ReadWide, widened
from evenfeed.runtime.run import Inner, Opener, RandomNode, Run

# The most Python frames between an operator and its child, and the frames left for the rest of the program.
_FRAMES: Final = 16
_FREE: Final = 1000

# A deeper plan might overflow the C stack, which would kill the process.
_DEEPEST: Final = 2000


def make_room(plan: Node) -> None:
    """Raise Python's recursion limit as far as a deep plan needs it.

    Raises:
        InvalidArgumentError: The plan is too deep to be read.
    """
    if plan.depth > _DEEPEST:
        raise InvalidArgumentError(
            f"The dataset has a chain of {plan.depth} steps, but at most {_DEEPEST} are supported.",
            fix="if a loop adds these steps, do its work in one step.",
            origin=plan.origin,
        )
    needed = _FREE + _FRAMES * plan.depth
    if plan.depth > _FREE // _FRAMES and sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)


def calling_step(
    node: Node, children: list[Operator], opens: Opener | None, run: Run
) -> Operator | None:
    """Return the operator of a node that calls a user function; None for other nodes.

    Args:
        node: The node, with its functions as they are in this pass.
        children: The operators that it reads.
        opens: Opens the datasets that its function returns, if it returns datasets.
        run: The random state of this pass.
    """
    match node:
        case Map(function=RowFunction() as function):
            return widened(mapped(children[0], function, node, run), children[0], function)
        case Filter(predicate=RowFunction() as predicate):
            return widened(KeepSome(children[0], predicate), children[0], predicate)
        case TakeWhile(predicate=RowFunction() as predicate):
            return StopAtFalse(children[0], predicate)
        case Scan(function=RowFunction() as function):
            return CarryState(children[0], node, function)
        case FlatMap(function=InnerDatasets() as function) if opens is not None:
            return ReadInner(children[0], starter(function.make, opens), node.element_spec)
        case Interleave(function=InnerDatasets() as function) if opens is not None:
            start = starter(function.make, opens)
            return ReadInnersInTurn(
                children[0], start, node.element_spec, node.cycle_length, node.block_length
            )
        case _:
            return None


def plain_step(node: Node, children: list[Operator]) -> Operator:  # noqa: PLR0912 - one case per node
    """Return the operator of a node that calls no function."""
    match node:
        case FromGenerator():
            return PullElements(node)
        case Files():
            return ReadFiles(node.files)
        case Counter():
            return CountOn(node)
        case Batch():
            return StackBatches(children[0], node)
        case PaddedBatch():
            return PadBatches(children[0], node)
        case Unbatch():
            return SplitBatches(children[0], node)
        case Rebatch():
            return RecutBatches(SplitBatches(children[0], node), node)
        case Window():
            return CutWindows(children[0], node)
        case Take():
            return TakeSome(children[0], 0, node.count if node.count >= 0 else None)
        case Skip():
            return TakeSome(children[0], max(0, node.count), 0 if node.count < 0 else None)
        case Shard():
            return TakeEvery(children[0], node.num_shards, node.index)
        case OwnRows():
            return ReadOwnRows(children[0], node)
        case Enumerate():
            return CountElements(children[0], node.start)
        case Zip():
            return ReadTogether(children)
        case Choose():
            return ReadChosen(children[:-1], children[-1], node)
        case Prefetch():
            return ReadAhead(children[0], node.buffer_size) if node.buffer_size else children[0]
        case Unique():
            return DropSeen(children[0])
        case IgnoreErrors():
            return DropFailed(children[0], node)
        case AssertCardinality():
            return CountPromised(children[0], node)
        case WithOptions():
            return children[0]
        case _:
            raise TypeError(f"no operator runs {type(node).__name__}")


def build(node: Node, run: Run, epoch: int = 0) -> Operator:
    """Return a new operator that reads the elements of `node` from the start.

    Args:
        node: The plan to run.
        run: The random state of this pass.
        epoch: The round of a repeat above; a shuffle has a different order in each.
    """
    found = indexed(node, run, epoch)
    if found is not None:
        walk = Walk(*found)
        return ReadWide(walk) if any(isinstance(part, Map) for part in node.walk()) else walk
    match node:
        case Repeat():
            return _repeated(node, run, epoch)
        case Cache():
            return KeepElements(_Below(node, run, epoch), store_of(node))
        case Concatenate():
            return _in_turn(node, run, epoch)
        case HintedShard():
            return _hinted(node, run, epoch)
        case OwnBatches():
            return _own_batches(node, run, epoch)
        case Snapshot():
            return KeepSnapshot(node, run, epoch, build)
        case Shuffle() | Random() | Sample() | WithKeys():
            return _random_step(node, run, epoch)
        case GroupByWindow(key=RowFunction() as key):
            (child,) = _with_children(node, run, epoch)[1]
            drawn = run.draws_of(id(node))
            return ReadGroups(child, node, key.in_pass(run), _opener(node, run, epoch), drawn)
        case Map(processes=True, function=RowFunction() as function):
            return mapped_in_processes(_with_children(node, run, epoch)[1][0], function, node, run)
        case _:
            same, children = _with_children(node, run, epoch)
            opens = _opener(node, run, epoch) if isinstance(node, Opens) else None
            return calling_step(same, children, opens, run) or plain_step(same, children)


def _with_children(node: Node, run: Run, epoch: int) -> tuple[Node, list[Operator]]:
    """Return a node with its functions as they are in this pass, and the operators of its children.

    If a child was started early to learn what a function returns, its operator is continued, and the function
    remembers what it returned for those elements.
    """
    functions = {
        name: part
        for name, part in vars(node).items()
        if isinstance(part, RowFunction | InnerDatasets)
    }
    early: Operator | None = None
    for name, function in functions.items():
        first = function.first_elements
        if early is None and first is not None:
            early = first.take(node.children[0], run, epoch)
        functions[name] = (function.recalling() if early else function).in_pass(run)
    children = [early] if early else [build(c, own, epoch) for c, own in run.children_of(node)]
    return replace(node, **functions) if functions else node, children


def _opener(node: Opens, run: Run, epoch: int) -> Opener:
    """Return a function that opens the datasets that a node reads in a round."""
    return lambda number, make: Inner(*run.opened(node, epoch, number, make), build)


def _repeated(node: Repeat, run: Run, epoch: int) -> Operator:
    first = first_round(epoch, node.count)
    return PlayAgain(lambda number: build(node.child, run, first + number), node.count)


def _in_turn(node: Concatenate, run: Run, epoch: int) -> Operator:
    parts = Parts(node, run)

    def start(number: int) -> Operator | None:
        found = parts.at(number)
        return None if found is None else build(*found, epoch)

    return ReadInTurn(start)


def _hinted(node: HintedShard, run: Run, epoch: int) -> Operator:
    if run.is_ahead:  # only to learn what a function returns for an element
        return build(node.child, run, epoch)
    raise FailedPreconditionError(
        "shard(SHARD_HINT, SHARD_HINT) is a placeholder for a worker's shard, but the dataset was not distributed.",
        fix="distribute the dataset with auto_shard_policy = AutoShardPolicy.HINT in its options.",
        origin=node.origin,
    )


def _own_batches(node: OwnBatches, run: Run, epoch: int) -> Operator:
    found = indexed(node.rows, run, epoch)
    size = found[1].whole if found is not None and isinstance(found[1], Owned) else None
    return StackOwnRows(build(node.child, run, epoch), node, size)


@final
class _Below:
    """The plan below a cache, in one round of a repeat above it."""

    def __init__(self, node: Cache, run: Run, epoch: int) -> None:
        self.size = node.child.size
        self._epoch = epoch
        self._node = node
        self._run = run
        # Decided before anything is read, as in TensorFlow; passes completed later do not change it.
        self._keeping = run.keeping(node, epoch)

    def kept(self) -> Any:
        """Return the pass that is read from the cache in this round."""
        return self._keeping.kept(self._epoch)

    def origin(self) -> Any:
        """Return the pass over the plan below that this round reads."""
        return self._run.below(self._node, self._epoch)

    def start(self, origin: Any) -> Operator:
        """Return the operator of a pass."""
        state, epoch = origin
        return build(self._node.child, self._run.begun(self._node.child, state), epoch)

    def complete(self, origin: Any) -> None:
        """Record that a pass was read to its end."""
        self._run.complete(self._node, origin)


def _random_step(node: RandomNode, run: Run, epoch: int) -> Operator:
    seed = run.seed_of_round(node, epoch)
    match node:
        case Shuffle():
            child = build(node.child, run, epoch)
            return ShuffleBuffer(child, max(0, node.buffer_size) or None, seed)
        case Random():
            return DrawNumbers(seed)
        case WithKeys():
            return DrawKeys(build(node.child, run, epoch), seed)
        case Sample(weights=weights):
            children = [build(child, own, epoch) for child, own in run.children_of(node)]
            parts = children[: len(node.parts)]
            given = children[-1] if isinstance(weights, Node) else weights
            return ReadChosen(parts, DrawChoices(given, seed), node)
        case _:
            raise TypeError(f"{type(node).__name__} is not random")
