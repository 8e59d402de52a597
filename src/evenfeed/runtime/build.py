"""Builds the operators of a plan."""

from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.runtime.grouping import StackBatches
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.ordering import PlayAgain
from evenfeed.runtime.sources import CountRange, SliceArrays


def build(node: Node) -> Operator:
    """Return a fresh operator that makes the elements of `node` from the first one on."""
    match node:
        case Range():
            return CountRange(node)
        case Tensor():
            return SliceArrays([None if a is None else a[None] for a in node.arrays], 1)
        case TensorSlice():
            return SliceArrays(node.arrays, node.size)
        case Repeat():
            return PlayAgain(lambda: build(node.child), node.count)
        case Batch():
            return StackBatches(build(node.child), node)
        case _:
            raise TypeError(f"no operator runs {type(node).__name__}")
