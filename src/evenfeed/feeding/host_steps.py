"""The rows of each replica at each step, on the host."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batch_split import Share
from evenfeed.core.block import without_rows
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.node import Node
from evenfeed.runtime.elements import ElementIterator

# One part of a step: rows that the replicas share evenly, what each gets, or None.
Column: TypeAlias = "Array | list[Array] | None"


@final
class Pieces(list[Array]):
    """What each replica of one worker gets, where others have replicas too.

    Args:
        own: This worker's pieces.
        shapes: Those of the pieces of all replicas.
    """

    def __init__(self, own: Iterable[Array], shapes: Iterable[Sequence[int]]) -> None:
        super().__init__(own)
        self.shapes = tuple(map(tuple, shapes))


def pieces_of(own: Sequence[Array], share: Share, counts: Sequence[int]) -> list[Array]:
    """Return the pieces of a worker, which know the others' where there are some; rows have one shape.

    Args:
        own: The pieces.
        share: Whose they are.
        counts: How many rows all replicas get.
    """
    if share.workers == 1:
        return list(own)
    return Pieces(own, ((count, *own[0].shape[1:]) for count in counts))


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
        """Return the position: `at` in each dataset, and how many `rows` of a batch are used."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Take up a position."""

    @abstractmethod
    def close(self) -> None:
        """End the threads below."""


@final
class StepRows:
    """The rows of batches, some at a time, with a position between them."""

    def __init__(self, plan: Node, begun: Any = None) -> None:
        self._elements = ElementIterator(plan, begun=begun)
        self._parts: list[Any] | None = None  # of a batch of which some rows are used
        self._before: Any = None
        self._used = 0

    def take(self, most: int | None = None) -> list[Any]:
        """Return the parts of the next batch; at most so many rows, and of a batch begun its rest."""
        if self._parts is None and most is None:
            return flatten(next(self._elements), DATA)
        if self._parts is None:
            self._before = self._elements.position()
            self._parts, self._used = flatten(next(self._elements), DATA), 0
        start, length = self._used, length_of(self._parts)
        self._used = length if most is None else min(length, start + most)
        taken = [None if part is None else part[start : self._used] for part in self._parts]
        if self._used == length:
            self._parts = None
        return taken

    def state(self) -> Any:
        """Return the position: one in the dataset, and how many rows of a batch are used."""
        if self._parts is None:
            return {"at": [self._elements.position()], "rows": 0}
        return {"at": [self._before], "rows": self._used}

    def restore(self, state: Any) -> None:
        """Take up a position."""
        (at,) = positions(state, 1)
        self._elements.set_state(at)
        self._parts = None
        if state["rows"]:
            self.take(state["rows"])

    def close(self) -> None:
        """End the threads below."""
        self._elements.close()


class BatchSteps(HostSteps):
    """Makes steps of global batches. Its position does not depend on the number of replicas."""

    def __init__(self, plan: Node, begun: Any = None) -> None:
        self._rows = StepRows(plan, begun)

    def state(self) -> Any:
        """Return the position."""
        return self._rows.state()

    def restore(self, state: Any) -> None:
        """Take up a position."""
        self._rows.restore(state)

    def close(self) -> None:
        """End the threads below."""
        self._rows.close()


@final
class SplitSteps(BatchSteps):
    """Cuts each global batch by itself, by ceiling: the last replicas may get less, or nothing.

    Each step is one batch. Several workers read the same batches, and each takes its own pieces: then
    `begun` is the run of the pass that they share.
    """

    def __init__(self, plan: Node, share: Share, begun: Any = None) -> None:
        super().__init__(plan, begun)
        self._share = share

    def read(self) -> list[Column]:
        """Return this worker's parts of the next batch."""
        return [self._column(part) for part in self._rows.take()]

    def _column(self, part: Array | None) -> Column:
        if part is None or self._share.everyone == 1:
            return part
        even = part.dtype != dtypes.string and self._share.divides(len(part))
        if even and self._share.workers == 1:
            return part
        pieces = [part[start:stop] for start, stop in self._share.pieces(len(part))]
        if even:
            return np.concatenate(pieces)
        return pieces_of(pieces, self._share, self._share.counts(len(part)))


@final
class OwnParts(HostSteps):
    """Cuts what one worker got of each global batch over its replicas.

    Args:
        plan: Its elements are those of `OwnBatches`.
        share: Which worker.
        begun: The run of the pass, which all workers share.
    """

    def __init__(self, plan: Node, share: Share, begun: Any = None) -> None:
        self._elements = ElementIterator(plan, begun=begun)
        self._share = share

    def read(self) -> list[Column]:
        """Return the parts of the next batch."""
        length, *parts = flatten(next(self._elements), DATA)
        return [self._column(part, int(length)) for part in parts]

    def _column(self, part: Array | None, length: int) -> Column:
        if part is None or (part.dtype != dtypes.string and self._share.divides(length)):
            return part
        ends = np.cumsum([stop - start for start, stop in self._share.pieces(length)])
        return pieces_of(np.split(part, ends[:-1]), self._share, self._share.counts(length))

    def state(self) -> Any:
        """Return the position."""
        return {"at": [self._elements.position()], "rows": 0}

    def restore(self, state: Any) -> None:
        """Take up a position."""
        self._elements.set_state(*positions(state, 1))

    def close(self) -> None:
        """End the threads below."""
        self._elements.close()


@final
class CutInTurn(BatchSteps):
    """Cuts each global batch by ceiling over all replicas, and gives one worker all pieces, some at a step.

    That is what TensorFlow does where workers have data of their own and the size of batches is not known.
    """

    def __init__(self, plan: Node, share: Share) -> None:
        super().__init__(plan)
        self._share = share
        self._turn = 0  # how many steps of the present batch came
        self._parts: list[Any] = []
        self._before: Any = None

    def read(self) -> list[Column]:
        """Return the next pieces of a batch."""
        if self._turn == 0:
            self._before = self._rows.state()
            self._parts = self._rows.take()
        first = self._turn * self._share.replicas
        self._turn = (self._turn + 1) % self._share.workers
        return [self._column(part, first) for part in self._parts]

    def _column(self, part: Array | None, first: int) -> Column:
        if part is None:
            return None
        return cut(part, self._share.everyone)[first : first + self._share.replicas]

    def state(self) -> Any:
        """Return the position of the batch, and how many steps of it came."""
        return {**(self._before if self._turn else self._rows.state()), "turn": self._turn}

    def restore(self, state: Any) -> None:
        """Take up a position."""
        self._rows.restore(state)
        self._turn = 0
        for _ in range(state.get("turn", 0)):
            self.read()


@final
class FlowingBatches(BatchSteps):
    """Gives each replica so many rows in turn; they flow on from one global batch to the next.

    Args:
        plan: Makes the batches.
        sizes: How many rows each piece has, in turn.
        replicas: How many pieces make up a step.
    """

    def __init__(self, plan: Node, sizes: Sequence[int], replicas: int) -> None:
        super().__init__(plan)
        self._sizes = sizes
        self._replicas = replicas
        self._turn = 0  # where in the sizes the next step begins
        self._specs: list[TypeSpec] = flatten(plan.element_spec, DATA)

    def read(self) -> list[Column]:
        """Return the parts of the next step; a replica for which no rows are left gets none."""
        sizes = self._sizes[self._turn : self._turn + self._replicas]
        pieces = [self._piece(size) for size in sizes]
        if any(sizes) and not any(pieces):
            raise StopIteration
        self._turn = (self._turn + self._replicas) % len(self._sizes)
        return [self._column(place, pieces) for place in range(len(self._specs))]

    def _piece(self, size: int) -> list[list[Any]]:
        """Return `size` rows, or those that are left, as the parts of the batches they stand in."""
        found: list[list[Any]] = []
        while size:
            try:
                found.append(self._rows.take(size))
            except StopIteration:
                break
            size -= length_of(found[-1])
        return found

    def _column(self, place: int, pieces: Sequence[list[list[Any]]]) -> Column:
        spec = self._specs[place]
        if not isinstance(spec, TensorSpec):
            return None
        return beside_each_other(
            [_joined([parts[place] for parts in piece]) for piece in pieces], spec
        )

    def state(self) -> Any:
        """Return the position, and where in the sizes the next step begins."""
        turn = {"turn": self._turn} if self._turn else {}
        return {**super().state(), **turn}

    def restore(self, state: Any) -> None:
        """Take up a position."""
        super().restore(state)
        self._turn = state.get("turn", 0) % len(self._sizes)


@final
class TakePieces(HostSteps):
    """Takes one element for each replica, of one dataset in turn or of one for each.

    Args:
        plans: One plan, or one for each replica.
        replicas: How many there are.
        fills: Whether replicas without an element get no rows, where shapes can say that; else the step is
            dropped.
        others: Whether there are other workers: then no shapes are promised, and any can say that.
    """

    def __init__(
        self, plans: Sequence[Node], replicas: int, *, fills: bool = True, others: bool = False
    ) -> None:
        self._iterators = [ElementIterator(plan) for plan in plans]
        self._turns = self._iterators * (replicas // len(plans))
        self._specs: list[TypeSpec] = flatten(plans[0].element_spec, DATA)
        self._fills = fills and (others or not all(map(is_static, plans)))

    def read(self) -> list[Column]:
        """Return the pieces of the next step."""
        rows = [next_parts(iterator) for iterator in self._turns]
        if None in rows and not (self._fills and any(rows)):
            raise StopIteration
        return [self._column(place, rows) for place in range(len(self._specs))]

    def _column(self, place: int, rows: Sequence[list[Any] | None]) -> Column:
        spec = self._specs[place]
        if not isinstance(spec, TensorSpec):
            return None
        pieces = beside_each_other([None if row is None else row[place] for row in rows], spec)
        return pieces[0] if len(pieces) == 1 else pieces

    def state(self) -> Any:
        """Return the positions in the datasets."""
        return {"at": [iterator.position() for iterator in self._iterators], "rows": 0}

    def restore(self, state: Any) -> None:
        """Take up positions."""
        for iterator, at in zip(
            self._iterators, positions(state, len(self._iterators)), strict=True
        ):
            iterator.set_state(at)

    def close(self) -> None:
        """End the threads below."""
        for iterator in self._iterators:
            iterator.close()


def positions(state: Any, datasets: int) -> list[Any]:
    """Return the positions in a state, one for each of so many datasets."""
    found: list[Any] = state["at"]
    if len(found) != datasets:
        raise InvalidArgumentError(
            f"The state was taken of {len(found)} datasets, but {datasets} are read here.",
            fix="with InputReplicationMode.PER_REPLICA, go on with as many replicas as before.",
        )
    return found


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


def length_of(parts: Sequence[Any]) -> int:
    """Return how many rows the parts of a batch have."""
    lengths = {len(part) for part in parts if part is not None}
    if len(lengths) != 1:
        raise InvalidArgumentError(
            f"The parts of a batch have {sorted(lengths)} rows, but must have one number of rows to be shared out.",
            fix="batch all parts together.",
        )
    return lengths.pop()


def is_static(plan: Node) -> bool:
    """Tell whether all shapes of a plan's elements are known."""
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    return all(spec.shape.is_fully_defined() for spec in specs)


def beside_each_other(pieces: Sequence[Array | None], spec: TensorSpec) -> list[Array]:
    """Replace missing pieces by zero rows, with the other lengths of the pieces that are there.

    A step computes with these lengths also where a replica has no rows: `x @ w` fails on a shape of (0, 0).
    """
    shape = next((piece.shape for piece in pieces if piece is not None), None)
    return [without_rows(spec, shape) if piece is None else piece for piece in pieces]


def _joined(parts: Sequence[Array]) -> Array | None:
    if not parts:
        return None
    shapes = [part.shape[1:] for part in parts]
    if len(set(shapes)) > 1:
        raise InvalidArgumentError(
            f"Rows of the shapes {shapes} stand in two batches, and one replica was to get both.",
            fix="batch with drop_remainder=True, or choose AutoShardPolicy.DATA, which cuts each batch by itself.",
        )
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
