"""Steps of whole elements: each replica takes one at each step."""

from collections.abc import Sequence
from typing import Any, cast, final

from evenfeed.core.conversion import Array
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding.alike_steps import alike_steps, are_even
from evenfeed.feeding.composite_rows import CompositeRowsSpec
from evenfeed.feeding.host_steps import (
    Column,
    HostSteps,
    fill_missing,
    is_static,
    next_parts,
    positions,
)
from evenfeed.plan.node import Node
from evenfeed.runtime.elements import ElementIterator


@final
class TakePieces(HostSteps):
    """Takes one element for each replica, in turn from one dataset, or from one dataset per replica.

    Args:
        plans: One plan, or one for each replica.
        replicas: The number of replicas.
        fills: Whether replicas without an element get zero rows, if the shapes allow it. Otherwise the
            step is dropped.
        others: Whether there are other workers. Then no static shapes are promised, so zero rows are allowed.
    """

    def __init__(
        self, plans: Sequence[Node], replicas: int, *, fills: bool = True, others: bool = False
    ) -> None:
        self._iterators = [ElementIterator(plan, flat=True) for plan in plans]
        self._turns = self._iterators * (replicas // len(plans))
        self._specs: list[TypeSpec] = flatten(plans[0].element_spec, DATA)
        self._fills = fills and (others or not all(map(is_static, plans)))

    def read(self) -> list[Column]:
        rows = [next_parts(iterator) for iterator in self._turns]
        if None in rows and not (self._fills and any(rows)):
            raise StopIteration
        return [self._column(index, rows) for index in range(len(self._specs))]

    def peek(self, most: int) -> list[Array | None] | None:
        if len(self._iterators) > 1:
            return None
        each = len(self._turns)
        columns = alike_steps(self._iterators[0].peek(most * each).columns)
        whole = max(len(c) for c in columns if c is not None) // each * each
        columns = [None if c is None else c[:whole] for c in columns]
        if not whole or not are_even(columns, 1):
            return None
        return [None if c is None else _joined_pieces(cast("Array", c), each) for c in columns]

    def advance(self, count: int) -> None:
        self._iterators[0].advance(count * len(self._turns))

    def _column(self, index: int, rows: Sequence[list[Any] | None]) -> Column:
        spec = self._specs[index]
        if not isinstance(spec, TensorSpec | CompositeRowsSpec):
            return None
        pieces = fill_missing([None if row is None else row[index] for row in rows], spec)
        return pieces[0] if len(pieces) == 1 else pieces

    def iterators(self) -> Sequence[ElementIterator]:
        return self._iterators

    def state(self) -> Any:
        return {"at": [iterator.position() for iterator in self._iterators], "rows": 0}

    def restore(self, state: Any) -> None:
        for iterator, at in zip(
            self._iterators, positions(state, len(self._iterators)), strict=True
        ):
            iterator.set_state(at)

    def close(self) -> None:
        for iterator in self._iterators:
            iterator.close()


def _joined_pieces(pieces: Array, each: int) -> Array:
    """Return a column of pieces as one of steps, each with the rows of `each` pieces."""
    rows = pieces.shape[1] if pieces.ndim > 1 else 1
    return pieces if each == 1 else pieces.reshape(-1, each * rows, *pieces.shape[2:])
