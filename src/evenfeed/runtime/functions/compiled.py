"""Compiled programs of a traced function: runs Blocks of any length with few compilations."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.handles import Handle
from evenfeed.runtime.functions.arithmetic.column_program import Allocate, in_one_piece
from evenfeed.runtime.functions.shapes.shape_pace import ShapePace
from evenfeed.runtime.functions.sharing_work import RowTime, done_by_threads
from evenfeed.runtime.functions.trace_facts import rounds
from evenfeed.runtime.functions.vectorise import BlockProgram, Call, Row, Started, Traced, traced

RowShapes: TypeAlias = tuple[Row | None, ...]

# The most compilations of one function, because each takes 40 to 500 ms.
_MOST_COMPILATIONS: Final = 3
# The most shapes that one function is traced for, if its elements differ in shape.
_MOST_SHAPES: Final = 256
# The most elements that one call computes then.
_MOST_OF_ONE_SHAPE: Final = 64
# A shape that fewer elements had is not compiled.
_WORTH_COMPILING: Final = 32
# A call costs about as much as reading and writing this many bytes, or computing this many numbers.
_CALL_BYTES: Final = 1 << 20
_CALL_WORK: Final = 1 << 20
# In seconds. Calls that together take less are not shared among threads, which takes some of it to begin.
_WORTH_THREADS: Final = 0.0005


@final
class Compiled:
    """The programs of one function, one per shape of its elements.

    Attributes:
        compilations: How often it was compiled.
        finding: What else is known about the function, if others that do the same may use it.
        pace: How long elements of different shapes take.
        row_time: The processor time of a row, with its kernels.
    """

    def __init__(self, call: Call) -> None:
        self.finding: Any = None
        self._call = call
        self._programs: dict[RowShapes, FixedLengthProgram | None] = {}
        self._seen = Counter[RowShapes]()
        self.pace = ShapePace()
        self.row_time = RowTime()
        self._for_some: dict[RowShapes, FixedLengthProgram | None] = {}
        self._seen_rows = Counter[RowShapes]()
        self._lock = Lock()
        self._tracing_lock = Lock()
        self.compilations = 0

    @property
    def may_fail(self) -> bool:
        """Whether a program may fail at some elements: an index is out of range, or an integer is divided by 0."""
        programs = list(self._programs.values())
        return any(p is None or p.found.indexes or p.found.checks for p in programs)

    @property
    def reads(self) -> frozenset[int] | None:
        """The parts that its programs compute with or return, for all shapes seen so far; None if it has none."""
        found = [program.found for program in list(self._programs.values()) if program is not None]
        returned = (part.index for one in found for part in one.parts if isinstance(part, Handle))
        return frozenset[int]().union(*(one.reads for one in found), returned) if found else None

    @property
    def is_exact(self) -> bool:
        """Whether all programs so far compute to the last bit what NumPy would."""
        return all(p is not None and p.found.is_exact for p in list(self._programs.values()))

    @property
    def rounds(self) -> bool:
        """Whether a program so far computes floats, so that the last bits depend on when they are rounded."""
        found = [None if p is None else p.found.closed for p in list(self._programs.values())]
        return any(closed is None or rounds(closed.jaxpr) for closed in found)

    @property
    def is_constant(self) -> bool:
        """Whether it returns the same for all elements, as `lambda x: 1.5` does."""
        found = [program.found for program in list(self._programs.values()) if program is not None]
        parts = [part for one in found for part in one.parts]
        return bool(parts) and not any(isinstance(part, (Row, Handle)) for part in parts)

    def add(self, rows: RowShapes, found: Traced) -> "FixedLengthProgram":
        """Add the program of a trace for elements of these shapes."""
        made = FixedLengthProgram(rows, found, self)
        self._programs[rows] = made
        return made

    def program(self, rows: RowShapes) -> "FixedLengthProgram | None":
        """Return the program for elements of these shapes; None if they should run one by one.

        The first shape is compiled at once. Other shapes are compiled only if they recur, because elements
        that all differ in shape are not worth one compilation each.
        """
        with self._tracing_lock:  # threads that share a Block call this at the same time
            return self._program(rows)

    def _program(self, rows: RowShapes) -> "FixedLengthProgram | None":
        if rows in self._programs:
            return self._programs[rows]
        self._seen[rows] += 1
        if (self._programs and self._seen[rows] < 3) or self.compilations >= _MOST_COMPILATIONS:
            return None
        self._programs[rows] = None  # a shape that fails to trace is not tried again
        return self.add(rows, traced(self._call, rows))

    def program_for_some(self, rows: RowShapes, count: int) -> "FixedLengthProgram | None":
        """Return the program for some elements of a Block; None if they should run one by one.

        A shape is traced and compiled if that pays. It depends on what happened before, which must not be visible in
        the results; so only exact functions are compiled.
        """
        with self._tracing_lock:
            self._seen_rows[rows] += count
            if rows not in self._for_some:
                if not self.pace.may_prepare or len(self._for_some) >= _MOST_SHAPES:
                    return None
                self._for_some[rows] = None  # a shape that fails to trace is not tried again
                with self.pace.preparing():
                    self._for_some[rows] = self._new_for_some(rows)
            program = self._for_some[rows]
            if program is None or program.is_ready:
                return program
            is_worth_it = self.pace.may_prepare and self._seen_rows[rows] >= _WORTH_COMPILING
            if not is_worth_it or not program.found.is_exact:
                return None
            with self.pace.preparing():
                program.make_ready()
            return program

    def _new_for_some(self, rows: RowShapes) -> "FixedLengthProgram":
        known = self._programs.get(rows)
        found = traced(self._call, rows) if known is None else known.found
        found = replace(found, arithmetic=found.arithmetic or found.for_few)
        return FixedLengthProgram(rows, found, self, most=_MOST_OF_ONE_SHAPE)

    def for_one_row(self, rows: RowShapes, found: Traced) -> BlockProgram | None:
        """Return a program for one row; None if that would be one compilation too many."""
        return BlockProgram(rows, found, 1) if self.count_compilation() else None

    def count_compilation(self) -> bool:
        """Count one more compilation; return False if that would be too many."""
        with self._lock:
            free = self.compilations < _MOST_COMPILATIONS
            self.compilations += free
        return free


@final
class FixedLengthProgram:
    """A program for one fixed number of rows: shorter Blocks are padded, longer ones are split.

    XLA may add numbers in another order when there are more rows. With one length, an element is the same
    to the last bit however it is read: in another pass, after a restore, in another shard.

    Attributes:
        found: The trace for elements of this shape.
        length: The number of elements that one call computes.
    """

    def __init__(
        self,
        rows: RowShapes,
        found: Traced,
        owner: Compiled,
        *,
        most: int | None = None,
    ) -> None:
        self.found = found
        self._owner = owner
        own = [row for row in rows if row is not None and not row.shared]
        length = _length(own + _computed(found), found)
        self.length = length if most is None else min(most, length)
        self._program = BlockProgram(rows, found, self.length)
        self._may_run = not _computed(found) or found.arithmetic is not None  # nothing to compile
        self._lock = Lock()
        self._seconds = 0.0  # how long a call takes

    @property
    def computes_nothing(self) -> bool:
        """Whether it only arranges columns."""
        return not _computed(self.found)

    @property
    def is_ready(self) -> bool:
        """Whether it is compiled, or there is nothing to compile."""
        return self._may_run

    def may_run(self) -> bool:
        """Return True if the program is compiled, or one more compilation is allowed."""
        with self._lock:
            self._may_run = self._may_run or self._owner.count_compilation()
        return self._may_run

    def make_ready(self) -> None:
        """Compile the program, whatever the number of compilations."""
        with self._lock:
            self._program.prepare()
            self._may_run = True

    def run(  # noqa: PLR0913 - keyword-only arguments
        self,
        columns: Sequence[Array | list[Array]],
        length: int,
        allocate: Allocate | None = None,
        held: Sequence[Array] = (),
        free: Collection[int] = (),
        *,
        at_once: int = 1,
    ) -> tuple[list[Array], Array | None]:
        """Return the computed columns for `length` rows, and which rows indexed out of range.

        Args:
            columns: The columns of the elements, or lists of rows of one shape.
            length: The number of rows.
            allocate: Allocates result columns, for programs that can write into them.
            held: The values of the variables that the function reads.
            free: The columns that results may be written over.
            at_once: How many calls of the program may run at a time, in threads.
        """
        if self.computes_nothing:
            return [], None
        if (arithmetic := self.found.arithmetic) is not None:
            return arithmetic.run(columns, length, allocate, held, free), None
        done = self._called([in_one_piece(one) for one in columns], length, held, at_once)
        outputs = [_joined(parts, length) for parts in zip(*(one[0] for one in done), strict=True)]
        flags = [one[1] for one in done if one[1] is not None]
        return outputs, _joined(flags, length) if flags else None

    def _called(
        self, columns: Sequence[Array], length: int, held: Sequence[Array], at_once: int
    ) -> list[tuple[list[Array], Array | None]]:
        """Return what the calls for all rows return, in order."""
        size, starts, began = self.length, range(0, length, self.length), perf_counter()

        def start(at: int) -> Started:
            return self._program.start(
                [_padded(one[at : at + size], size) for one in columns], held
            )

        if len(starts) == 1 or at_once == 1 or self._seconds * len(starts) < _WORTH_THREADS:
            at_once = 1
            # Start all calls before waiting for the first.
            done = [one.wait() for one in list(map(start, starts))]
        else:
            done = done_by_threads(lambda at: start(at).wait(), starts, at_once)
        rounds = -(-len(starts) // at_once)
        self._seconds = (perf_counter() - began) / rounds
        return done


def _length(rows: Sequence[Row], found: Traced) -> int:
    """Return how many elements cost about as much as one call, rounded down to a power of two."""
    most = min(
        _CALL_BYTES // max(1, sum(map(_bytes, rows))),
        _CALL_WORK // max(1, found.work),
    )
    return 1 << max(0, most.bit_length() - 1)


def _computed(found: Traced) -> list[Row]:
    return [part for part in found.parts if isinstance(part, Row)]


def _bytes(row: Row) -> int:
    return int(np.prod(row.shape, dtype=np.int64)) * row.dtype.itemsize


def _padded(column: Array, size: int) -> Array:
    if len(column) == size:
        return column
    padded = np.empty((size, *column.shape[1:]), column.dtype)
    padded[: len(column)] = column
    padded[len(column) :] = column[:1]  # repeat the first row: a value that the function accepts
    return padded


def _joined(parts: Sequence[Array], length: int) -> Array:
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return whole if len(whole) == length else whole[:length]
