"""Simple functions as NumPy calls on columns, which run on pieces that fit in the CPU cache."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.runtime.functions.arithmetic.byte_programs import ByteProgram, byte_program
from evenfeed.runtime.functions.arithmetic.column_steps import ColumnStep, computed, in_place

# A piece of a column has at most this many bytes, or one row: more would not fit in the CPU cache.
_PIECE_BYTES: Final = 1 << 18

# With fewer steps, pieces gain less than they cost.
_STEPS_IN_PIECES: Final = 4

# The shape and dtype of one row.
Kind: TypeAlias = tuple[tuple[int, ...], DType]

# Allocates a result column, from the number of the result and the kind of its rows.
Allocate: TypeAlias = Callable[[int, Kind], Array]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnBody:
    """What a function computes, before it is decided which memory each call writes to.

    Attributes:
        values: A slot for each value: first the columns, then variables, constants and results.
        by_row: The slots of values that differ from row to row.
        kinds: The shapes and dtypes of the values that own their memory.
        steps: The calls.
        results: The slots of the results, and the shapes and dtypes of their rows.
        given: The shapes and dtypes of the columns and variables.
    """

    values: Sequence[Any]
    by_row: frozenset[int]
    kinds: Mapping[int, Kind]
    steps: Sequence[ColumnStep]
    results: Sequence[tuple[int, Kind]]
    given: Sequence[Kind]

    def placed(self) -> "ColumnArithmetic":
        """Return the calls with the memory that each writes to."""
        kept = [slot for slot, _ in self.results]
        steps = in_place(self.steps, self.kinds, self.by_row, kept)
        over = self._over(kept) or steps
        overwritten = frozenset(step.out for step in over if 0 <= step.out < len(self.given))
        return ColumnArithmetic(
            self,
            steps,
            self._roots({step.target: step for step in steps}, kept),
            over,
            overwritten,
            [_origin({step.target: step for step in over}, slot) for slot in kept],
            self._rows_per_piece(),
            self._of_bytes(),
        )

    def _of_bytes(self) -> ByteProgram | None:
        """Return the compiled program for images of bytes; None for other functions."""
        if len(self.results) != 1:
            return None
        return byte_program(self.steps, self.values, self.by_row, self.given, self.results[0])

    def _over(self, kept: Sequence[int]) -> list[ColumnStep] | None:
        """Return steps that all write over columns; None if one needs other memory.

        Only these cannot fail after a column was changed: if memory is short, the function runs element by element.
        """
        columns = {slot: kind for slot, kind in enumerate(self.given) if slot in self.by_row}
        over = in_place(self.steps, {**self.kinds, **columns}, self.by_row, kept)
        return over if all(step.out >= 0 for step in over if step.target in self.kinds) else None

    def _roots(self, steps: dict[int, ColumnStep], results: Sequence[int]) -> dict[int, int]:
        """Return the steps whose output memory ends up as a result, if they accept an `out` array."""
        found: dict[int, int] = {}
        for number, result in enumerate(results):
            slot = _origin(steps, result)
            if slot in steps and slot in self.by_row and steps[slot].writes:
                found[slot] = number
        return found

    def _rows_per_piece(self) -> int | None:
        """Return how many rows to compute at a time; None if all."""
        made = [self.kinds[step.target] for step in self.steps if step.target in self.kinds]
        sizes = [_bytes(kind) for kind in (*made, *(kind for _, kind in self.results))]
        rows = _PIECE_BYTES // max(1, *sizes, 1)
        return max(1, rows) if rows <= 1 or len(made) >= _STEPS_IN_PIECES else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnArithmetic:
    """A function as NumPy calls, each on columns.

    Attributes:
        body: What they compute.
        steps: The calls.
        roots: For each slot whose memory ends up as a result, the number of that result.
        over: The same calls, but all write over columns; `steps` if some need other memory.
        overwritten: The columns that they write over.
        places: For each result, the slot whose memory `over` writes it to.
        rows_per_piece: How many rows to compute at a time; None if all.
        of_bytes: Computes the same in one pass; None if the function does something else than to make floats of bytes.
    """

    body: ColumnBody
    steps: Sequence[ColumnStep]
    roots: dict[int, int]
    over: Sequence[ColumnStep]
    overwritten: frozenset[int]
    places: Sequence[int]
    rows_per_piece: int | None
    of_bytes: ByteProgram | None

    def run(
        self,
        columns: Sequence[Array | list[Array]],
        length: int,
        allocate: Allocate | None = None,
        held: Sequence[Array] = (),
        free: Collection[int] = (),
    ) -> list[Array]:
        """Return the computed columns. They must not be written to, because two may share memory.

        Args:
            columns: The columns of the elements, or lists of rows of one shape.
            length: The number of rows.
            allocate: Allocates the result columns.
            held: The values of the variables, shared by all rows.
            free: The columns that are not needed any more: results are written over them where that takes no memory.
        """
        size, is_over = self.rows_per_piece, self.overwritten.issubset(free)
        with np.errstate(all="ignore"):
            if size == 1 or (size is not None and size < length):
                if is_over and self.overwritten.issuperset(self.places):
                    return self._over_pieces([in_one_piece(one) for one in columns], held, length)
                allocate = allocate or partial(_allocated, length)
                return self._in_pieces(columns, held, length, allocate)
            steps = self.over if is_over else self.steps
            given = [*map(in_one_piece, columns), *held]
            values = computed(steps, given, self.body.values, {})
        return [np.broadcast_to(values[at], (length, *kind[0])) for at, kind in self.body.results]

    def of_row(self, columns: Sequence[Array]) -> list[Array]:
        """Return the computed columns for columns of one row. The caller silences NumPy's warnings."""
        values = computed(self.steps, columns, self.body.values, {})
        return [
            found if found.ndim > len(kind[0]) else np.broadcast_to(found, (1, *kind[0]))
            for found, kind in ((values[at], kind) for at, kind in self.body.results)
        ]

    def _in_pieces(
        self,
        columns: Sequence[Array | list[Array]],
        held: Sequence[Array],
        length: int,
        allocate: Allocate,
    ) -> list[Array]:
        """Run all steps on one piece at a time, while it is in the CPU cache."""
        found = [allocate(number, kind) for number, (_, kind) in enumerate(self.body.results)]
        if self.of_bytes is not None and self.of_bytes.run(columns, found[0]):
            return found
        size = self.rows_per_piece or length
        for start in range(0, length, size):
            stop = start + size
            outs = [column[start:stop] for column in found]
            memory = {root: outs[number] for root, number in self.roots.items()}
            piece = [_piece(column, start, stop) for column in columns]
            values = computed(self.steps, [*piece, *held], self.body.values, memory)
            for out, (at, _) in zip(outs, self.body.results, strict=True):
                if values[at] is not out:
                    out[...] = values[at]
        return found

    def _over_pieces(
        self, columns: Sequence[Array], held: Sequence[Array], length: int
    ) -> list[Array]:
        """Run all steps on one piece at a time, and write the results over the columns."""
        size = self.rows_per_piece or length
        for start in range(0, length, size):
            piece = [column[start : start + size] for column in columns]
            computed(self.over, [*piece, *held], self.body.values, {})
        return [np.broadcast_to(columns[place], columns[place].shape) for place in self.places]


def _origin(steps: Mapping[int, ColumnStep], slot: int) -> int:
    """Return the slot whose memory a value is written to."""
    while slot in steps and steps[slot].out >= 0:
        slot = steps[slot].out
    return slot


def _bytes(kind: Kind) -> int:
    return prod(kind[0]) * kind[1].itemsize


def _allocated(length: int, _: int, kind: Kind) -> Array:
    return np.empty((length, *kind[0]), kind[1])


def in_one_piece(column: Array | list[Array]) -> Array:
    """Return a column as one array; stack it if it is a list of rows."""
    return np.stack(column) if isinstance(column, list) else column


def _piece(column: Array | list[Array], start: int, stop: int) -> Array:
    if not isinstance(column, list):
        return column[start:stop]
    return column[start][None] if stop - start == 1 else np.stack(column[start:stop])
