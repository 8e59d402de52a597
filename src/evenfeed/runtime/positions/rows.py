"""Rows: elements that can be fetched by position, in any order and any number of times."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import Final, final

import numpy as np

from evenfeed.core.block import (
    Block,
    Column,
    Positions,
    concatenated,
    fetched_apart,
    read_only,
)
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE
from evenfeed.runtime.operator import FailedRow, Operator, State
from evenfeed.runtime.positions.orders import Order, length_of_round, size_of_rounds
from evenfeed.runtime.provenance import Provenance, RowOrigin, with_origin

LARGEST_NUMBER: Final = 2**63 - 1
_LARGE: Final = 1 << 14  # bytes that take longer to copy than strides cost later
_ALL: Final = 1 << 62  # more rows than any read asks for, and a position beyond any row


class Rows(ABC):
    """A fixed number of elements, each with a position.

    Attributes:
        size: How many there are; INFINITE if they do not end.
        fetch_copies: Whether `fetch` returns arrays that nobody else refers to.
        run_copies: Whether `run` does.
    """

    size: int
    fetch_copies: bool = False
    run_copies: bool = False

    @abstractmethod
    def fetch(self, positions: Positions) -> Block:
        """Return the elements at `positions`, in that order; only the first ones if others have another shape."""

    def run(self, start: int, count: int) -> Block:
        """Return `count` elements from `start` on; only the first ones if others have another shape."""
        return self.fetch(np.arange(start, start + count, dtype=np.int64))

    def partly(self, parts: Collection[int]) -> "Rows | None":  # noqa: ARG002 - most are read as a whole
        """Return the same rows, of which only some parts are read; None if that saves nothing.

        The other parts are zeros and empty text. `fetch` and `run` raise Unread if these would hide an error.

        Args:
            parts: The indices of the parts to read, at least.
        """
        return None

    def provenance(self, position: int) -> RowOrigin | None:  # noqa: ARG002 - most rows do not know
        """Return the origin of the row at `position`; None if unknown."""
        return None


@final
class OneRow(Rows):
    """A single row. However often it is fetched, a large array of it is in memory once, and read-only."""

    size = 1

    def __init__(self, columns: Sequence[Column]) -> None:
        # Changing an element must not change the source.
        self._block = read_only(Block(tuple(columns), 1))

    def fetch(self, positions: Positions) -> Block:
        columns = (_repeated(column, positions) for column in self._block.columns)
        return Block(tuple(columns), len(positions))

    def run(self, start: int, count: int) -> Block:
        return self._block.cut(start, start + count)


def _repeated(column: Column, positions: Positions) -> Column:
    if isinstance(column, np.ndarray) and column.nbytes > _LARGE:
        return np.broadcast_to(column[0], (len(positions), *column.shape[1:]))
    return Block((column,), 1).gather(positions).columns[0]


@final
class Reordered(Rows):
    """Rows in another order."""

    def __init__(self, rows: Rows, order: Order) -> None:
        self._rows = rows
        self._order = order
        self.size = order.size

    def fetch(self, positions: Positions) -> Block:
        return self._rows.fetch(self._order.at(positions))

    def run(self, start: int, count: int) -> Block:
        return fetch_steps(self._rows, self._order, start, count)

    def partly(self, parts: Collection[int]) -> Rows | None:
        rows = self._rows.partly(parts)
        return None if rows is None else Reordered(rows, self._order)

    def provenance(self, position: int) -> RowOrigin | None:
        return self._rows.provenance(_at(self._order, position))


@final
class Zipped(Rows):
    """Rows side by side, as many as the shortest part has."""

    def __init__(self, parts: Sequence[Rows], size: int) -> None:
        self._parts = parts
        self.size = size

    def fetch(self, positions: Positions) -> Block:
        return _cut_alike([part.fetch(positions) for part in self._parts])

    def run(self, start: int, count: int) -> Block:
        return _cut_alike([part.run(start, count) for part in self._parts])


@final
class Chained(Rows):
    """The rows of several parts, one part after the other; only the last may be infinite."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = parts
        ends = list(accumulate(part.size for part in parts[:-1]))
        self._starts = np.minimum([0, *ends], _ALL).astype(np.int64)
        self.size = INFINITE if parts[-1].size == INFINITE else sum(part.size for part in parts)

    def fetch(self, positions: Positions) -> Block:
        places = self._places(positions)
        within = positions - self._starts[places]
        return fetched_apart(places, within, lambda part, rows: _fetch_all(self._parts[part], rows))

    def run(self, start: int, count: int) -> Block:
        places: list[int] = self._places(np.array([start, start + count - 1])).tolist()
        if places[0] == places[1]:
            return self._parts[places[0]].run(start - int(self._starts[places[0]]), count)
        return super().run(start, count)

    def provenance(self, position: int) -> RowOrigin | None:
        place = int(self._places(np.array([position]))[0])
        return self._parts[place].provenance(position - int(self._starts[place]))

    def _places(self, positions: Positions) -> Positions:
        """Return the part that each position lies in; an empty part has none."""
        return np.searchsorted(self._starts, positions, side="right") - 1


@final
class Rounds(Rows):
    """Rows that differ in each round of a repeat, one round after the other."""

    def __init__(self, start: Callable[[int], Rows], size: int, count: int) -> None:
        self._start = start
        self._round = length_of_round(size)
        self._rows: dict[int, Rows] = {}
        self.size = size_of_rounds(size, count)

    def fetch(self, positions: Positions) -> Block:
        rounds, within = np.divmod(positions, self._round)
        self._rows = {
            number: self._rows.get(number) or self._start(number)
            for number in np.unique(rounds).tolist()
        }
        return fetched_apart(
            rounds, within, lambda number, rows: _fetch_all(self._rows[number], rows)
        )

    def run(self, start: int, count: int) -> Block:
        number, within = divmod(start, self._round)
        if within + count > self._round:
            return super().run(start, count)
        self._rows = {number: self._rows.get(number) or self._start(number)}
        return self._rows[number].run(within, count)

    def provenance(self, position: int) -> RowOrigin | None:
        """Known only for rounds of the last fetch."""
        number, within = divmod(position, self._round)
        rows = self._rows.get(number)
        return None if rows is None else rows.provenance(within)


@final
class Numbered(Rows):
    """Rows with a running count prepended."""

    def __init__(self, rows: Rows, start: int) -> None:
        self._rows = rows
        self._start = start
        self.size = rows.size

    def fetch(self, positions: Positions) -> Block:
        if self._start > 0 and len(positions):
            last = int(positions.max()) + self._start
            if last > LARGEST_NUMBER:
                raise FailedRow(0, None, uncountable())
        rows = self._rows.fetch(positions)
        return numbered(rows, positions[: rows.length] + self._start)

    def provenance(self, position: int) -> RowOrigin | None:
        return self._rows.provenance(position)


@final
class Walk(Operator):
    """Reads rows in an order. Its position is a single number."""

    def __init__(self, rows: Rows, order: Order) -> None:
        self._rows = rows
        self._order = order
        self._step = 0
        self._reported: set[str] = set()
        self._most = _ALL  # the most rows to fetch at a time; fewer after recent failures
        self._last: tuple[int, Positions] = (
            0,
            np.zeros(0, np.int64),
        )  # the first step and the positions of the last fetch

    @property
    def reads_freely(self) -> bool:
        """Rows can be fetched any number of times."""
        return True

    def read(self, most: int) -> Block | None:
        while (left := self._left(min(most, self._most))) > 0:
            try:
                block = self._fetched(left)
            except FailedRow as failed:
                if left > 1:  # first deliver the rows before the one that fails
                    self._most = left // 2
                    continue
                self._step += 1
                error = (
                    None
                    if self._is_reported(failed)
                    else with_origin(failed.error, self.provenance(1)(0))
                )
                self._step += max(0, failed.damaged - 1)
                if error is None:
                    continue
            else:
                self._step += block.length
                self._most = min(2 * self._most, _ALL)
                return block
            raise error from error.__cause__
        return None

    def _left(self, most: int) -> int:
        return most if self._order.size < 0 else min(most, self._order.size - self._step)

    def _is_reported(self, failed: FailedRow) -> bool:
        """Return True if an earlier row reported the same damage: a damaged page or file is one error."""
        message = str(getattr(failed.error, "message", failed.error))
        if not failed.damaged or message in self._reported:
            return failed.damaged > 0
        self._reported.add(message)
        return False

    def _fetched(self, count: int) -> Block:
        first = self._order.consecutive(self._step, count)
        if first is not None:
            return self._rows.run(first, count)
        positions = self._order.stretch(self._step, count)
        self._last = self._step, positions
        return self._rows.fetch(positions)

    def provenance(self, count: int) -> Provenance:
        first, (start, positions) = self._step - count, self._last

        def found(index: int) -> RowOrigin | None:
            at = first + index - start  # going back in a shuffled order is slow
            known = 0 <= at < len(positions)
            return self._rows.provenance(
                int(positions[at]) if known else _at(self._order, first + index)
            )

        return found

    def seek(self, count: int) -> None:
        self.restore(count)

    def rewound(self, count: int) -> State | None:
        return self._step - count

    def state(self) -> State:
        return self._step

    def restore(self, state: State) -> None:
        self._step = state
        self._reported = set()


def fetch_steps(rows: Rows, order: Order, start: int, count: int) -> Block:
    """Return the rows that `order` has from step `start` on; views if they are consecutive."""
    first = order.consecutive(start, count)
    return rows.fetch(order.stretch(start, count)) if first is None else rows.run(first, count)


def _at(order: Order, step: int) -> int:
    return int(order.at(np.array([step], np.int64))[0])


def _fetch_all(rows: Rows, positions: Positions) -> Block:
    """Return the rows at all positions, even if their shapes differ."""
    blocks = [rows.fetch(positions)]
    while (done := sum(block.length for block in blocks)) < len(positions):
        blocks.append(rows.fetch(positions[done:]))
    return concatenated(blocks)


def _cut_alike(blocks: Sequence[Block]) -> Block:
    """Return Blocks side by side, cut to the shortest."""
    least = min(block.length for block in blocks)
    return side_by_side([block.cut(0, least) for block in blocks])


def side_by_side(blocks: Sequence[Block]) -> Block:
    """Return one Block with the columns of all Blocks, which have equal lengths."""
    columns = tuple(column for block in blocks for column in block.columns)
    return Block(columns, blocks[0].length)


def uncountable() -> InvalidArgumentError:
    """Return the error for an element whose index does not fit in 64 bits."""
    return InvalidArgumentError(
        f"enumerate cannot count beyond {LARGEST_NUMBER}, the largest 64-bit integer.",
        fix="pass a smaller start.",
    )


def numbered(block: Block, numbers: Positions) -> Block:
    """Prepend a column of numbers to a Block."""
    columns: tuple[Column, ...] = (numbers, *block.columns)
    return Block(columns, block.length)
