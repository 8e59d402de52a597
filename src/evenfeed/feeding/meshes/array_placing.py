"""Turns the rows that a process read into global arrays, or into values of the replicas that share them."""

from collections.abc import Callable, Sequence
from typing import Any, cast, final

import numpy as np

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.iteration import StepRun
from evenfeed.core.structure import DATA, packer
from evenfeed.feeding.host_steps import Column, length_of
from evenfeed.feeding.meshes.held_steps import check_rows, own_valid
from evenfeed.feeding.placing import StepPlacing, with_room
from evenfeed.replicas.array_layouts import ArrayLayout
from evenfeed.replicas.values import batch_kind, per_replica_of


@final
class ArrayPlacing(StepPlacing):
    """Turns the columns of a step into a structure of global arrays.

    Args:
        structure: The structure of an element.
        layout: The shardings of its components.
        axes: The mesh axes that split rows, in words.
        convert: Converts each value of a step.
        marked: Whether the second column marks the rows that are there. By default, only the last ones may be missing.
    """

    def __init__(
        self,
        structure: Any,
        layout: ArrayLayout,
        axes: str,
        convert: Callable[[Any], Any] | None = None,
        *,
        marked: bool = False,
    ) -> None:
        self._convert = convert
        self._pack = packer(structure, DATA)
        self._layout = layout
        self._axes = axes
        self._marked = marked
        self._first = 2 if marked else 1  # the first column of the element

    def __call__(self, columns: Sequence[Column]) -> Any:
        """Return the step made from its columns."""
        layout, held = self._layout, self._layout.rows
        length = int(cast("Any", columns[0]))
        own = cast("Sequence[Any]", columns[self._first :])
        check_rows(length, held, self._axes)
        if self._marked and held.length is None and not cast("Any", columns[1]).all():
            raise InvalidArgumentError(
                "A lane gave fewer rows than its place in a batch has.",
                fix="pass InputOptions(pad_partial_batches=True), which marks the rows that are missing.",
            )
        arrays = [
            None if c is None else self._value(layout.put(i, c, length)) for i, c in enumerate(own)
        ]
        element = self._pack(arrays)
        if held.length is None:
            return element
        valid = columns[1] if self._marked else own_valid(length_of(own), held, length)
        return element, self._value(layout.put_valid(cast("Any", valid), length))

    @property
    def has_runs(self) -> bool:
        return self._layout.replicas is not None and self._convert is None

    def kind(self, columns: Sequence[Any]) -> Any:
        own = enumerate(columns[self._first :])
        kinds = [
            c if c is None else [self._layout.row_shape(i, c, 2), str(c.dtype)] for i, c in own
        ]
        return [int(columns[0][0]), kinds]

    def columns_again(self, columns: Sequence[Any]) -> list[Any] | None:
        held, length = self._layout.rows, int(columns[0])
        full = length // held.shards * len(held.own_shards)
        if any(c is not None and len(c) != full for c in columns[1:]):
            return None
        is_whole = not self._marked or columns[1].all()
        return [c if c is None else c[None] for c in columns] if is_whole else None

    def run_of(self, columns: Sequence[Any], count: int, room: int) -> StepRun:
        layout, length = self._layout, int(columns[0][0])
        check_rows(length, layout.rows, self._axes)
        own = columns[self._first :]
        arrays = [
            None if c is None else self._value(layout.put_steps(i, with_room(c, room), length))
            for i, c in enumerate(own)
        ]
        element = self._pack(arrays)
        if layout.rows.length is None:
            return StepRun(count, element)
        rows = length // layout.rows.shards * len(layout.rows.own_shards)
        valid = layout.put_valid_steps(np.ones((room, rows), bool), length)
        return StepRun(count, (element, self._value(valid)))

    def _value(self, array: Any) -> Any:
        replicas = self._layout.replicas
        value = array if replicas is None else per_replica_of(batch_kind(replicas), array)
        return value if self._convert is None else self._convert(value)
