"""Reads elements together with their keys, for group_by_window."""

from collections import deque
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import FailedRow, Operator
from evenfeed.runtime.read_size import Stretch


@final
class KeyedElements:
    """Reads the elements of a child and their keys: many at a time if that is unobservable."""

    def __init__(self, child: Operator, key: RowFunction) -> None:
        self._child = child
        self._key = key
        self._number = 0
        self._stretch = Stretch()
        self._may_ask_early = key.is_pure and key.is_vectorised
        # Elements that were read together, with their keys, or the errors of their keys; None if a key is not known yet.
        self._waiting: deque[tuple[list[Any], int | Exception | None]] = deque()

    def next(self) -> tuple[list[Any], int] | None:
        """Return the parts and the key of the next element; None at the end."""
        self._number += 1  # an element that fails is counted, too
        if not self._waiting:
            together = self._may_ask_early and self._child.hides_reads
            read = self._child.read
            block = self._stretch.read(read, 1) if together else read(1)
            if block is None:
                return None
            keys = self._keys(block) if together else [None]
            self._waiting.extend(zip(map(block.row, range(block.length)), keys, strict=True))
        parts, key = self._waiting.popleft()
        if isinstance(key, Exception):
            raise key from key.__cause__
        # A view of a part would keep the whole Block in memory until its group is full.
        row = [part.copy() if type(part) is np.ndarray else part for part in parts]
        if key is None:
            key = int(np.asarray(self._key.one(row, self._number - 1)[0]))
        return row, key

    def _keys(self, block: Block) -> list[Any]:
        """Return the keys of all elements, or the errors that they raise."""
        found: list[Any] = []
        while len(found) < block.length:
            rest = block.cut(len(found), block.length)
            try:
                answers = self._key.rows(rest, self._number - 1 + len(found))
            except FailedRow as failed:
                found += [] if failed.before is None else _whole_numbers(failed.before)
                found.append(failed.error)
            else:
                found += _whole_numbers(answers)
        return found


def _whole_numbers(keys: Block) -> list[int]:
    return np.asarray(keys.columns[0]).tolist()
