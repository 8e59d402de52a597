"""Fills short batches, so that every step has the same shapes."""

from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.host_steps import BatchSteps, Column, blank, cut, length_of
from evenfeed.plan.node import Node


@final
class PadBatches(BatchSteps):
    """Cuts each global batch over the replicas, and fills what each gets to one length with zeros.

    The last column of a step says which rows are the dataset's.
    """

    def __init__(self, plan: Node, replicas: int) -> None:
        super().__init__(plan)
        self._replicas = replicas
        self._each = padded_rows(plan, replicas)
        self._full = np.ones(self._each * replicas, bool)

    def read(self) -> list[Column]:
        """Return the parts of the next batch, and which rows are valid."""
        parts = self._rows.take()
        rows = length_of(parts)
        if rows == len(self._full):
            return [*(self._whole(part) for part in parts), self._full.copy()]
        if rows > len(self._full):
            raise InvalidArgumentError(
                f"A batch has {rows} rows, but the others have {len(self._full)} at most.",
                fix="let batch(size) be the last step that changes how many rows a batch has.",
            )
        return [
            *(self._whole(self._filled(part)) for part in parts),
            self._filled(np.ones(rows, bool)),
        ]

    def _whole(self, part: Any) -> Column:
        if part is None or part.dtype != dtypes.string or self._replicas == 1:
            return part
        return cut(part, self._replicas)

    def _filled(self, part: Any) -> Any:
        """Return a part with what each replica gets filled up to one length."""
        if part is None:
            return None
        whole = blank((self._replicas, self._each, *part.shape[1:]), part.dtype)
        for replica, piece in enumerate(cut(part, self._replicas)):
            whole[replica, : len(piece)] = piece
        return whole.reshape(-1, *part.shape[1:])


def padded_rows(plan: Node, replicas: int) -> int:
    """Return how many rows each replica gets at every step.

    Raises:
        InvalidArgumentError: How large a batch is cannot be told beforehand.
    """
    size = global_batch_size(plan)
    if size is None:
        raise InvalidArgumentError(
            "pad_partial_batches needs to know how many rows a batch has, but the dataset does not tell.",
            fix="let batch(size) be the last step of the dataset, or give map an output_signature with that size.",
        )
    return -(-size // replicas)
