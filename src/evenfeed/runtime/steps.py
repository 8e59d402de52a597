"""The operator of each node that reads its children one element after another."""

from evenfeed.plan.batching import PaddedBatch, Rebatch, Unbatch
from evenfeed.plan.buffering import Prefetch
from evenfeed.plan.checking import AssertCardinality, IgnoreErrors, Unique
from evenfeed.plan.choosing import Choose, Counter
from evenfeed.plan.combining import Zip
from evenfeed.plan.elementwise import Enumerate
from evenfeed.plan.files import Files
from evenfeed.plan.filtering import Filter, TakeWhile
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.generating import FromGenerator
from evenfeed.plan.grouping import Batch
from evenfeed.plan.mapping import Map
from evenfeed.plan.node import Node
from evenfeed.plan.options_node import WithOptions
from evenfeed.plan.ordering import Shard, Skip, Take
from evenfeed.plan.own_rows import OwnRows
from evenfeed.plan.scanning import Scan
from evenfeed.plan.windows import Window
from evenfeed.runtime.batching import CutBatches, PadBatches, SplitBatches
from evenfeed.runtime.buffering import ReadAhead
from evenfeed.runtime.checking import CountPromised, DropFailed, DropSeen
from evenfeed.runtime.choosing import CountOn, ReadChosen
from evenfeed.runtime.combining import ReadTogether
from evenfeed.runtime.elementwise import CountElements
from evenfeed.runtime.files import ReadFiles
from evenfeed.runtime.filtering import KeepSome, StopAtFalse
from evenfeed.runtime.flattening import ReadInner, ReadInnersInTurn, starter
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.generating import PullElements
from evenfeed.runtime.grouping import StackBatches
from evenfeed.runtime.inner import InnerDatasets
from evenfeed.runtime.mapping import mapped
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.ordering import TakeEvery, TakeSome
from evenfeed.runtime.own_rows import ReadOwnRows
from evenfeed.runtime.run import Opener, Run
from evenfeed.runtime.scanning import CarryState
from evenfeed.runtime.widening import widened
from evenfeed.runtime.windows import CutWindows


def calling_step(
    node: Node, children: list[Operator], opens: Opener | None, run: Run
) -> Operator | None:
    """Return the operator of a node that calls a user's function; None for the others.

    Args:
        node: The node, with its functions as they are in this pass.
        children: What it reads.
        opens: Opens the datasets that its function makes, where it makes any.
        run: What is random in this pass.
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


def plain_step(node: Node, children: list[Operator]) -> Operator:  # noqa: PLR0912 - one case a node
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
            return CutBatches(SplitBatches(children[0], node), node)
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
