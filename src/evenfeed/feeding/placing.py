"""Turns the host columns of a step into per-replica values on the devices, and pads short batches."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import blank
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import DATA, packer, paths
from evenfeed.core.tensor_types import host_tensor
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.host_steps import Column, HostSteps, Pieces, cut, length_of
from evenfeed.plan.node import Node
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica


@final
class PadSteps(HostSteps):
    """Pads each replica's rows with zeros to a fixed length.

    The last column of a step marks the valid rows, which are not padding.

    Args:
        steps: The steps of this worker.
        replicas: The number of this worker's replicas.
        rows: The number of rows per replica at every step.
    """

    def __init__(self, steps: HostSteps, replicas: int, rows: int) -> None:
        self._steps = steps
        self._replicas = replicas
        self._each = rows
        self._full = np.ones(self._each * replicas, bool)

    def read(self) -> list[Column]:
        columns = self._steps.read()
        pieces = [None if column is None else self._pieces(column) for column in columns]
        counts = self._counts(pieces)
        if min(counts) == self._each:
            return [*columns, self._full.copy()]
        valid = self._padded([np.ones(count, bool) for count in counts])
        return [*(None if parts is None else self._padded(parts) for parts in pieces), valid]

    def _pieces(self, column: "Array | list[Array]") -> list[Array]:
        return column if isinstance(column, list) else cut(column, self._replicas)

    def _counts(self, pieces: Sequence[list[Array] | None]) -> list[int]:
        """Return the number of rows per replica, which must agree in all components."""
        length_of([None if parts is None else range(_rows(parts)) for parts in pieces])
        counts = next(list(map(len, parts)) for parts in pieces if parts is not None)
        if max(counts) > self._each:
            raise InvalidArgumentError(
                f"A replica gets {max(counts)} rows, but the batch size allows at most {self._each}.",
                fix="make batch(size) the last transformation that changes the number of rows.",
            )
        return counts

    def _padded(self, pieces: Sequence[Array]) -> Column:
        """Pad each replica's piece to the fixed length."""
        inner, dtype = pieces[0].shape[1:], pieces[0].dtype
        whole = blank((self._replicas, self._each, *inner), dtype)
        for replica, piece in enumerate(pieces):
            whole[replica, : len(piece)] = piece
        if dtype == dtypes.string and self._replicas > 1:
            return list(whole)
        return whole.reshape(-1, *inner)

    def state(self) -> Any:
        return self._steps.state()

    def restore(self, state: Any) -> None:
        self._steps.restore(state)

    def close(self) -> None:
        self._steps.close()


def _rows(pieces: Sequence[Array]) -> int:
    return sum(map(len, pieces))


def padded_rows(plan: Node, replicas: int) -> int:
    """Return the number of rows per replica at every step, with padding.

    Raises:
        InvalidArgumentError: The batch size is not known in advance.
    """
    size = global_batch_size(plan)
    if size is None:
        raise InvalidArgumentError(
            "pad_partial_batches needs a known batch size, but the dataset's batch size is unknown.",
            fix="make batch(size) the last transformation, or give map an output_signature with that size.",
        )
    return -(-size // replicas)


@final
class Placing:
    """Turns the columns of a step into a structure of per-replica values.

    Args:
        structure: The structure of an element.
        replicas: The replicas.
        fetch: Whether to copy the rows to the devices, or leave them on the host.
    """

    def __init__(self, structure: Any, replicas: Replicas, *, fetch: bool = True) -> None:
        self._names = [_name(path) for path in paths(structure, DATA)]
        self._pack = packer(structure, DATA)
        self._replicas = replicas
        self._fetch = fetch

    def __call__(self, columns: Sequence[Column]) -> Any:
        """Return the step made from its columns."""
        placed = [self._value(c, name) for c, name in zip(columns, self._names, strict=True)]
        return self._pack(placed)

    def _value(self, column: Column, what: str) -> Any:
        replicas, own = self._replicas, self._replicas.local_count
        if replicas.count == 1:
            return None if column is None else self._pieces([column], what)[0]
        if column is None:
            return PerReplica([None] * own)
        if not isinstance(column, list):
            if self._fetch and not replicas.spans:
                return PerReplica(array=replicas.put_sharded(column, what), count=own)
            return self._per_replica(cut(column, own), what, are_alike=True)
        alike = _all_alike(column) if isinstance(column, Pieces) else _are_alike(column)
        return self._per_replica(column, what, are_alike=alike)

    def _per_replica(self, pieces: Sequence[Any], what: str, *, are_alike: bool) -> Any:
        """Make a per-replica value. It is one array if the pieces of all workers have one shape."""
        replicas = self._replicas
        if self._fetch and are_alike and pieces[0].dtype != dtypes.string:
            array = replicas.put_pieces(pieces, what)
            return PerReplica(array=array, count=replicas.count, lifted=pieces[0].ndim == 0)
        own = self._pieces(pieces, what)
        if not replicas.spans:
            return PerReplica(own)
        # Without known shapes, the pieces were padded or split evenly, so all have the same shape.
        alike = (pieces[0].shape,) * replicas.count
        shapes = pieces.shapes if isinstance(pieces, Pieces) else alike
        return PerReplica(own, replicas=replicas, shapes=shapes)

    def _pieces(self, pieces: Sequence[Any], what: str) -> Sequence[Any]:
        if not self._fetch or pieces[0].dtype == dtypes.string:
            return [host_tensor(piece) for piece in pieces]
        return self._replicas.put_each(pieces, what)


def _are_alike(pieces: Sequence[Any]) -> bool:
    """Return True if pieces can be one array on the devices: numbers of one, non-empty shape."""
    first = pieces[0]
    if first.dtype == dtypes.string or first.size == 0:
        return False
    return all(piece.shape == first.shape for piece in pieces)


def _all_alike(pieces: Pieces) -> bool:
    """Return True if the pieces of all workers are scalars, which form one array on the devices."""
    return pieces[0].ndim == 0 and len(set(pieces.shapes)) == 1


def _name(path: str) -> str:
    return f"the element's component {path}" if path else "the element"
