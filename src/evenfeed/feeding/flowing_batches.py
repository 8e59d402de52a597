"""Steps whose rows flow on from one global batch to the next."""

from collections.abc import Sequence
from typing import Any, cast, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding import composite_rows
from evenfeed.feeding.alike_steps import alike_steps, are_even
from evenfeed.feeding.composite_rows import CompositeRowsSpec
from evenfeed.feeding.host_steps import BatchSteps, Column, fill_missing, length_of
from evenfeed.plan.node import Node


@final
class FlowingBatches(BatchSteps):
    """Gives each replica a fixed number of rows in turn. Rows flow on from batch to batch.

    Args:
        plan: The plan of the global batches.
        sizes: The number of rows of each piece, in turn.
        replicas: The number of pieces in a step.
    """

    def __init__(self, plan: Node, sizes: Sequence[int], replicas: int) -> None:
        super().__init__(plan)
        self._sizes = sizes
        self._replicas = replicas
        self._turn = 0  # the index in sizes at which the next step starts
        self._specs: list[TypeSpec] = flatten(plan.element_spec, DATA)

    def read(self) -> list[Column]:
        sizes = self._sizes[self._turn : self._turn + self._replicas]
        pieces = [self._piece(size) for size in sizes]
        if any(sizes) and not any(pieces):
            raise StopIteration
        self._turn = (self._turn + self._replicas) % len(self._sizes)
        return [self._column(index, pieces) for index in range(len(self._specs))]

    def _piece(self, size: int) -> list[list[Any]]:
        """Return up to `size` rows, as a list with the components of each batch that they come from."""
        found: list[list[Any]] = []
        while size:
            try:
                found.append(self._take(size))
            except StopIteration:
                break
            size -= length_of(found[-1])
        return found

    def _column(self, index: int, pieces: Sequence[list[list[Any]]]) -> Column:
        spec = self._specs[index]
        if not isinstance(spec, TensorSpec | CompositeRowsSpec):
            return None
        return fill_missing(
            [_joined([parts[index] for parts in piece], spec) for piece in pieces], spec
        )

    def peek(self, most: int) -> list[Array | None] | None:
        each = sum(self._sizes[: self._replicas])
        if len(set(self._sizes)) > 1 or not each:
            return None
        rows = self._rows_ahead(most * each)
        count = 0 if rows is None else min(most, length_of(rows) // each)
        if rows is None or not count:
            return None
        return [
            None if own is None else own[: count * each].reshape(count, each, *own.shape[1:])
            for own in rows
        ]

    def _rows_ahead(self, most: int) -> list[Any] | None:
        """Return up to `most` next rows: the rest of a partly used batch, and of batches with one shape behind it.

        None if they stay on the host, or have different shapes.
        """
        rest: list[Any] = []
        if self._partly is not None:
            rest = [part if part is None else part[self._used :][None] for part in self._partly]
            most -= length_of(self._partly) - self._used
        runs = [rest] if rest else []
        try:
            wanted = max(1, -(-most // sum(self._sizes)))
            runs.append(alike_steps(self._elements.peek(wanted).columns))
        except StopIteration:
            if not rest:
                raise
        return _all_rows(runs)

    def advance(self, count: int) -> None:
        rows = count * sum(self._sizes[: self._replicas])
        self._turn = (self._turn + count * self._replicas) % len(self._sizes)
        while rows:
            rows -= length_of(self._take(rows))

    def state(self) -> Any:
        """Return the position, and the index in `sizes` at which the next step starts."""
        turn = {"turn": self._turn} if self._turn else {}
        return {**super().state(), **turn}

    def restore(self, state: Any) -> None:
        super().restore(state)
        self._turn = state.get("turn", 0) % len(self._sizes)


def _all_rows(runs: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Return the rows of all batches in columns with a leading axis, if they can be one array."""
    if not all(are_even(run, 1) and all(c is None or c.ndim > 1 for c in run) for run in runs):
        return None
    found: list[Any] = []
    for columns in zip(*runs, strict=True):
        if columns[0] is None:
            found.append(None)
            continue
        rows = [column.reshape(-1, *column.shape[2:]) for column in columns]
        if len({(part.shape[1:], part.dtype) for part in rows}) > 1:
            return None
        found.append(rows[0] if len(rows) == 1 else np.concatenate(rows))
    return found


def _joined(parts: Sequence[Array], spec: TypeSpec) -> Array | None:
    if not parts:
        return None
    if not isinstance(spec, TensorSpec):
        return cast("Array", composite_rows.joined(cast("Any", parts), spec))
    shapes = [part.shape[1:] for part in parts]
    if len(set(shapes)) > 1:
        raise InvalidArgumentError(
            f"One replica gets rows of two batches, but their shapes differ: {shapes}.",
            fix="batch with drop_remainder=True, or use AutoShardPolicy.DATA, which splits each batch separately.",
        )
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
