"""Builds the operators of a plan."""

from dataclasses import replace
from typing import Any, final

from evenfeed.core.errors import FailedPreconditionError
from evenfeed.plan.buffering import Cache
from evenfeed.plan.choosing import Random, Sample
from evenfeed.plan.combining import Concatenate
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.mapping import Map
from evenfeed.plan.node import Node
from evenfeed.plan.opening import Opens
from evenfeed.plan.ordering import HintedShard, Repeat, Shuffle
from evenfeed.plan.own_rows import OwnBatches
from evenfeed.plan.saving import Snapshot
from evenfeed.plan.windowing import GroupByWindow
from evenfeed.runtime.cache_files import store_of
from evenfeed.runtime.caching import KeepElements
from evenfeed.runtime.chains import Parts
from evenfeed.runtime.choosing import DrawChoices, DrawNumbers, ReadChosen
from evenfeed.runtime.combining import ReadInTurn
from evenfeed.runtime.elementwise import DrawKeys
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.indexing import indexed
from evenfeed.runtime.inner import InnerDatasets
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.ordering import PlayAgain, ShuffleBuffer
from evenfeed.runtime.orders import first_round
from evenfeed.runtime.own_rows import Owned, StackOwnRows
from evenfeed.runtime.processes import mapped_in_processes
from evenfeed.runtime.rows import Walk
from evenfeed.runtime.run import Drawn, Inner, Opener, Run
from evenfeed.runtime.saving import KeepSnapshot
from evenfeed.runtime.steps import calling_step, plain_step
from evenfeed.runtime.widening import ReadWide
from evenfeed.runtime.windowing import ReadGroups


def build(node: Node, run: Run, epoch: int = 0) -> Operator:
    """Return a fresh operator that makes the elements of `node` from the first one on.

    Args:
        node: What to run.
        run: What is random in this pass.
        epoch: The round of a repetition above; a shuffle has an order of its own in each.
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
            return _drawn(node, run, epoch)
        case GroupByWindow(key=RowFunction() as key):
            (child,) = _begun(node, run, epoch)[1]
            drawn = run.draws_of(id(node))
            return ReadGroups(child, node, key.in_pass(run), _opener(node, run, epoch), drawn)
        case Map(processes=True, function=RowFunction() as function):
            return mapped_in_processes(_begun(node, run, epoch)[1][0], function, node, run)
        case _:
            same, children = _begun(node, run, epoch)
            opens = _opener(node, run, epoch) if isinstance(node, Opens) else None
            return calling_step(same, children, opens, run) or plain_step(same, children)


def _begun(node: Node, run: Run, epoch: int) -> tuple[Node, list[Operator]]:
    """Return a node and the operators of its children.

    The node's functions are those of this pass. Where a child was begun to learn what a function returns, it
    goes on, and the function knows what it returned then.
    """
    functions = {
        name: part
        for name, part in vars(node).items()
        if isinstance(part, RowFunction | InnerDatasets)
    }
    begun: Operator | None = None
    for name, function in functions.items():
        first = function.first_elements
        if begun is None and first is not None:
            begun = first.take(node.children[0], run, epoch)
        functions[name] = (function.recalling() if begun else function).in_pass(run)
    children = [begun] if begun else [build(c, own, epoch) for c, own in run.children_of(node)]
    return replace(node, **functions) if functions else node, children


def _opener(node: Opens, run: Run, epoch: int) -> Opener:
    """Return what opens the datasets that a node reads in a round."""
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
    if run.is_ahead:  # only to learn what a function makes of an element
        return build(node.child, run, epoch)
    raise FailedPreconditionError(
        "shard(SHARD_HINT, SHARD_HINT) stands for the shard of a worker, but no worker was put there.",
        fix="distribute the dataset, with auto_shard_policy = AutoShardPolicy.HINT in its options.",
        origin=node.origin,
    )


def _own_batches(node: OwnBatches, run: Run, epoch: int) -> Operator:
    found = indexed(node.rows, run, epoch)
    size = found[1].whole if found is not None and isinstance(found[1], Owned) else None
    return StackOwnRows(build(node.child, run, epoch), node, size)


@final
class _Below:
    """What is below a cache, in one round of a repetition above it."""

    def __init__(self, node: Cache, run: Run, epoch: int) -> None:
        self.size = node.child.size
        self._epoch = epoch
        self._node = node
        self._run = run
        # Decided before anything is read: as in TensorFlow, and whatever is completed meanwhile.
        self._keeping = run.keeping(node, epoch)

    def kept(self) -> Any:
        """Return which kept pass is read in this round."""
        return self._keeping.kept(self._epoch)

    def origin(self) -> Any:
        """Return which pass over what is below this round has."""
        return self._run.below(self._node, self._epoch)

    def start(self, origin: Any) -> Operator:
        """Return the operator of a pass."""
        state, epoch = origin
        return build(self._node.child, self._run.begun(self._node.child, state), epoch)

    def complete(self, origin: Any) -> None:
        """Take note that a pass was read to its end."""
        self._run.complete(self._node, origin)


def _drawn(node: Drawn, run: Run, epoch: int) -> Operator:
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
            raise TypeError(f"nothing is drawn by {type(node).__name__}")
