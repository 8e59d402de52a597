"""Reads steps on the host: the rows of each replica at each step."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast, final

import numpy as np

from evenfeed.core.batch_split import Share
from evenfeed.core.block import without_rows
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding import composite_rows
from evenfeed.feeding.alike_steps import alike_steps, are_even
from evenfeed.feeding.composite_rows import (
    CompositeRowsSpec,
    row_count,
    rows_between,
    shape_of,
    stays_on_host,
)
from evenfeed.plan.node import Node
from evenfeed.runtime.elements import ElementIterator

# One component of a step: an array to split evenly over the replicas, a list of their pieces, or None.
Column: TypeAlias = "Array | list[Array] | None"


@final
class Pieces(list[Array]):
    """The pieces of one worker's replicas, with the shapes of all workers' pieces.

    Args:
        own: This worker's pieces.
        shapes: The shapes of all replicas' pieces.
    """

    def __init__(self, own: Iterable[Array], shapes: Iterable[Sequence[int]]) -> None:
        super().__init__(own)
        self.shapes = tuple(map(tuple, shapes))


def pieces_of(own: Sequence[Array], share: Share, counts: Sequence[int]) -> list[Array]:
    """Return a worker's pieces, with the shapes of all pieces if there are other workers.

    Args:
        own: The pieces. Their rows have one shape.
        share: The worker.
        counts: The number of rows of each replica, over all workers.
    """
    if share.workers == 1:
        return list(own)
    return Pieces(own, ((count, *shape_of(own[0])[1:]) for count in counts))


class HostSteps(ABC):
    """Reads the steps of a dataset in order. Its position is that of the next step."""

    @abstractmethod
    def read(self) -> list[Column]:
        """Return the columns of the next step.

        Raises:
            StopIteration: There are no more steps.
        """

    def peek(self, most: int) -> list[Array | None] | None:
        """Return the columns of up to `most` next steps, with a leading axis for the steps.

        The position stays before them. None if the next step has to be read by itself: it is uneven, stays on the
        host, or others must agree on it.
        """
        del most
        return None

    def advance(self, count: int) -> None:
        """Count steps that `peek` returned as read."""
        raise NotImplementedError(count)

    def iterators(self) -> Sequence[ElementIterator]:
        """Return the iterators that it reads, for their figures."""
        return ()

    @abstractmethod
    def state(self) -> Any:
        """Return the position: `at` in each dataset, and the number of `rows` already used of a batch."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Restore a position."""

    @abstractmethod
    def close(self) -> None:
        """Stop the threads of the dataset."""


@final
class CountedSteps(HostSteps):
    """Counts the steps of several workers, so that a state shows whether all were at the same one.

    Args:
        steps: The steps.
    """

    def __init__(self, steps: HostSteps) -> None:
        self._steps = steps
        self._number = 0

    def read(self) -> list[Column]:
        try:
            columns = self._steps.read()
        except StopIteration:
            raise
        except Exception:
            self._number += 1  # the error takes the place of a step
            raise
        self._number += 1
        return columns

    def peek(self, most: int) -> list[Array | None] | None:
        return self._steps.peek(most)

    def advance(self, count: int) -> None:
        self._steps.advance(count)
        self._number += count

    def iterators(self) -> Sequence[ElementIterator]:
        return self._steps.iterators()

    def state(self) -> Any:
        return {**self._steps.state(), "step": self._number}

    def restore(self, state: Any) -> None:
        self._steps.restore(state)
        self._number = state.get("step", 0)

    def close(self) -> None:
        self._steps.close()


class BatchSteps(HostSteps):
    """Makes steps from global batches. Its position may be inside a batch, and suits any number of replicas."""

    def __init__(self, plan: Node, begun: Any = None) -> None:
        self._elements = ElementIterator(plan, flat=True, begun=begun)
        self._partly: list[Any] | None = None  # the components of a partly used batch
        self._before: Any = None  # the position of that batch
        self._used = 0  # the number of its rows that were used

    def _take(self, most: int | None = None) -> list[Any]:
        """Return the next rows: at most `most` of them, and only the rest of a partly used batch."""
        if self._partly is None and most is None:
            return next(self._elements)
        parts = self._partly
        if parts is None:
            self._before = self._elements.position()
            parts, self._used = next(self._elements), 0
        start, length = self._used, length_of(parts)
        self._used = length if most is None else min(length, start + most)
        self._partly = None if self._used == length else parts
        return [None if part is None else rows_between(part, start, self._used) for part in parts]

    def iterators(self) -> Sequence[ElementIterator]:
        return [self._elements]

    def state(self) -> Any:
        if self._partly is None:
            return {"at": [self._elements.position()], "rows": 0}
        return {"at": [self._before], "rows": self._used}

    def restore(self, state: Any) -> None:
        (at,) = positions(state, 1)
        self._elements.set_state(at)
        self._partly = None
        if state["rows"]:
            self._take(state["rows"])

    def close(self) -> None:
        self._elements.close()


class SplitSteps(BatchSteps):
    """Splits each global batch separately, rounding up: the last replicas may get fewer rows, or none.

    Each step is one batch. With several workers, all read the same batches and take their own pieces. Then
    `begun` is the shared random state of the pass.
    """

    def __init__(self, plan: Node, share: Share, begun: Any = None) -> None:
        super().__init__(plan, begun)
        self._share = share

    def read(self) -> list[Column]:
        parts = self._batch()
        return parts if self._share.everyone == 1 else list(map(self._column, parts))

    def _batch(self) -> list[Any]:
        return self._take()

    def peek(self, most: int) -> list[Array | None] | None:
        if self._partly is not None:
            return None
        columns = self._columns_of_batch(alike_steps(self._elements.peek(most).columns))
        if not are_even(columns, self._share.everyone):
            return None
        if self._share.workers == 1:
            return columns
        return [None if c is None else c[:, self._share.offsets(c.shape[1])] for c in columns]

    def advance(self, count: int) -> None:
        self._elements.advance(count)

    def _columns_of_batch(self, columns: Sequence[Any]) -> list[Any]:
        return list(columns)

    def _column(self, part: Array | None) -> Column:
        if part is None:
            return None
        length = row_count(part)
        even = not stays_on_host(part) and self._share.divides(length)
        if even and self._share.workers == 1:
            return part
        pieces = [rows_between(part, start, stop) for start, stop in self._share.pieces(length)]
        if even:
            return np.concatenate(pieces)
        return pieces_of(pieces, self._share, self._share.counts(length))


@final
class CutInTurn(BatchSteps):
    """Splits each global batch over all replicas, rounding up, and gives one worker all pieces in turn.

    TensorFlow does this if workers read different data and the batch size is unknown.
    """

    def __init__(self, plan: Node, share: Share) -> None:
        super().__init__(plan)
        self._share = share
        self._turn = 0  # the number of steps made from the current batch
        self._parts: list[Any] = []
        self._start: Any = None  # the position of the current batch

    def read(self) -> list[Column]:
        if self._turn == 0:
            self._start = super().state()
            self._parts = self._take()
        first = self._turn * self._share.replicas
        self._turn = (self._turn + 1) % self._share.workers
        return [self._column(part, first) for part in self._parts]

    def _column(self, part: Array | None, first: int) -> Column:
        if part is None:
            return None
        return cut(part, self._share.everyone)[first : first + self._share.replicas]

    def state(self) -> Any:
        """Return the position of the batch, and the number of steps already made from it."""
        return {**(self._start if self._turn else super().state()), "turn": self._turn}

    def restore(self, state: Any) -> None:
        super().restore(state)
        self._turn = 0
        for _ in range(state.get("turn", 0)):
            self.read()


def positions(state: Any, datasets: int) -> list[Any]:
    """Return the positions in a state, one for each dataset."""
    found: list[Any] = state["at"]
    if len(found) != datasets:
        raise InvalidArgumentError(
            f"The state has positions in {len(found)} datasets, but this iterator reads {datasets}.",
            fix="with InputReplicationMode.PER_REPLICA, use the same number of replicas as before.",
        )
    return found


def next_parts(iterator: ElementIterator) -> list[Any] | None:
    """Return the components of the next element, or None at the end."""
    try:
        return next(iterator)
    except StopIteration:
        return None


def cut(batch: Array, count: int) -> list[Array]:
    """Split a batch into `count` pieces as TensorFlow does, rounding up: the last ones may be empty."""
    size = -(-row_count(batch) // count)
    return [rows_between(batch, i * size, (i + 1) * size) for i in range(count)]


def length_of(parts: Sequence[Any]) -> int:
    """Return the number of rows of a batch, which must agree in all components."""
    lengths = {row_count(part) for part in parts if part is not None}
    if len(lengths) != 1:
        raise InvalidArgumentError(
            "The components of a batch must have the same number of rows to be split, but have "
            f"{sorted(lengths)}.",
            fix="batch all components together.",
        )
    return lengths.pop()


def is_static(plan: Node) -> bool:
    """Return True if all shapes of a plan's elements are known."""
    kinds = TensorSpec | CompositeRowsSpec
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, kinds)]
    return all(spec.shape.is_fully_defined() for spec in specs)


def fill_missing(
    pieces: Sequence[Array | None], spec: "TensorSpec | CompositeRowsSpec"
) -> list[Array]:
    """Replace missing pieces with zero rows, in the row shape of the other pieces.

    A replica without rows still runs the step, and `x @ w` fails on a shape of (0, 0).
    """
    if not isinstance(spec, TensorSpec):
        found = [composite_rows.without_rows(spec) if p is None else p for p in pieces]
        return cast("list[Array]", found)
    shape = next((piece.shape for piece in pieces if piece is not None), None)
    return [without_rows(spec, shape) if piece is None else piece for piece in pieces]
