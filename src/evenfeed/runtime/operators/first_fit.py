"""Packs rows by first fit: each goes into the oldest open sequence that has room."""

from functools import cache
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.ragged.row_partitions import copy_rows, is_copied
from evenfeed.core.text.numba_loops import compiled, is_worth_it
from evenfeed.plan.packing import Pack
from evenfeed.runtime.operators.packed_sequences import Opening, Packer, TokenRows, arranged
from evenfeed.runtime.operators.packing_loops import (
    FIELDS,
    FINISHED,
    NUMBER,
    OPEN,
    ROW,
    number_tokens,
    place_rows,
)

# Stands for the row that opened a sequence before a position was restored. That position is its opening.
_RESTORED: Final = -1


@final
class FirstFit(Packer):
    """Puts each row into the oldest open sequence that has room.

    If none has room, it opens another, and finishes the oldest first if too many are open. Finishing any other could
    leave the oldest open forever, and restoring a position would mean reading again from where it was opened.
    """

    def __init__(self, node: Pack) -> None:
        self._node = node
        self._parts = len(node.lengths)
        self._lengths = np.array(node.lengths)
        self._sheets = [_Sheet(*pair) for pair in zip(node.lengths, node.values, strict=True)]
        self._seen = 0
        self._in_arrays = False
        self._count = 0  # how many sequences are open
        # By slot: what `place_rows` knows, and the position before the rows of the read in which it was opened.
        self._order: Any = list(range(node.num_bins))
        self._free: Any = [0] * (node.num_bins * self._parts)
        self._book: Any = [0] * (node.num_bins * FIELDS)
        self._before: Any = [0] * ((node.num_bins + 1) * node.num_bins * self._parts)
        self._openings = [Opening(None, 0, [], 0)] * node.num_bins
        # The rows of the sheets that hold the open sequences, the oldest first, and those that are not in use.
        self._rows: list[int] = []
        self._spare: list[int] = []

    def restart(self, free: list[list[int]], opening: Opening) -> None:
        self._spare += self._rows
        self._rows = []
        count = len(free[0]) if free else 0
        for slot, left in enumerate(zip(*free, strict=True)):
            self._free[slot * self._parts : (slot + 1) * self._parts] = left
        self._order[:] = range(self._node.num_bins)
        self._rows = self._taken(count)
        for slot in range(count):
            self._openings[slot] = opening
            self._book[slot * FIELDS + ROW] = _RESTORED

    def add(self, rows: TokenRows, at: Opening) -> Block | None:
        self._seen += len(rows.counts)
        fast = is_worth_it(self._seen)
        each = (-(-rows.counts // self._lengths)).max(axis=1)  # pieces of a row
        of_row = np.repeat(np.arange(len(each)), each)
        passed = (np.arange(len(of_row)) - np.repeat(np.cumsum(each) - each, each))[:, None]
        passed = np.minimum(passed * self._lengths, rows.counts[of_row])
        sizes = np.minimum(rows.counts[of_row] - passed, self._lengths)
        numbers, ids, offsets, finished = self._placed(of_row, sizes, at, fast=fast)
        places = np.array(self._rows, np.int64)[numbers]
        for part, sheet in enumerate(self._sheets):
            starts = rows.starts[part][of_row] + passed[:, part]
            where = places * self._node.lengths[part] + offsets[:, part]
            tokens = np.ascontiguousarray(sizes[:, part])
            sheet.write(rows.values[part], starts, tokens, where)
            sheet.number(where, tokens, ids, fast=fast)
        return self._returned(finished)

    def _placed(
        self, of_row: Positions, sizes: Positions, at: Opening, *, fast: bool
    ) -> tuple[Positions, Positions, Positions, list[int]]:
        """Place pieces; return the number of the sequence, the segment id and the offsets of each, and what is finished.

        `_rows` then has a row for each number.
        """
        if fast and not self._in_arrays:  # compiled loops need them
            self._in_arrays = True
            self._order, self._free = np.array(self._order), np.array(self._free)
            self._book, self._before = np.array(self._book), np.array(self._before)
        made = np.array if fast else np.ndarray.tolist
        pieces, before = len(of_row), len(self._rows)
        for number in range(before):
            self._book[self._order[number] * FIELDS + NUMBER] = number
        out = [np.zeros(count, np.int64) for count in (pieces, pieces, sizes.size)]
        finished = np.zeros(before + pieces, np.int64)
        numbers, ids, offsets, ended = (made(part) for part in (*out, finished))
        place = _loops()[0] if fast else place_rows
        count, done = place(
            made(of_row),
            made(sizes.reshape(-1)),
            self._lengths if fast else self._node.lengths,
            before, self._order, self._free, self._book, self._before,
            numbers, ids, offsets, ended,
        )  # fmt: skip
        self._count = count
        self._rows += self._taken(count + done - before)
        for slot in self._order[:count]:
            if self._book[slot * FIELDS + NUMBER] >= before:
                self._openings[slot] = at
        shaped = np.asarray(offsets, np.int64).reshape(sizes.shape)
        return np.asarray(numbers, np.int64), np.asarray(ids, np.int64), shaped, list(ended[:done])

    @property
    def oldest(self) -> Opening | None:
        if not self._rows:
            return None
        slot = int(self._order[0])
        at = self._openings[slot]
        if self._book[slot * FIELDS + ROW] == _RESTORED:
            return at
        book = [int(value) for value in self._book[slot * FIELDS : (slot + 1) * FIELDS]]
        start = slot * self._node.num_bins * self._parts
        free = np.array(self._before[start : start + book[OPEN] * self._parts], np.int64)
        by_part: list[list[int]] = free.reshape(-1, self._parts).T.tolist()
        return Opening(at.before, at.row + book[ROW], by_part, at.made + book[FINISHED])

    def _returned(self, finished: list[int]) -> Block | None:
        """Return the sequences with these numbers, and keep the rows of those that are open."""
        rows = self._rows
        ended = [rows[number] for number in finished]
        slots = self._order[: self._count]
        self._rows = [rows[self._book[slot * FIELDS + NUMBER]] for slot in slots]
        return self._cut_out(ended)

    def _cut_out(self, rows: list[int]) -> Block | None:
        if not rows:
            return None
        self._spare += rows
        return arranged(self._node, [sheet.rows(rows) for sheet in self._sheets], len(rows))

    def _taken(self, count: int) -> list[int]:
        """Return rows of the sheets that are not in use, as blank sequences."""
        missing = count - len(self._spare)
        if missing > 0:
            start = self._sheets[0].height
            for sheet in self._sheets:
                sheet.grow(missing)
            self._spare += range(start, start + missing)
        rows, self._spare = self._spare[:count], self._spare[count:]
        for sheet in self._sheets:
            sheet.blank(rows)
        return rows

    def flush(self) -> Block | None:
        rows, self._rows = self._rows, []
        return self._cut_out(rows)

    @property
    def filled(self) -> float:
        return 0.0


@final
class _Sheet:
    """The sequences of one component that are being filled: their tokens, segment ids and positions.

    Attributes:
        height: How many sequences there is room for.
    """

    def __init__(self, length: int, value: Array) -> None:
        self._length = length
        self._value = value
        self._parts = [np.zeros((0, length), dtype) for dtype in (value.dtype, np.int32, np.int32)]
        self._numbers = np.arange(length, dtype=np.int32)

    @property
    def height(self) -> int:
        return len(self._parts[0])

    def grow(self, count: int) -> None:
        """Add room for more sequences."""
        more = [np.zeros((count, self._length), part.dtype) for part in self._parts]
        pairs = zip(self._parts, more, strict=True)
        self._parts = [np.concatenate(pair) for pair in pairs]

    def blank(self, rows: list[int]) -> None:
        """Fill sequences with the padding value."""
        for part, value in zip(self._parts, (self._value[()], 0, 0), strict=True):
            part[rows] = value

    def rows(self, rows: list[int]) -> tuple[Array, Array, Array]:
        """Return copies of sequences."""
        tokens, ids, positions = (part[rows] for part in self._parts)
        return tokens, ids, positions

    def write(self, values: Array, starts: Positions, sizes: Positions, places: Positions) -> None:
        """Copy the tokens of pieces to their places."""
        out = self._parts[0].reshape(-1)
        if is_copied(values, len(starts)):
            copy_rows(values, starts, sizes, out, places)
            return
        for start, size, place in zip(
            starts.tolist(), sizes.tolist(), places.tolist(), strict=True
        ):
            out[place : place + size] = values[start : start + size]

    def number(self, places: Positions, sizes: Positions, ids: Positions, *, fast: bool) -> None:
        """Write the segment ids and positions of pieces."""
        out_ids, positions = (part.reshape(-1) for part in self._parts[1:])
        if fast:
            _loops()[1](places, sizes, ids, out_ids, positions)
            return
        for place, size, number in zip(places.tolist(), sizes.tolist(), ids.tolist(), strict=True):
            out_ids[place : place + size] = number
            positions[place : place + size] = self._numbers[:size]


@cache
def _loops() -> tuple[Any, Any]:
    return compiled(place_rows), compiled(number_tokens)
