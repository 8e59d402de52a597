"""Combines the IndexedSlices of all replicas: their sum is the rows of all, because equal indices add up."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard

from evenfeed.replicas.collectives.all_gather import AllGather
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.collectives.from_first import FromFirst
from evenfeed.replicas.reduce.reduce_op import ReduceOp, VariableAggregation, divided
from evenfeed.replicas.values import DistributedValues
from evenfeed.tensors.indexed_slices import IndexedSlices

# Performs a collective on a replica's arrays, and returns its results.
Perform: TypeAlias = Callable[[Collective, Sequence[Any]], list[Any]]


def is_slices(value: object) -> bool:
    """Return True for IndexedSlices."""
    return isinstance(value, IndexedSlices)


def is_split_slices(value: object) -> TypeGuard[IndexedSlices]:
    """Return True for slices whose tensors have a part for each replica: what `run` makes of those of the replicas."""
    return isinstance(value, IndexedSlices) and isinstance(value.values, DistributedValues)


def part_of_slices(slices: IndexedSlices, replica: int) -> IndexedSlices:
    """Return the slices of one replica."""

    def own(tensor: Any) -> Any:
        return tensor.values[replica] if isinstance(tensor, DistributedValues) else tensor

    return slices.mapped(own)


def reduced_slices(
    perform: Perform, count: int, op: ReduceOp, slices: IndexedSlices
) -> IndexedSlices:
    """Return the sum or mean of the slices of `count` replicas, in the function of one of them."""
    values, indices = perform(AllGather(0), [slices.values, slices.indices])
    return joined_slices(op, values, indices, slices.dense_shape, count)


def joined_slices(
    op: ReduceOp, values: Any, indices: Any, dense_shape: Any, count: int
) -> IndexedSlices:
    """Return slices of the rows of `count` replicas, which are divided by `count` for the mean."""
    rows = divided(values, count) if op is ReduceOp.MEAN else values
    return IndexedSlices(rows, indices, dense_shape)


def aggregated_slices(
    perform: Perform, count: int, aggregation: VariableAggregation, slices: IndexedSlices
) -> IndexedSlices:
    """Return the slices that all replicas apply to their copies of a variable."""
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return IndexedSlices(*perform(FromFirst(), [slices.values, slices.indices]))
    return reduced_slices(perform, count, ReduceOp.from_variable_aggregation(aggregation), slices)
