"""Operators that make one element of several."""

from collections.abc import Iterator, Sequence

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import DATA, paths
from evenfeed.plan.grouping import Batch
from evenfeed.runtime.block import Block, concatenated
from evenfeed.runtime.operator import Operator, read_full


class StackBatches(Operator):
    """Gives runs of elements a second axis. A batch of another shape is a Block of its own."""

    __slots__ = ("_child", "_made", "_node")

    def __init__(self, child: Operator, node: Batch) -> None:
        self._child = child
        self._node = node
        self._made: Iterator[Block] = iter(())

    def read(self, most: int) -> Block | None:
        """Return as many full batches as have one shape, then the short one."""
        block = next(self._made, None)
        if block is None:
            self._made = self._batches(list(read_full(self._child, most * self._node.batch_size)))
            block = next(self._made, None)
        return block

    def _batches(self, blocks: Sequence[Block]) -> Iterator[Block]:
        size = self._node.batch_size
        # Elements of several shapes are short batches themselves: no two batches then fit together.
        rows = _length(blocks) if _have_one_shape(blocks) else size
        for run in _runs(blocks, max(1, rows // size) * size):
            length = _length(run)
            if length >= size:
                yield _folded(self._joined(run), length // size, size)
            elif not self._node.drop_remainder:
                yield _folded(self._joined(run), 1, length)

    def _joined(self, run: Sequence[Block]) -> Block:
        if _have_one_shape(run):
            return concatenated(run)
        where = paths(self._node.element_spec, DATA)
        shapes = zip(where, *map(_row_shapes, run), strict=True)
        path, *found = next(part for part in shapes if len(set(part[1:])) > 1)
        raise InvalidArgumentError(
            f"A batch holds elements of one shape, but it would hold {_listed(found)}"
            + (f" in the part {path}." if path else "."),
            fix="give all elements one shape; of a batch of batches, drop_remainder=True in the first.",
            origin=self._node.origin,
        )


def _runs(blocks: Sequence[Block], size: int) -> Iterator[list[Block]]:
    """Yield the rows in runs of `size`, the last of which may be short."""
    run: list[Block] = []
    room = size
    for block in blocks:
        start = 0
        while start < block.length:
            piece = block.cut(start, start + room)
            run.append(piece)
            start += piece.length
            room -= piece.length
            if room == 0:
                yield run
                run, room = [], size
    if run:
        yield run


def _length(blocks: Sequence[Block]) -> int:
    return sum(block.length for block in blocks)


def _have_one_shape(blocks: Sequence[Block]) -> bool:
    return all(_row_shapes(block) == _row_shapes(blocks[0]) for block in blocks)


def _row_shapes(block: Block) -> list[tuple[int, ...]]:
    return [() if column is None else column.shape[1:] for column in block.columns]


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    return " and ".join(map(str, dict.fromkeys(shapes)))


def _folded(rows: Block, count: int, size: int) -> Block:
    def fold(column: Array | None) -> Array | None:
        return None if column is None else np.reshape(column, (count, size, *column.shape[1:]))

    return Block(tuple(map(fold, rows.columns)), count)
