"""Runs a traced function on a whole Block: its kernels, then its compiled program.

Threads may share one Block. Each takes small pieces of it as it becomes free, and writes its results straight into
the columns of the whole result.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from time import perf_counter, thread_time
from typing import Any, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core.block import (
    Block,
    Column,
    ScratchBlock,
    concatenated,
    frozen,
    in_one_piece,
)
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.handles import Handle
from evenfeed.core.randomness.drawn_columns import DrawsVary, Turns
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.core.specs import is_of_one_shape
from evenfeed.core.traced.kernel_stages import NewKernel
from evenfeed.plan.elementwise import AUTOTUNE
from evenfeed.runtime.functions.compiled import Compiled, FixedLengthProgram
from evenfeed.runtime.functions.kernels import Kernels, shared_row
from evenfeed.runtime.functions.probing import NewVariables
from evenfeed.runtime.functions.shapes.by_shape import Run, by_shape
from evenfeed.runtime.functions.sharing_work import cores, done_by_threads
from evenfeed.runtime.functions.staging.row_shapes import row_shape, row_shapes, rows_of
from evenfeed.runtime.functions.vectorise import Row

# The results for some rows, and which rows failed; None if there is no program for these rows.
Done: TypeAlias = tuple[Block, Array | None] | None
# Returns the memory for a result column, given its number and the shape and dtype of its rows.
Place: TypeAlias = Callable[[int, tuple[int, ...], DType], Array]

# A trace for elements of another shape found something that the first trace did not know.
_RETRACED: Final = (NewKernel, NewVariables, ProbeAbandoned, DrawsVary)

# Pieces per thread: with fewer, all threads would wait for the slowest one.
_PIECES: Final = 4


@final
class OutputColumns:
    """The result columns for a whole Block. Each thread writes the rows of its piece into them."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._columns: dict[int, Array] = {}
        self._lock = Lock()

    def place(
        self, number: int, start: int, count: int, shape: tuple[int, ...], dtype: DType
    ) -> Array:
        """Return the memory for `count` rows of a column: new memory if the shape or dtype does not fit."""
        with self._lock:
            column = self._columns.get(number)
            if column is None:
                column = self._columns[number] = np.empty((self._length, *shape), dtype)
        if column.shape[1:] != shape or column.dtype != dtype:
            return np.empty((count, *shape), dtype)
        return column[start : start + count]

    def holds(self, number: int, part: Column) -> bool:
        """Return True if the rows of a column are already in place."""
        column = self._columns.get(number)
        return column is not None and isinstance(part, np.ndarray) and part.base is column

    def whole(self, blocks: Sequence[Block]) -> Block:
        """Return all rows as one Block, without a copy if all columns are in place."""
        if not all(
            self._is_in_place(number, part) for b in blocks for number, part in enumerate(b.columns)
        ):
            return concatenated(blocks)
        columns = tuple(self._columns.get(number) for number in range(len(blocks[0].columns)))
        return Block(columns, self._length)

    def _is_in_place(self, number: int, part: Column) -> bool:
        return part is None or self.holds(number, part)


@final
class Piece:
    """Some rows of a Block from `start` on, and the memory for their results."""

    def __init__(self, block: Block, start: int, outputs: OutputColumns) -> None:
        self.block = block
        self.start = start
        self._outputs = outputs

    def place(self, number: int, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return the memory for a result column."""
        return self._outputs.place(number, self.start, self.block.length, shape, dtype)

    def put(self, block: Block) -> Block:
        """Write results into place, while they are still in this core's cache."""
        columns = (self._written(number, column) for number, column in enumerate(block.columns))
        return Block(tuple(columns), block.length)

    def _written(self, number: int, column: Column) -> Column:
        if not isinstance(column, np.ndarray) or self._outputs.holds(number, column):
            return column
        place = self.place(number, column.shape[1:], column.dtype)
        place[...] = column
        return place


def in_threads(
    call: Callable[[Piece], Done], block: Block, threads: int, shortest: int = 1
) -> Done:
    """Return what `call` returns for a Block; threads take pieces of it as they become free.

    Args:
        call: Computes a piece.
        block: The elements.
        threads: How many threads share them.
        shortest: How many elements a piece has at least, if there are pieces for all threads.
    """
    outputs = OutputColumns(block.length)
    if threads == 1 or block.length == 1:
        return call(Piece(block, 0, outputs))
    most = -(-block.length // threads)
    size = min(most, max(shortest, -(-most // _PIECES)))

    def compute(start: int) -> Done:
        piece = Piece(block.cut(start, start + size), start, outputs)
        found = call(piece)
        return None if found is None else (piece.put(found[0]), found[1])

    done = done_by_threads(compute, range(0, block.length, size), threads)
    results = [one for one in done if one is not None]
    if len(results) < len(done):
        return None
    flags = [one[1] for one in results if one[1] is not None]
    whole = outputs.whole([one[0] for one in results])
    return whole, np.concatenate(flags) if flags else None


def threads_for(kernels: Kernels, parallel_calls: int | None) -> int:
    """Return how many threads share a Block: one, unless the function has row kernels."""
    if not kernels.in_rows or parallel_calls is None:
        return 1
    return cores() if parallel_calls == AUTOTUNE else min(parallel_calls, 4 * cores())


def calls_at_once(threads: int, parallel_calls: int | None) -> int:
    """Return how many calls of a compiled program may run at a time.

    Their results do not depend on that, so a heavy function uses all cores even if the user did not ask for it, as
    JAX does within a call. Not if threads share the Block already.
    """
    if threads > 1:
        return 1
    return cores() if parallel_calls in (None, AUTOTUNE) else min(parallel_calls, cores())


def can_fail(compiled: Compiled, kernels: Kernels) -> bool:
    """Return True if a compiled function may fail at some elements."""
    alike = all(map(is_of_one_shape, kernels.inputs))
    return not alike or bool(kernels.calls) or compiled.may_fail


def on_blocks(  # noqa: PLR0913, PLR0917 - what a function consists of, and how it is called
    compiled: Compiled,
    kernels: Kernels,
    block: Block,
    parallel_calls: int | None,
    turns: Turns,
    singly: Callable[[Block], Block] | None = None,
) -> Done:
    """Return the results, and which rows indexed out of range; None if the Block must run element by element.

    Args:
        compiled: The programs of the function.
        kernels: Its kernels.
        block: The elements.
        parallel_calls: How many elements the user wants to be processed at a time.
        turns: Where its random operations are in their sequences.
        singly: Calls the function with each element of a Block; None if it must be called with all elements or none.
    """
    threads = threads_for(kernels, parallel_calls)
    alone = singly if threads == 1 and not kernels.operations else None
    time, watched = compiled.row_time, False
    if threads > 1 and not kernels.wait:
        watched = time.is_worth_sharing(block.length)
        threads = threads if watched and time.is_faster_shared else 1
    at_once = calls_at_once(threads, parallel_calls)
    computing = _Computing(compiled, kernels, turns, at_once, alone)
    start = perf_counter()
    try:
        done = in_threads(computing.done, block, threads, time.least_piece)
        if watched:
            time.note(perf_counter() - start, block.length, shared=threads > 1)
        return done
    except (Exception, *_RETRACED):  # noqa: BLE001 - run one by one, it fails again at the bad row
        return None


@final
@dataclass(frozen=True, slots=True)
class _Computing:
    """How the pieces of a Block are computed; see `on_blocks`."""

    compiled: Compiled
    kernels: Kernels
    turns: Turns
    at_once: int
    singly: Callable[[Block], Block] | None

    def done(self, piece: Piece) -> Done:
        """Return the results for a piece, and which rows failed."""
        start = thread_time()
        found = self._found(piece)
        self.compiled.row_time.add(thread_time() - start, piece.block.length)
        return found

    def _found(self, piece: Piece) -> Done:
        block = self.kernels.widened(piece.block, self.turns, piece.start)
        held, rows = self.kernels.held(), row_shapes(block, self.kernels)
        if rows is None:
            return self._by_shape(block, held)
        program = self.compiled.program((*rows, *map(shared_row, held)))
        if program is None or not program.may_run():
            return None
        return self._run(program, block, rows, held, piece.place)

    def _by_shape(self, block: Block, held: Sequence[Array]) -> Done:
        elements = by_shape(block, self.kernels)
        shared = tuple(map(shared_row, held))
        pace = self.compiled.pace

        def choose(one: Block, count: int) -> Run | None:
            rows = row_shapes(one, self.kernels)
            if rows is None:
                raise TypeError("An element has another dtype than its spec.")
            program = self.compiled.program_for_some((*rows, *shared), count)
            if program is None or (self.singly is not None and pace.is_faster_singly(count)):
                return None
            return lambda some: self._all_or_none(program, some, rows, held)

        return None if elements is None else (elements.run(choose, self._singly), None)

    def _all_or_none(
        self,
        program: FixedLengthProgram,
        block: Block,
        rows: Sequence[Row | None],
        held: Sequence[Array],
    ) -> Block:
        """Return the results for elements of one shape, among others of other shapes."""
        start = perf_counter()
        found, failed = self._run(program, block, rows, held, None)
        if failed is not None and failed.any():
            raise ValueError("An element failed, which may not be the first that does.")
        self.compiled.pace.add_call(perf_counter() - start)
        return found

    def _singly(self, block: Block) -> Block:
        if self.singly is None:
            raise TypeError("There is no program for elements of this shape.")
        start = perf_counter()
        own = block.columns[: len(self.kernels.inputs)]
        done = self.singly(Block(own, block.length))
        self.compiled.pace.add_singly(perf_counter() - start, block.length)
        return done

    def _run(
        self,
        program: FixedLengthProgram,
        block: Block,
        rows: Sequence[Row | None],
        held: Sequence[Array],
        place: Place | None,
    ) -> tuple[Block, Array | None]:
        pairs = zip(block.columns, rows, strict=True)
        found = [rows_of(column) for column, row in pairs if row is not None]
        numeric = [column for column in found if column is not None]
        parts = program.found.parts
        numbers = [number for number, part in enumerate(parts) if isinstance(part, Row)]
        outputs, failed = program.run(
            numeric,
            block.length,
            None if place is None else lambda number, kind: place(numbers[number], *kind),
            held,
            free_columns(block, rows, parts),
            at_once=self.at_once,
        )
        return assembled(block, parts, outputs, place), failed


def free_columns(block: Block, rows: Sequence[Row | None], parts: Sequence[Any]) -> Collection[int]:
    """Return which numeric columns nobody needs after the function has computed with them."""
    if not isinstance(block, ScratchBlock):
        return ()
    kept = {part.index for part in parts if isinstance(part, Handle)}
    numeric = [index for index, row in enumerate(rows) if row is not None]
    return {
        number
        for number, index in enumerate(numeric)
        if index not in kept and type(block.columns[index]) is np.ndarray
    }


def assembled(
    block: Block, parts: Sequence[Any], outputs: Sequence[Any], place: Place | None = None
) -> Block:
    """Return the columns of a result: computed, passed through or constant.

    Args:
        block: The elements, with the results of kernels.
        parts: What each column of the result is.
        outputs: The computed columns.
        place: Returns memory for a column, given its number and the shape and dtype of its rows.
    """
    computed = iter(outputs)
    uses = Counter(part.index for part in parts if isinstance(part, Handle))
    columns: list[Column] = []
    for number, part in enumerate(parts):
        match part:
            case Row():
                columns.append(next(computed))
            case Handle():
                if uses[part.index] == 1:
                    columns.append(_in_place(block, part.index, place and partial(place, number)))
                else:
                    # Read-only, because two parts share memory: a write to one must not change the other.
                    columns.append(frozen(in_one_piece(block.columns[part.index])))
            case None:
                columns.append(None)
            case _:
                columns.append(np.broadcast_to(part, (block.length, *part.shape)))
    return Block(tuple(columns), block.length)


def _in_place(
    block: Block, index: int, place: Callable[[tuple[int, ...], DType], Array] | None
) -> Column:
    """Return a column in one piece, with as few copies of the results of row kernels as possible."""
    column = block.columns[index]
    if not isinstance(column, list) or place is None or type(column[0]) is not np.ndarray:
        return in_one_piece(column)
    first = cast("Array", column[0])
    if len(column) == 1 and _is_only_here(first, block, index):
        return first[None]
    row = row_shape(column) if first.dtype.kind in "biuf" else None
    if row is None or not row.shape:
        return in_one_piece(column)
    out = place(row.shape, row.dtype)
    for new, old in zip(out, column, strict=True):
        new[...] = old
    return out


def _is_only_here(array: Array, block: Block, index: int) -> bool:
    """Return True if no other column of a Block has the memory of an array that a kernel made."""
    owns = array.base is None and array.flags.c_contiguous and array.flags.writeable
    if not owns or array.dtype.kind not in "biuf" or array.ndim == 0:
        return False
    others = (other for place, other in enumerate(block.columns) if place != index)
    return not any(item is array for other in others if isinstance(other, list) for item in other)
