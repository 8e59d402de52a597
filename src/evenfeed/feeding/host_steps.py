"""The rows of each replica at each step, on the host."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.cardinality import INFINITE
from evenfeed.core.conversion import Array
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.batching import Rebatch
from evenfeed.plan.node import Node
from evenfeed.runtime.elements import ElementIterator

# One part of a step: rows that the replicas share evenly, what each gets, or None.
Column: TypeAlias = "Array | list[Array] | None"


class HostSteps(ABC):
    """Reads the steps of a dataset, one after the other. Its position is that of the next step."""

    @abstractmethod
    def read(self) -> list[Column]:
        """Return the parts of the next step.

        Raises:
            StopIteration: There is none.
        """

    @abstractmethod
    def state(self) -> Any:
        """Return the position."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Take up a position."""

    @abstractmethod
    def close(self) -> None:
        """End the threads below."""


@final
class CutBatches(HostSteps):
    """Cuts each global batch by itself, by ceiling: the last replicas may get less, or nothing."""

    def __init__(self, plan: Node, replicas: int) -> None:
        self._elements = ElementIterator(plan)
        self._replicas = replicas

    def read(self) -> list[Column]:
        """Return the parts of the next batch."""
        parts = flatten(next(self._elements), DATA)
        return [self._column(part) for part in parts]

    def _column(self, part: Array | None) -> Column:
        if part is None or self._replicas == 1:
            return part
        if part.dtype != dtypes.string and len(part) % self._replicas == 0:
            return part
        return cut(part, self._replicas)

    def state(self) -> Any:
        """Return the position in the dataset, which does not depend on the number of replicas."""
        return self._elements.get_state()

    def restore(self, state: Any) -> None:
        """Take up a position."""
        self._elements.set_state(state)

    def close(self) -> None:
        """End the threads below."""
        self._elements.close()


@final
class TakePieces(HostSteps):
    """Takes one element for each replica, of one dataset or of one for each.

    Args:
        plans: One plan, or one for each replica.
        sizes: For each replica whether it gets rows at all.
    """

    def __init__(self, plans: Sequence[Node], sizes: Sequence[int]) -> None:
        self._iterators = [ElementIterator(plan) for plan in plans]
        self._own = len(plans) > 1
        self._sizes = sizes
        self._specs: list[TypeSpec] = flatten(plans[0].element_spec, DATA)
        self._fills = any(not is_static(plan) for plan in plans)
        self._endless = all(plan.size == INFINITE for plan in plans)

    def read(self) -> list[Column]:
        """Return the pieces of the next step; a replica without one gets no rows."""
        rows: list[list[Any] | None] = []
        for replica, size in enumerate(self._sizes):
            iterator = self._iterators[replica if self._own else 0]
            rows.append(None if size == 0 else next_parts(iterator))
        some = sum(row is not None for row in rows)
        if some == 0 or (some < len(rows) and not self._fills and 0 not in self._sizes):
            raise StopIteration
        return [self._column(place, rows) for place in range(len(self._specs))]

    def _column(self, place: int, rows: Sequence[list[Any] | None]) -> Column:
        pieces: list[Any] = [
            _empty(self._specs[place]) if row is None else row[place] for row in rows
        ]
        if len(pieces) == 1:
            return pieces[0]
        return None if pieces[0] is None else pieces

    def state(self) -> Any:
        """Return the positions in the datasets."""
        return [iterator.get_state() for iterator in self._iterators]

    def restore(self, state: Any) -> None:
        """Take up positions."""
        for iterator, each in zip(self._iterators, state, strict=True):
            iterator.set_state(each)

    def close(self) -> None:
        """End the threads below."""
        for iterator in self._iterators:
            iterator.close()


def flowing(plan: Node, sizes: Sequence[int]) -> TakePieces:
    """Read batches whose rows flow on from one to the next, so many for each replica in turn."""
    pieces = Rebatch(plan, tuple(size for size in sizes if size))
    return TakePieces([pieces], sizes)


def next_parts(iterator: ElementIterator) -> list[Any] | None:
    """Return the parts of the next element; None at the end."""
    try:
        return flatten(next(iterator), DATA)
    except StopIteration:
        return None


def cut(batch: Array, count: int) -> list[Array]:
    """Cut a batch into `count` pieces as TensorFlow does: by ceiling, so that the last may be empty."""
    size = -(-len(batch) // count)
    return [batch[i * size : (i + 1) * size] for i in range(count)]


def is_static(plan: Node) -> bool:
    """Tell whether all shapes of a plan's elements are known."""
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    return all(spec.shape.is_fully_defined() for spec in specs)


def _empty(spec: TypeSpec) -> Array | None:
    """Return no rows: dimensions that are not known are 0, and the first one always is."""
    if not isinstance(spec, TensorSpec):
        return None
    lengths = [length or 0 for length in spec.shape.as_list()] if spec.shape.rank else []
    return np.empty((0, *lengths[1:]) if lengths else (), spec.dtype)
