"""Steps of a process that reads the rows which its devices hold. The first column is the length of the global arrays."""

from typing import Any, Final, final

import numpy as np

from evenfeed.core.batch_split import HeldRows
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.feeding.alike_steps import alike_steps, are_even, same_lengths
from evenfeed.feeding.changed_steps import ChangedSteps
from evenfeed.feeding.host_steps import BatchSteps, Column, HostSteps, Pieces, length_of
from evenfeed.feeding.shared_batches import named_for
from evenfeed.plan.node import Node
from evenfeed.rewrite.worker_plan import Sharded

_USE_ALL: Final = (
    "pass InputOptions(pad_partial_batches=True), which marks the rows that are padding"
)


@final
class HeldSteps(BatchSteps):
    """Reads the rows of global batches that a process holds.

    Args:
        sharded: The plan of the process. Its elements are whole batches, or those of `OwnBatches`.
        held: The rows that the process holds.
        begun: The random state of the pass, which all processes share.
    """

    def __init__(self, sharded: Sharded, held: HeldRows, begun: Any = None) -> None:
        super().__init__(sharded.plan, begun)
        self._sharded = sharded
        self._held = held
        self._has_all = len(held.own_shards) == held.shards

    def read(self) -> list[Column]:
        parts = self._take()
        if self._sharded.in_parts and not self._sharded.is_whole:
            length, *own = parts
            return [np.asarray(self._held.length or length), *own]
        whole = parts[1:] if self._sharded.in_parts else parts
        rows = length_of(whole)
        length = np.asarray(self._held.length or rows)
        if self._has_all:
            return [length, *whole]
        chosen = self._held.offsets(rows)
        return [length, *(None if part is None else part[chosen] for part in whole)]

    def peek(self, most: int) -> list[Array | None] | None:
        if self._partly is not None:
            return None
        lengths, *columns = self._with_lengths(alike_steps(self._elements.peek(most).columns))
        rows = int(lengths[0])
        if self._held.length not in (None, rows) or not are_even(columns, 1):
            return None
        chosen = self._held.offsets(rows)
        is_cut = self._has_all or (self._sharded.in_parts and not self._sharded.is_whole)
        return [lengths, *(c if c is None or is_cut else c[:, chosen] for c in columns)]

    def _with_lengths(self, columns: list[Any]) -> list[Any]:
        """Return columns of steps with the lengths of the global batches, which must be the same, as the first."""
        if self._sharded.in_parts:
            return same_lengths(columns)
        steps, rows = next(np.shape(column)[:2] for column in columns if column is not None)
        return [np.full(steps, rows), *columns]

    def advance(self, count: int) -> None:
        self._elements.advance(count)


@final
class NarrowSteps(ChangedSteps):
    """Reads some columns of the rows. Its positions are those of a plan that reads whole rows.

    Args:
        steps: The steps of a plan that reads some columns.
        whole: The plan that reads whole rows.
        narrow: The plan of the steps.
    """

    def __init__(self, steps: HostSteps, whole: Node, narrow: Node) -> None:
        super().__init__(steps)
        self._whole = whole
        self._narrow = narrow

    def read(self) -> list[Column]:
        return self._steps.read()

    def peek(self, most: int) -> list[Array | None] | None:
        return self._steps.peek(most)

    def state(self) -> Any:
        return named_for(super().state(), self._whole)

    def restore(self, state: Any) -> None:
        super().restore(named_for(state, self._narrow))


@final
class LocalSteps(ChangedSteps):
    """Takes the batches that each process makes of its own rows, and checks that they form one global batch.

    Args:
        steps: The batches of this process, in step with those of the others.
        groups: The number of groups of processes with the same rows.
        length: The number of rows of the global arrays, if they are padded.
    """

    def __init__(self, steps: HostSteps, groups: int, length: int | None) -> None:
        super().__init__(steps)
        self._groups = groups
        self._length = length

    def read(self) -> list[Column]:
        columns = [_own(column) for column in self._steps.read()]
        rows = length_of([part for part, _ in columns])
        if self._length is None:
            counts = {shape[0] for _, shapes in columns for shape in shapes}
            if len(counts) > 1:
                raise InvalidArgumentError(
                    f"The processes have batches of different lengths at this step: {sorted(counts)}.",
                    fix=f"batch with drop_remainder=True and take the same number of steps everywhere, or {_USE_ALL}.",
                )
        elif rows * self._groups > self._length:
            raise InvalidArgumentError(
                f"A process has a batch of {rows} rows, but the batch size allows {self._length // self._groups}.",
                fix="make batch(size) the last transformation that changes the number of rows.",
            )
        length = self._length or rows * self._groups
        return [np.asarray(length), *(part for part, _ in columns)]

    def peek(self, most: int) -> list[Array | None] | None:
        columns = self._steps.peek(most)
        shapes = [column.shape[:2] for column in columns or () if column is not None]
        if columns is None or len(set(shapes)) > 1:
            return None
        steps, rows = shapes[0]
        length = rows * self._groups
        return [np.full(steps, length), *columns] if self._length in (None, length) else None


@final
class MarkedSteps(ChangedSteps):
    """Adds the length of the global arrays to the steps of lanes.

    Args:
        steps: The steps of this process, in step with those of the others.
        length: The number of rows of the global arrays.
    """

    def __init__(self, steps: HostSteps, length: int) -> None:
        super().__init__(steps)
        self._length = length

    def read(self) -> list[Column]:
        return [np.asarray(self._length), *(_own(column)[0] for column in self._steps.read())]

    def peek(self, most: int) -> list[Array | None] | None:
        columns = self._steps.peek(most)
        if columns is None or columns[0] is None or not columns[0].all():
            return None
        return [np.full(len(columns[0]), self._length), *columns]


def _own(column: Column) -> tuple[Array | None, tuple[tuple[int, ...], ...]]:
    """Return the only piece of this process, and the shapes of all pieces if they are known."""
    if isinstance(column, Pieces):
        return column[0], column.shapes
    part = column[0] if isinstance(column, list) else column
    return part, ()


def check_rows(rows: int, held: HeldRows, axes: str, fix: str | None = None) -> None:
    """Raise unless a batch of `rows` has equal shards.

    Args:
        rows: The number of rows.
        held: The shards.
        axes: The mesh axes that split rows, in words.
        fix: What to type instead; by default, another batch size.
    """
    if rows % held.shards == 0:
        return
    low = rows // held.shards * held.shards
    near = [str(size) for size in (low, low + held.shards) if size]
    sizes = f"use batch({') or batch('.join(near)})"
    raise InvalidArgumentError(
        f"A batch of {rows} row{'' if rows == 1 else 's'} cannot be split evenly into {held.shards} shards, over {axes}.",
        fix=f"{fix or sizes}, or {_USE_ALL}.",
    )


def own_valid(rows: int, held: HeldRows, length: int) -> Array:
    """Return a bool for each place that a process holds of a global batch, of which it has `rows`."""
    return np.arange(length // held.shards * len(held.own_shards)) < rows
