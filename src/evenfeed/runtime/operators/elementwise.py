"""Operators for map, filter, take_while, scan, enumerate and random_map, and the rows of those with positions."""

import os
from functools import partial
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, Outcome, Positions, of_rows
from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.random_bits import key_of, words_at
from evenfeed.core.side_effects import changes_state
from evenfeed.formats.json_values import from_json, to_json
from evenfeed.plan.elementwise import AUTOTUNE, Map, Scan
from evenfeed.runtime.functions.row_function import FailedRow, RowFunction
from evenfeed.runtime.operator import Operator, PushbackOperator, PushbackReader, State
from evenfeed.runtime.operators.parallel import WorkAhead
from evenfeed.runtime.positions.rows import (
    LARGEST_NUMBER,
    Rows,
    numbered,
    side_by_side,
    uncountable,
)
from evenfeed.runtime.provenance import Provenance, RowOrigin
from evenfeed.runtime.run import Run


@final
class CountElements(Operator):
    """Prepends a running count to each element."""

    def __init__(self, child: Operator, start: int) -> None:
        self._child = child
        self._next = start

    def read(self, most: int) -> Block | None:
        room = max(1, LARGEST_NUMBER + 1 - self._next)
        try:
            block = self._child.read(min(most, room))
        except Exception:
            self._next += 1  # an element that fails is counted, too
            raise
        if block is None:
            return None
        first = self._next
        self._next += block.length
        if first > LARGEST_NUMBER:
            raise uncountable()
        return numbered(block, first + np.arange(block.length, dtype=np.int64))

    def provenance(self, count: int) -> Provenance:
        return self._child.provenance(count)

    def state(self) -> State:
        return [self._next, self._child.state()]

    def restore(self, state: State) -> None:
        self._next, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@final
class DrawKeys(Operator):
    """Prepends random bits to each element; they depend only on the seed and the element's position."""

    def __init__(self, child: Operator, seed: tuple[int, ...]) -> None:
        self._elements = CountElements(child, 0)
        self._key = key_of(*seed)

    def read(self, most: int) -> Block | None:
        block = self._elements.read(most)
        if block is None:
            return None
        numbers, *columns = block.columns
        return keyed(Block(tuple(columns), block.length), self._key, np.asarray(numbers))

    def provenance(self, count: int) -> Provenance:
        return self._elements.provenance(count)

    def state(self) -> State:
        return self._elements.state()

    def restore(self, state: State) -> None:
        self._elements.restore(state)

    def children(self) -> tuple[Operator, ...]:
        return (self._elements,)


@final
class KeyedRows(Rows):
    """Rows with the random bits of their positions prepended."""

    def __init__(self, rows: Rows, seed: tuple[int, ...]) -> None:
        self._rows = rows
        self._key = key_of(*seed)
        self.size = rows.size

    def fetch(self, positions: Positions) -> Block:
        return keyed(self._rows.fetch(positions), self._key, positions)

    def run(self, start: int, count: int) -> Block:
        positions = np.arange(start, start + count, dtype=np.int64)
        return keyed(self._rows.run(start, count), self._key, positions)

    def provenance(self, position: int) -> RowOrigin | None:
        return self._rows.provenance(position)


def keyed(block: Block, key: int, positions: Positions) -> Block:
    """Prepend a column of random bits to a Block."""
    return side_by_side([Block((words_at(key, positions),), block.length), block])


def mapped(child: Operator, function: RowFunction, node: Map, run: Run) -> Operator:
    """Return the operator that runs `function`: on Blocks, or on several elements in parallel."""
    in_order = keeps_order(node, run)
    threads = threads_of(function, node, in_order=in_order)
    if threads == 1:
        return MapRows(child, function)
    return MapInThreads(child, function, threads, in_order=in_order)


def keeps_order(node: Map, run: Run) -> bool:
    """Return True if a result waits for those of earlier elements: as the step says, or else the options."""
    return run.keeps_order if node.deterministic is None else node.deterministic


def threads_of(function: RowFunction, node: Map, *, in_order: bool) -> int:
    """Return how many threads call a function; 1 means the thread that reads.

    A function that assigns variables or pulls from iterators depends on the order of elements, which threads do
    not keep.
    """
    in_turn = in_order and changes_state(function.effects)
    calls = 1 if function.is_vectorised or in_turn else node.num_parallel_calls
    return _autotuned() if calls == AUTOTUNE else calls or 1


def _autotuned() -> int:
    # A function that cannot be traced mostly waits for files, or for libraries that release the GIL.
    return min(32, (os.cpu_count() or 1) + 4)


@final
class MapRows(PushbackOperator):
    """Runs a function on whole Blocks. Skips an element that fails."""

    def __init__(self, child: Operator, function: RowFunction) -> None:
        super().__init__(child)
        self._function = function

    def read(self, most: int) -> Block | None:
        block = self._feed.read(most)
        if block is None:
            return None
        try:
            return self._function.rows(block, self._feed.number - block.length)
        except FailedRow as failed:
            self._feed.give_back_failed(block.length - failed.index, failed.error)
            before = failed.before
        return before or self.read(most)

    def provenance(self, count: int) -> Provenance:
        return self._feed.provenance(count)


@final
class MapInThreads(WorkAhead):
    """Runs a function on several elements at a time, each in its own thread.

    Args:
        child: The operator to read from.
        function: A function that runs per element.
        threads: How many threads to use.
        in_order: Whether a result waits for the results of earlier elements.
    """

    def __init__(
        self, child: Operator, function: RowFunction, threads: int, *, in_order: bool = True
    ) -> None:
        super().__init__(child, function, in_order=in_order)
        self._threads = threads
        self._pool: ThreadPool | None = None

    @property
    def ahead(self) -> int:
        """A quarter more than the threads process: a thread that is done must not wait for the reader."""
        return self._threads + -(-self._threads // 4)

    @property
    def together(self) -> int:
        """One: each element may wait for something else."""
        return 1

    def start(self, block: Block, number: int) -> Pending[list[Outcome]]:
        if self._pool is None:
            self._pool = ThreadPool(self._threads, "evenfeed-map")
        return self._pool.submit(partial(_outcome, self.function, block, number))

    def close(self) -> None:
        """Let the threads end after their current call."""
        self.drop()
        if self._pool is not None:
            self._pool.close()
        super().close()


def _outcome(function: RowFunction, block: Block, number: int) -> list[Outcome]:
    try:
        return [of_rows([function.one(block.row(0), number)])]
    except BaseException as error:  # noqa: BLE001 - raised when the reader reaches it
        return [error]


@final
class MappedRows(Rows):
    """The results of a function for rows. It must be pure: a row may be fetched more than once."""

    def __init__(self, rows: Rows, function: RowFunction) -> None:
        self._rows = rows
        self._function = function
        self.size = rows.size

    def fetch(self, positions: Positions) -> Block:
        return self._function.rows(self._rows.fetch(positions), positions)

    def run(self, start: int, count: int) -> Block:
        return self._function.rows(self._rows.run(start, count), start)

    def provenance(self, position: int) -> RowOrigin | None:
        return self._rows.provenance(position)


class _PredicateOperator(PushbackOperator):
    """Evaluates a predicate on the elements of a child."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        super().__init__(child)
        self._predicate = predicate


@final
class KeepSome(_PredicateOperator):
    """Keeps the elements for which a predicate is true. Never reads more elements than it is asked for."""

    def read(self, most: int) -> Block | None:
        while (block := self._feed.read(most)) is not None:
            kept = np.flatnonzero(self._answers(block))
            if len(kept):
                return block if len(kept) == block.length else block.gather(kept)
        return None

    def _answers(self, block: Block) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Evaluate the predicate; on failure, postpone the error until the elements before it are returned."""
        try:
            answers = self._predicate.rows(block, self._feed.number - block.length)
        except FailedRow as failed:
            self._feed.give_back_failed(block.length - failed.index, failed.error)
            answers = failed.before
        column = None if answers is None else answers.columns[0]
        return np.zeros(0, np.bool_) if column is None else np.asarray(column)


@final
class StopAtFalse(_PredicateOperator):
    """Ends before the first element for which a predicate is false."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        super().__init__(child, predicate)
        self._ended = False

    def read(self, most: int) -> Block | None:
        block = None if self._ended else self._feed.read(most)
        if block is None:
            return None
        for index in range(block.length):  # the predicate must not be called after the first False
            if not self._holds(block, index):
                return block.cut(0, index) if index else self.read(most)
        return block

    def _holds(self, block: Block, index: int) -> bool:
        """Evaluate the predicate on one element; give back the rest if it is false or fails."""
        rest = block.length - index
        try:
            holds = bool(self._predicate.one(block.row(index), self._feed.number - rest)[0])
        except Exception as error:  # noqa: BLE001 - raised after the elements before it
            self._feed.give_back_failed(rest, error)
            return False
        if not holds:
            self._ended = True
            self._feed.give_back(rest)
        return holds

    def state(self) -> State:
        return [self._ended, super().state()]

    def restore(self, state: State) -> None:
        self._ended, inner = state
        super().restore(inner)


@final
class CarryState(Operator):
    """Calls a function with the carried state and each element; it returns the next state and an output."""

    def __init__(self, child: Operator, node: Scan, function: RowFunction) -> None:
        self._feed = PushbackReader(child)
        self._function = function
        self._carried: list[Any] = list(node.initial)

    def read(self, most: int) -> Block | None:
        block = self._feed.read(most)
        if block is None:
            return None
        outputs = self._outputs(block)
        return of_rows(outputs) if outputs else self.read(most)

    def _outputs(self, block: Block) -> list[list[Any]]:
        outputs: list[list[Any]] = []
        count = len(self._carried)
        for index in range(block.length):
            rest = block.length - index
            parts = [*self._carried, *block.row(index)]
            try:
                result = self._function.one(parts, self._feed.number - rest)
            except Exception as error:  # noqa: BLE001 - raised after the elements before it
                self._feed.give_back_failed(rest, error)
                break
            self._carried = result[:count]
            outputs.append(result[count:])
        return outputs

    def state(self) -> State:
        return [[to_json(part) for part in self._carried], self._feed.state()]

    def restore(self, state: State) -> None:
        carried, position = state
        self._carried = [from_json(part) for part in carried]
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        return (self._feed.child,)
