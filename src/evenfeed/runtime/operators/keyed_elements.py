"""Reads elements together with their keys, for group_by_window."""

from collections import deque
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import FailedRow, Operator
from evenfeed.runtime.read_size import Stretch, is_free


@final
class KeyedElements:
    """Reads the elements of a child and their keys: many at a time if that is unobservable."""

    def __init__(self, child: Operator, key: RowFunction) -> None:
        self._child = child
        self._key = key
        self._number = 0
        self._stretch = Stretch() if is_free(child, key) else None
        # Elements that were read together, with their keys; None if a key is not known yet.
        self._waiting: deque[tuple[list[Any], int | None]] = deque()

    def next(self) -> tuple[list[Any], int] | None:
        """Return the parts and the key of the next element; None at the end."""
        self._number += 1  # an element that fails is counted, too
        if not self._waiting:
            read = self._child.read
            block = read(1) if self._stretch is None else self._stretch.read(read, 1)
            if block is None:
                return None
            rows = map(block.row, range(block.length))
            self._waiting.extend(zip(rows, self._keys(block), strict=True))
        parts, key = self._waiting.popleft()
        # A view of a part would keep the whole Block in memory until its group is full.
        row = [part.copy() if type(part) is np.ndarray else part for part in parts]
        if key is None:
            key = int(np.asarray(self._key.one(row, self._number - 1)[0]))
        return row, key

    def _keys(self, block: Block) -> list[Any]:
        if self._stretch is None:
            return [None]
        try:
            answers = self._key.rows(block, self._number - 1)
        except FailedRow:  # it fails again at its element
            return [None] * block.length
        return np.asarray(answers.columns[0]).tolist()
