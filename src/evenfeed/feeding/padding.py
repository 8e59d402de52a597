"""Pads short batches, so that every step has the same shapes."""

from collections.abc import Sequence
from typing import final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import blank
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.feeding.changed_steps import ChangedSteps
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.host_steps import Column, HostSteps, cut, length_of
from evenfeed.plan.node import Node


@final
class PadSteps(ChangedSteps):
    """Pads each replica's rows with zeros to a fixed length.

    The last column of a step marks the valid rows, which are not padding.

    Args:
        steps: The steps of this worker.
        replicas: The number of this worker's replicas.
        rows: The number of rows per replica at every step.
    """

    def __init__(self, steps: HostSteps, replicas: int, rows: int) -> None:
        super().__init__(steps)
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

    def peek(self, most: int) -> list[Array | None] | None:
        columns = self._steps.peek(most)
        lengths = {c.shape[1] for c in columns or () if c is not None}
        if columns is None or lengths != {len(self._full)}:
            return None
        steps = next(len(c) for c in columns if c is not None)
        return [*columns, np.tile(self._full, (steps, 1))]

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
            fix="make batch(size) the last transformation, or declare the batch size in the output_signature of map.",
        )
    return -(-size // replicas)
