"""Operators that make the first Blocks."""

from collections.abc import Sequence

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.plan.sources import Range
from evenfeed.runtime.block import Block
from evenfeed.runtime.operator import Operator


class CountRange(Operator):
    """Counts in blocks."""

    __slots__ = ("_done", "_node")

    def __init__(self, node: Range) -> None:
        self._node = node
        self._done = 0

    def read(self, most: int) -> Block | None:
        """Return the next numbers."""
        node, first = self._node, self._done
        count = min(most, node.size - first)
        if count == 0:
            return None
        numbers = node.start + node.step * np.arange(first, first + count, dtype=np.int64)
        block = Block((numbers.astype(node.dtype, copy=False),), count)
        self._done += count  # last: a Ctrl-C before this line loses nothing
        return block


class SliceArrays(Operator):
    """Cuts arrays along their first axis, without copying them."""

    __slots__ = ("_columns", "_done", "_size")

    def __init__(self, columns: Sequence[Array | None], size: int) -> None:
        # An element that a user changes must not change the source.
        self._columns = [None if column is None else _read_only(column) for column in columns]
        self._size = size
        self._done = 0

    def read(self, most: int) -> Block | None:
        """Return the next rows as views."""
        count = min(most, self._size - self._done)
        if count == 0:
            return None
        rows = slice(self._done, self._done + count)
        block = Block(tuple(None if c is None else c[rows] for c in self._columns), count)
        self._done += count  # last: a Ctrl-C before this line loses nothing
        return block


def _read_only(column: Array) -> Array:
    view = column.view()
    view.flags.writeable = False
    return view
