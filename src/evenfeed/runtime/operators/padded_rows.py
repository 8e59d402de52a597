"""Pads the elements of a batch, and stacks them."""

from collections.abc import Sequence
from typing import final

import numpy as np

from evenfeed.core.block import Block, Column, items
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError, InvalidArgumentError
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import TensorShape
from evenfeed.core.structure import DATA, paths
from evenfeed.core.text.text_columns import Texts
from evenfeed.plan.batching import PaddedBatch


@final
class Padding:
    """Pads the elements of a batch, and stacks them."""

    def __init__(self, node: PaddedBatch) -> None:
        self._node = node

    def __call__(self, rows: Block) -> Block:
        """Return the batch of all `rows`, as a Block of one element."""
        parts = zip(rows.columns, self._node.shapes, self._node.values, strict=True)
        return Block(tuple(self._padded(place, *part) for place, part in enumerate(parts)), 1)

    def _padded(self, place: int, column: Column, shape: TensorShape, fill: Array) -> Column:
        if isinstance(column, (np.ndarray, Texts)) and shape.is_compatible_with(column.shape[1:]):
            return column[None]
        if isinstance(column, RaggedTensor) and column.ragged_rank == 1:
            return self._padded_at_once(place, column, shape, fill)
        rows = items(column)
        if {row.ndim for row in rows} == {1}:
            return self._padded_vectors(place, rows, shape, fill)
        target = self._target(place, list(dict.fromkeys([row.shape for row in rows])), shape)
        out = np.empty((1, len(rows), *target), fill.dtype)
        out[...] = fill[()]
        for number, row in enumerate(rows):
            out[(0, number, *map(slice, row.shape))] = row
        return out

    def _padded_vectors(
        self, place: int, rows: Sequence[Array], shape: TensorShape, fill: Array
    ) -> Column:
        lengths = np.array(list(map(len, rows)))
        (length,) = self._target(place, [(int(lengths.max()),)], shape)
        out = np.empty((1, len(rows), length), fill.dtype)
        out[...] = fill[()]
        out[0][np.arange(length) < lengths[:, None]] = np.concatenate(rows)
        return out

    def _padded_at_once(
        self, place: int, column: RaggedTensor, shape: TensorShape, fill: Array
    ) -> Column:
        longest = int(np.diff(column.splits).max(initial=0))
        target = self._target(place, [(longest, *column.held.shape[1:])], shape)
        return np.asarray(column.to_tensor(fill, shape=[column.row_count, *target]))[None]

    def _target(
        self, place: int, found: Sequence[tuple[int, ...]], shape: TensorShape
    ) -> tuple[int, ...]:
        rank = shape.rank
        if set(map(len, found)) != {rank}:
            raise InvalidArgumentError(
                f"padded_batch expects elements of rank {rank}, but{self._part(place)} got the shapes "
                f"{distinct_shapes(found)}.",
                fix="give all elements the same rank, and pass padded_shapes of that rank.",
                origin=self._node.origin,
            )
        largest = list(map(max, zip(*found, strict=True)))
        target = [most if dim is None else dim for most, dim in zip(largest, shape, strict=True)]
        if any(most > dim for most, dim in zip(largest, target, strict=True)):
            raise DataLossError(
                f"Elements of shape {tuple(largest)} do not fit in the padded shape {shape}"
                f"{self._part(place)}.",
                fix="pass larger padded_shapes, or None for dimensions padded to the longest in the batch.",
                origin=self._node.origin,
            )
        return tuple(target)

    def _part(self, place: int) -> str:
        path = paths(self._node.element_spec, DATA)[place]
        return f" in part {path}" if path else ""


def distinct_shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    """Return each of the shapes once, as a text for an error."""
    return " and ".join(map(str, dict.fromkeys(shapes)))
