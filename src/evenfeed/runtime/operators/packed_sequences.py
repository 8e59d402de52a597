"""How rows of tokens fill sequences of a fixed length: first fit, or one after another."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np

from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.row_partitions import from_lengths
from evenfeed.core.text.text_columns import Texts
from evenfeed.plan.packing import Pack
from evenfeed.runtime.operator import State

# Stands for the length of a row that is not a vector.
NO_VECTOR: Final = -1


class Opening(NamedTuple):
    """The position before the row that opened a sequence.

    Attributes:
        before: The position of the child before the read that returned the row.
        row: The index of the row in that read.
        free: How many tokens still fitted, by component and open sequence.
        made: How many sequences and errors had been made.
    """

    before: State
    row: int
    free: list[list[int]]
    made: int


@final
class TokenRows:
    """Rows of tokens: for each component the tokens of all rows, and where each row starts.

    Args:
        values: The tokens.
        starts: Where the rows start, by component.
        counts: The number of tokens in each row, by row and component.
    """

    def __init__(self, values: list[Array], starts: list[Positions], counts: Positions) -> None:
        self.values = values
        self.starts = starts
        self.counts = counts

    @staticmethod
    def of(block: Block, dtypes: Sequence[Any]) -> "TokenRows":
        """Return the elements of a Block as rows."""
        found = [_tokens(*pair, block.length) for pair in zip(block.columns, dtypes, strict=True)]
        counts = np.stack([count for _, _, count in found], axis=1)
        return TokenRows([v for v, _, _ in found], [s for _, s, _ in found], counts)

    def cut(self, start: int, stop: int) -> "TokenRows":
        """Return the rows from `start` to `stop`."""
        return TokenRows(
            self.values, [part[start:stop] for part in self.starts], self.counts[start:stop]
        )

    def shortened(self, lengths: Positions) -> "TokenRows":
        """Return the first tokens of each row, at most `lengths` of each component."""
        return TokenRows(self.values, self.starts, np.minimum(self.counts, lengths))

    def joined(self, part: int) -> Array:
        """Return the tokens of one component in all rows, one row after another."""
        values, starts, counts = self.values[part], self.starts[part], self.counts[:, part]
        if np.array_equal(starts[1:], starts[:-1] + counts[:-1]):
            return values[int(starts[0]) : int(starts[-1] + counts[-1])]
        spans = zip(starts.tolist(), counts.tolist(), strict=True)
        return np.concatenate([values[start : start + count] for start, count in spans])


def _tokens(column: Column, dtype: Any, length: int) -> tuple[Array, Positions, Positions]:
    """Return the tokens of a column, and the start and length of each row."""
    if isinstance(column, RaggedTensor) and column.ragged_rank == 1 and column.held.ndim == 1:
        splits = column.splits.astype(np.int64)
        return np.asarray(column.held), splits[:-1], np.diff(splits)
    if isinstance(column, list):
        rows: list[Array] = [np.asarray(row) for row in column]
        vectors = [row if row.ndim == 1 else np.empty(0, dtype) for row in rows]
        lengths = np.fromiter(map(len, vectors), np.int64, length)
        counts = np.where([row.ndim == 1 for row in rows], lengths, NO_VECTOR)
        return np.concatenate(vectors), from_lengths(lengths, 0, check=False)[:-1], counts
    if isinstance(column, (np.ndarray, Texts)) and column.ndim == 2:
        each = column.shape[1]
        values = np.asarray(column).reshape(-1)
        return values, np.arange(length) * each, np.full(length, each)
    return np.empty(0, dtype), np.zeros(length, np.int64), np.full(length, NO_VECTOR)


class Packer(ABC):
    """Fills sequences with rows, and returns the full ones."""

    @abstractmethod
    def restart(self, free: list[list[int]], opening: Opening) -> None:
        """Forget everything. Then let sequences be open with room for `free`, which `opening` precedes."""

    @abstractmethod
    def add(self, rows: TokenRows, at: Opening) -> Block | None:
        """Add rows; return the sequences that they finish, or None.

        Args:
            rows: The rows.
            at: The position before the first row; its `free` is not used.
        """

    @abstractmethod
    def flush(self) -> Block | None:
        """Return the open sequences, filled up, and forget them; None if there are none."""

    @property
    @abstractmethod
    def oldest(self) -> Opening | None:
        """The position before the row that opened the oldest open sequence; None if none is open."""

    @property
    @abstractmethod
    def filled(self) -> float:
        """How much of the next sequence is certainly full, from 0 to 1."""


def _ids_and_positions(
    lengths: Sequence[int] | Positions, ids: Sequence[int] | Positions, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Return the segment ids and positions of sequences, given the lengths and ids of all segments and gaps."""
    counts = np.asarray(lengths)
    flat = np.repeat(np.asarray(ids, np.int32), counts)
    starts = np.repeat((np.cumsum(counts) - counts).astype(np.int32), counts)
    positions = np.arange(len(flat), dtype=np.int32) - starts
    positions[flat == 0] = 0
    return flat.reshape(shape), positions.reshape(shape)


def _arranged(node: Pack, triples: Sequence[tuple[Array, Array, Array]], count: int) -> Block:
    return Block(tuple(triples[part][kind] for part, kind in node.columns), count)


@final
class Concatenating(Packer):
    """Joins all rows into one, and cuts it into sequences. What is cut off a row begins the next sequence.

    All components of a row have one length, so `free` is that of the first.
    """

    def __init__(self, node: Pack) -> None:
        self._node = node
        self._length = node.lengths[0]
        self._opening: Opening | None = None
        self.restart([], Opening(None, 0, [], 0))

    def restart(self, free: list[list[int]], opening: Opening) -> None:
        self._opening = opening if free else None
        used = self._length - free[0][0] if free else 0
        self._tail = [np.full(used, value[()], value.dtype) for value in self._node.values]
        self._pieces: list[int] = [used] if used else []  # the lengths of the segments in the tail

    def add(self, rows: TokenRows, at: Opening) -> Block | None:
        used, length = len(self._tail[0]), self._length
        ends = used + np.cumsum(rows.counts[:, 0])
        count = int(ends[-1]) // length
        if used == 0 or count:
            self._opening = self._opened_at(ends, rows.counts, count, at)
        whole = [np.concatenate([tail, rows.joined(part)]) for part, tail in enumerate(self._tail)]
        cuts = np.arange(count + 1) * length
        edges = np.unique(np.concatenate([np.cumsum(self._pieces, dtype=np.int64), ends, cuts]))
        firsts = np.searchsorted(edges, cuts)  # the first segment of each sequence
        lengths = np.diff(edges)
        self._pieces = lengths[firsts[-1] :].tolist()
        self._tail = [part[count * length :].copy() for part in whole]
        if not count:
            return None
        inside = np.repeat(firsts[:-1], np.diff(firsts))
        ids = np.arange(len(inside)) - inside + 1
        added = _ids_and_positions(lengths[: len(inside)], ids, (count, length))
        triples = [(part[: count * length].reshape(count, length), *added) for part in whole]
        return _arranged(self._node, triples, count)

    def _opened_at(
        self, ends: Positions, counts: Positions, cut: int, at: Opening
    ) -> Opening | None:
        """Return the position before the row in which the sequence with number `cut` begins."""
        row = int(np.searchsorted(ends, cut * self._length, side="right"))
        if row == len(ends):
            return None
        done, used = divmod(int(ends[row] - counts[row, 0]), self._length)
        free = [[self._length - used]] if used else []
        return Opening(at.before, at.row + row, free, at.made + done)

    def flush(self) -> Block | None:
        used = len(self._tail[0])
        if not used:
            return None
        shape, gap = (1, self._length), self._length - used
        segments = [*self._pieces, gap], [*range(1, len(self._pieces) + 1), 0]
        added = _ids_and_positions(*segments, shape)
        fills = [np.full(gap, value[()], value.dtype) for value in self._node.values]
        parts = zip(self._tail, fills, strict=True)
        triples = [(np.concatenate(part).reshape(shape), *added) for part in parts]
        self.restart([], Opening(None, 0, [], 0))
        return _arranged(self._node, triples, 1)

    @property
    def oldest(self) -> Opening | None:
        return self._opening

    @property
    def filled(self) -> float:
        return len(self._tail[0]) / self._length


@final
class _Bin:
    """An open sequence.

    Attributes:
        values: The tokens of each component, filled up.
        pieces: The lengths of the segments, by component.
        opening: The position before the row that opened it.
    """

    __slots__ = ("opening", "pieces", "values")

    def __init__(self, node: Pack, opening: Opening) -> None:
        pairs = zip(node.lengths, node.values, strict=True)
        self.values = [np.full(length, value[()], value.dtype) for length, value in pairs]
        self.pieces: list[list[int]] = [[] for _ in node.lengths]
        self.opening = opening


@final
class FirstFit(Packer):
    """Puts each row into the oldest open sequence that has room.

    If none has room, it opens another, and first finishes the oldest if too many are open. If it finished another one,
    the oldest might stay open for ever, and a position would have to go back to where it was opened.
    """

    def __init__(self, node: Pack) -> None:
        self._node = node
        self._open: list[_Bin] = []
        # How many tokens still fit, by component and open sequence.
        self._free: list[list[int]] = [[] for _ in node.lengths]

    def restart(self, free: list[list[int]], opening: Opening) -> None:
        self._free = [list(part) for part in free] or [[] for _ in self._node.lengths]
        self._open = [_Bin(self._node, opening) for _ in self._free[0]]
        for place, sequence in enumerate(self._open):
            for part, length in enumerate(self._node.lengths):
                sequence.pieces[part].append(length - self._free[part][place])

    def add(self, rows: TokenRows, at: Opening) -> Block | None:
        finished: list[_Bin] = []
        starts = list(zip(*(part.tolist() for part in rows.starts), strict=True))
        is_long: Any = np.greater(rows.counts, self._node.lengths).any(axis=1)
        for row, counts in enumerate(rows.counts.tolist()):
            if not any(counts):
                continue
            number, opening, pieces = at.made + len(finished), None, [(starts[row], counts)]
            if is_long[row]:  # its pieces change what is free before one of them opens a sequence
                opening = Opening(at.before, at.row + row, self._copied(), number)
                pieces = _pieces(starts[row], counts, self._node.lengths)
            for begins, lengths in pieces:
                place = self._first_with_room(lengths)
                if place is None:
                    opening = opening or Opening(at.before, at.row + row, self._copied(), number)
                    if len(self._open) == self._node.num_bins:
                        finished.append(self._closed(0))
                    place = self._opened(opening)
                if self._put(place, rows.values, begins, lengths):
                    finished.append(self._closed(place))
        return self._stacked(finished) if finished else None

    def _copied(self) -> list[list[int]]:
        return [list(part) for part in self._free]

    def _opened(self, opening: Opening) -> int:
        self._open.append(_Bin(self._node, opening))
        for free, length in zip(self._free, self._node.lengths, strict=True):
            free.append(length)
        return len(self._open) - 1

    def _put(
        self, place: int, values: list[Array], begins: Sequence[int], counts: Sequence[int]
    ) -> bool:
        """Put tokens into an open sequence; return True if it is full then."""
        sequence, full = self._open[place], True
        for part, count in enumerate(counts):
            free, start = self._free[part], begins[part]
            used = self._node.lengths[part] - free[place]
            sequence.values[part][used : used + count] = values[part][start : start + count]
            sequence.pieces[part].append(count)
            free[place] -= count
            full = full and free[place] == 0
        return full

    def _first_with_room(self, counts: Sequence[int]) -> int | None:
        first, alone = counts[0], len(counts) == 1
        for place, free in enumerate(self._free[0]):
            if free >= first and (alone or self._has_room(place, counts)):
                return place
        return None

    def _has_room(self, place: int, counts: Sequence[int]) -> bool:
        return all(free[place] >= n for free, n in zip(self._free, counts, strict=True))

    def _closed(self, place: int) -> _Bin:
        for free in self._free:
            del free[place]
        return self._open.pop(place)

    def _stacked(self, sequences: list[_Bin]) -> Block:
        triples: list[tuple[Array, Array, Array]] = []
        for part, length in enumerate(self._node.lengths):
            pieces = [sequence.pieces[part] for sequence in sequences]
            gaps = [length - sum(each) for each in pieces]
            lengths = [n for each, gap in zip(pieces, gaps, strict=True) for n in (*each, gap)]
            ids = [number for each in pieces for number in (*range(1, len(each) + 1), 0)]
            added = _ids_and_positions(lengths, ids, (len(sequences), length))
            triples.append((np.stack([sequence.values[part] for sequence in sequences]), *added))
        return _arranged(self._node, triples, len(sequences))

    def flush(self) -> Block | None:
        sequences, self._open = self._open, []
        self._free = [[] for _ in self._node.lengths]
        return self._stacked(sequences) if sequences else None

    @property
    def oldest(self) -> Opening | None:
        return self._open[0].opening if self._open else None

    @property
    def filled(self) -> float:
        return 0.0


def _pieces(
    begins: Sequence[int], counts: Sequence[int], lengths: Sequence[int]
) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Return where the pieces of a row that is too long start, and their lengths."""
    found: list[tuple[Sequence[int], Sequence[int]]] = []
    for index in range(max(map(_quotient, counts, lengths))):
        passed = [min(count, index * length) for count, length in zip(counts, lengths, strict=True)]
        starts = [begin + done for begin, done in zip(begins, passed, strict=True)]
        left = zip(counts, passed, lengths, strict=True)
        found.append((starts, [min(count - done, length) for count, done, length in left]))
    return found


def _quotient(count: int, length: int) -> int:
    return -(-count // length)
