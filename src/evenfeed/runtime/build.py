"""Builds the operators of a plan."""

from dataclasses import replace
from typing import Any

from evenfeed.core.errors import FailedPreconditionError
from evenfeed.plan.buffering import Cache
from evenfeed.plan.choosing import Random, Sample
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.mapping import Map
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import HintedShard, Repeat, Shuffle
from evenfeed.plan.own_rows import OwnBatches
from evenfeed.plan.saving import Snapshot
from evenfeed.plan.windowing import GroupByWindow
from evenfeed.runtime.cache_files import InFiles
from evenfeed.runtime.caching import InMemory, KeepElements
from evenfeed.runtime.choosing import DrawChoices, DrawNumbers, ReadChosen
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
from evenfeed.runtime.run import Build, Drawn, Run
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
            return _cached(node, run)
        case HintedShard():
            return _hinted(node, run, epoch)
        case OwnBatches():
            return _own_batches(node, run, epoch)
        case Snapshot():
            return KeepSnapshot(node, _inside(run))
        case Shuffle() | Random() | Sample() | WithKeys():
            return _drawn(node, run, epoch)
        case GroupByWindow(key=RowFunction() as key):
            (child,) = _begun(node, run, epoch)[1]
            drawn = run.draws_of(id(node))
            return ReadGroups(child, node, key.in_pass(run), _inside(run), drawn)
        case Map(processes=True, function=RowFunction() as function):
            return mapped_in_processes(_begun(node, run, epoch)[1][0], function, node, run)
        case _:
            same, children = _begun(node, run, epoch)
            return calling_step(same, children, _inside(run), run) or plain_step(same, children)


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
    children = [begun] if begun else [build(child, run, epoch) for child in node.children]
    return replace(node, **functions) if functions else node, children


def _repeated(node: Repeat, run: Run, epoch: int) -> Operator:
    first = first_round(epoch, node.count)
    return PlayAgain(lambda number: build(node.child, run, first + number), node.count)


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


def _inside(run: Run) -> Build:
    """Return what builds the datasets that functions make during a pass."""
    return lambda plan, inner: build(plan, inner.inside(run))


def _cached(node: Cache, run: Run) -> Operator:
    def start(origin: Any) -> tuple[Operator, Any]:
        inner = Run(node.child).inside(run)  # what is random in the pass that fills the cache
        if origin is not None:
            inner.restore(origin)
        return build(node.child, inner), inner.state()

    store = InFiles(node) if node.filename else InMemory(node.memory)
    return KeepElements(start, store, node.child.size)


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
            given = build(weights, run, epoch) if isinstance(weights, Node) else weights
            parts = [build(part, run, epoch) for part in node.parts]
            return ReadChosen(parts, DrawChoices(given, seed), node)
