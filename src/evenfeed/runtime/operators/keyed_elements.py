"""Collects elements by their keys, for group_by_window."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions, concatenated, in_one_piece
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import FailedRow, Operator
from evenfeed.runtime.read_size import Stretch

_FIRST: Final[Positions] = np.zeros(1, np.int64)


@final
class FullGroups:
    """Reads the elements of a child, and collects them by their keys: many at a time if that is unobservable.

    Args:
        child: Has the elements.
        key: Returns the key of an element.
        window: Returns how many elements fill the group of a key. It is asked once for each key, as in TensorFlow.
    """

    def __init__(self, child: Operator, key: RowFunction, window: Callable[[int], int]) -> None:
        self._child = child
        self._key = key
        self._window = window
        self._number = 0  # how many elements were read, those that failed included
        self._stretch = Stretch()
        self._may_ask_early = key.is_pure and key.is_vectorised
        # Elements that were read together, with their keys, and the errors of their keys, in order.
        self._waiting: deque[tuple[Block, Positions] | Exception] = deque()
        self._windows: dict[int, int] = {}
        self._parts: dict[int, list[Block]] = {}  # the groups that are not full
        self._lengths: dict[int, int] = {}
        self._full: deque[tuple[int, Block]] = deque()

    def next(self) -> tuple[int, Block] | None:
        """Return the next full group and its key; at the end, the remaining groups in the order of their keys."""
        while not self._full:
            if not self._waiting and not self._read():
                return self._group(min(self._parts)) if self._parts else None
            found = self._waiting.popleft()
            if isinstance(found, Exception):
                raise found from found.__cause__
            self._collect(*found)
        return self._full.popleft()

    def _read(self) -> bool:
        """Read elements and find their keys. Return False at the end."""
        together = self._may_ask_early and self._child.hides_reads
        read = self._child.read
        try:
            block = self._stretch.read(read, 1) if together else read(1)
        except Exception:
            self._number += 1
            raise
        if block is None:
            return False
        self._number += block.length
        first, block = self._number - block.length, block.cut_up()
        if together:
            self._find_keys(block, first)
        else:
            block = _apart(block.gather(_FIRST))
            self._waiting.append((block, np.asarray(self._key.one(block.row(0), first)[0])[None]))
        return True

    def _find_keys(self, block: Block, first: int) -> None:
        done = 0
        while done < block.length:
            rest = block.cut(done, block.length)
            try:
                keys, error = self._key.rows(rest, first + done), None
            except FailedRow as failed:
                keys, error = failed.before, failed.error
            if keys is not None:
                self._waiting.append((rest.cut(0, keys.length), np.asarray(keys.columns[0])))
                done += keys.length
            if error is not None:
                self._waiting.append(error)
                done += 1

    def _collect(self, block: Block, keys: Positions) -> None:
        """Add elements to their groups, up to the first whose key is new: its window is asked for in its turn."""
        if (first := int(keys[0])) not in self._windows:
            try:
                self._windows[first] = self._window(first)
            except Exception:  # the element joins no group
                self._wait(block, keys, 1)
                raise
        known = next(
            (at for at, key in enumerate(keys.tolist()) if key not in self._windows), len(keys)
        )
        self._wait(block, keys, known)
        self._add(block, keys[:known])

    def _wait(self, block: Block, keys: Positions, start: int) -> None:
        if start < len(keys):
            self._waiting.appendleft((block.cut(start, block.length), keys[start:]))

    def _add(self, block: Block, keys: Positions) -> None:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(keys)]
        full: list[tuple[int, tuple[int, Block]]] = []
        for start, end in pairwise(starts):
            full += self._fill(int(ordered[start]), block, order[start:end])
        full.sort(key=lambda found: found[0])
        self._full.extend(group for _, group in full)

    def _fill(
        self, key: int, block: Block, rows: Positions
    ) -> Iterator[tuple[int, tuple[int, Block]]]:
        """Add the elements of a key to its groups. Yield each group that is full, with the row that filled it."""
        start, window = 0, self._windows[key]
        while (stop := start + window - self._lengths.get(key, 0)) <= len(rows):
            self._parts.setdefault(key, []).append(block.gather(rows[start:stop]))
            yield int(rows[stop - 1]), self._group(key)
            start = stop
        if start < len(rows):
            # A view of a part would keep the whole Block in memory until its group is full.
            self._parts.setdefault(key, []).append(_apart(block.gather(rows[start:])))
            self._lengths[key] = self._lengths.get(key, 0) + len(rows) - start

    def _group(self, key: int) -> tuple[int, Block]:
        self._lengths.pop(key, None)
        rows = concatenated(self._parts.pop(key))
        return key, Block(tuple(map(in_one_piece, rows.columns)), rows.length)


def _apart(block: Block) -> Block:
    return Block(tuple(map(_copied_items, block.columns)), block.length)


def _copied_items(column: Column) -> Column:
    if not isinstance(column, list):
        return column
    return [part.copy() if type(part) is np.ndarray else part for part in column]
