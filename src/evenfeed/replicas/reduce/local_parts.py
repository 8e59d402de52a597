"""`Strategy.experimental_local_results`: the parts of a value or structure on this worker."""

from collections.abc import Callable
from typing import Any

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import NEST, flatten, map_structure, opened
from evenfeed.replicas.reduce.reduced_slices import is_split_slices, part_of_slices
from evenfeed.replicas.values import DistributedValues
from evenfeed.replicas.variables.variable import Variable


def local_parts(value: object, count: int) -> tuple[Any, ...]:
    """Return the parts of a value or structure for each of `count` replicas. A value without parts is one part."""
    if isinstance(value, (DistributedValues, Variable)):
        return value.values
    if opened(value, NEST) is None and not is_split_slices(value):
        return (value,)
    for leaf in flatten(value, NEST):
        _check_parts(leaf, count)
    return tuple(map_structure(_part_of(i), value, rules=NEST) for i in range(count))


def _check_parts(leaf: object, replicas: int) -> None:
    if isinstance(leaf, DistributedValues) and leaf.part_count != replicas:
        raise InvalidArgumentError(
            f"A value in the structure has {leaf.part_count} parts, but this strategy has {replicas} "
            f"{'replica' if replicas == 1 else 'replicas'}.",
            fix="use the strategy that made the value, or pass the value itself instead of a structure.",
        )


def _part_of(replica: int) -> Callable[[object], Any]:
    def part(leaf: object) -> Any:
        if isinstance(leaf, DistributedValues) or (
            isinstance(leaf, Variable) and len(leaf.values) > 1
        ):
            return leaf.values[replica]
        return part_of_slices(leaf, replica) if is_split_slices(leaf) else leaf

    return part
