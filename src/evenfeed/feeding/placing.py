"""Brings the rows of a step to the devices of their replicas."""

from collections.abc import Sequence
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.structure import DATA, packer, paths
from evenfeed.feeding.host_steps import Column
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica


@final
class Placing:
    """Makes the values of a step of its columns.

    Args:
        structure: What an element looks like.
        replicas: The devices.
        fetch: Whether the rows go to the devices, or stay on the host.
    """

    def __init__(self, structure: Any, replicas: Replicas, *, fetch: bool = True) -> None:
        self._names = [_name(path) for path in paths(structure, DATA)]
        self._pack = packer(structure, DATA)
        self._replicas = replicas
        self._fetch = fetch

    def __call__(self, columns: Sequence[Column]) -> Any:
        """Return the step."""
        placed = [self._value(c, name) for c, name in zip(columns, self._names, strict=True)]
        return self._pack(placed)

    def _value(self, column: Column, what: str) -> Any:
        replicas = self._replicas
        if replicas.count == 1:
            return None if column is None else self._on(column, 0, what)
        if column is None:
            return PerReplica([None] * replicas.count)
        if not isinstance(column, list):
            if self._fetch:
                return PerReplica(array=replicas.put_sharded(column, what), count=replicas.count)
            size = len(column) // replicas.count
            column = [column[i * size : (i + 1) * size] for i in range(replicas.count)]
        return PerReplica([self._on(piece, r, what) for r, piece in enumerate(column)])

    def _on(self, piece: Any, replica: int, what: str) -> Any:
        rows: Array = piece
        if not self._fetch or rows.dtype == dtypes.string:
            return rows
        return self._replicas.put(rows, replica, what)


def _name(path: str) -> str:
    return f"the element's part {path}" if path else "the element"
