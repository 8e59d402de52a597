"""Turns the rows that a process read into global arrays, or into values of the replicas that share them."""

from collections.abc import Callable, Sequence
from typing import Any, cast, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import DATA, packer
from evenfeed.feeding.host_steps import Column, length_of
from evenfeed.feeding.meshes.held_steps import check_rows, own_valid
from evenfeed.replicas.array_layouts import ArrayLayout
from evenfeed.replicas.values import PerReplica


@final
class ArrayPlacing:
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

    def __call__(self, columns: Sequence[Column]) -> Any:
        """Return the step made from its columns."""
        layout, held = self._layout, self._layout.rows
        length, first = int(cast("Any", columns[0])), 2 if self._marked else 1
        own = cast("Sequence[Any]", columns[first:])
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

    def _value(self, array: Any) -> Any:
        replicas = self._layout.replicas
        value = array if replicas is None else PerReplica(array=array, count=replicas.count)
        return value if self._convert is None else self._convert(value)
