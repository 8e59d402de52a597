"""How rows of tokens fill sequences of a fixed length: what all ways share, and the way that joins and cuts rows."""

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


def arranged(node: Pack, triples: Sequence[tuple[Array, Array, Array]], count: int) -> Block:
    """Return sequences as a Block, given the tokens, segment ids and positions of each component."""
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
        return arranged(self._node, triples, count)

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
        return arranged(self._node, triples, 1)

    @property
    def oldest(self) -> Opening | None:
        return self._opening

    @property
    def filled(self) -> float:
        return len(self._tail[0]) / self._length
