"""Operators that return one element for each that they read."""

import os
from functools import partial
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, Outcome, Positions, of_rows
from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.json_values import from_json, to_json
from evenfeed.core.random_bits import key_of, words_at
from evenfeed.core.side_effects import changes_state
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
    """Puts a count before each element."""

    def __init__(self, child: Operator, start: int) -> None:
        self._child = child
        self._next = start

    def read(self, most: int) -> Block | None:
        """Return the next elements with their numbers."""
        room = max(1, LARGEST_NUMBER + 1 - self._next)
        try:
            block = self._child.read(min(most, room))
        except Exception:
            self._next += 1  # an element that fails has a number too
            raise
        if block is None:
            return None
        first = self._next
        self._next += block.length
        if first > LARGEST_NUMBER:
            raise uncountable()
        return numbered(block, first + np.arange(block.length, dtype=np.int64))

    def provenance(self, count: int) -> Provenance:
        """Return where the same elements of the child come from."""
        return self._child.provenance(count)

    def state(self) -> State:
        """Return the next number, and the child's position."""
        return [self._next, self._child.state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._next, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)


@final
class DrawKeys(Operator):
    """Puts the random bits of its position before each element."""

    def __init__(self, child: Operator, seed: tuple[int, ...]) -> None:
        self._elements = CountElements(child, 0)
        self._key = key_of(*seed)

    def read(self, most: int) -> Block | None:
        """Return the next elements with their bits."""
        block = self._elements.read(most)
        if block is None:
            return None
        numbers, *columns = block.columns
        return keyed(Block(tuple(columns), block.length), self._key, np.asarray(numbers))

    def provenance(self, count: int) -> Provenance:
        """Return where the same elements of the child come from."""
        return self._elements.provenance(count)

    def state(self) -> State:
        """Return the next position, and the child's."""
        return self._elements.state()

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._elements.restore(state)

    def children(self) -> tuple[Operator, ...]:
        """Return what counts the elements."""
        return (self._elements,)


@final
class KeyedRows(Rows):
    """Rows behind the random bits of their positions."""

    def __init__(self, rows: Rows, seed: tuple[int, ...]) -> None:
        self._rows = rows
        self._key = key_of(*seed)
        self.size = rows.size

    def fetch(self, positions: Positions) -> Block:
        """Return the rows at `positions`, each behind its bits."""
        return keyed(self._rows.fetch(positions), self._key, positions)

    def run(self, start: int, count: int) -> Block:
        """Return `count` rows from `start` on, each behind its bits."""
        positions = np.arange(start, start + count, dtype=np.int64)
        return keyed(self._rows.run(start, count), self._key, positions)

    def provenance(self, position: int) -> RowOrigin | None:
        """Return where the same row comes from."""
        return self._rows.provenance(position)


def keyed(block: Block, key: int, positions: Positions) -> Block:
    """Return the block with a first column of random bits."""
    return side_by_side([Block((words_at(key, positions),), block.length), block])


def mapped(child: Operator, function: RowFunction, node: Map, run: Run) -> Operator:
    """Return the operator that runs `function`: on Blocks, or on several elements at a time."""
    in_order = keeps_order(node, run)
    threads = threads_of(function, node, in_order=in_order)
    if threads == 1:
        return MapRows(child, function)
    return MapInThreads(child, function, threads, in_order=in_order)


def keeps_order(node: Map, run: Run) -> bool:
    """Return True if a result waits for those of earlier elements: as the step says, or the options."""
    return run.keeps_order if node.deterministic is None else node.deterministic


def threads_of(function: RowFunction, node: Map, *, in_order: bool) -> int:
    """Return how many threads call a function; 1 is the thread that reads.

    What a function assigns or pulls depends on the order of the elements, which threads do not keep.
    """
    in_turn = in_order and changes_state(function.effects)
    calls = 1 if function.is_vectorised or in_turn else node.num_parallel_calls
    return _automatic() if calls == AUTOTUNE else calls or 1


def _automatic() -> int:
    # A function that does not trace mostly waits, for a file or for a library without the GIL.
    return min(32, (os.cpu_count() or 1) + 4)


@final
class MapRows(PushbackOperator):
    """Runs a function on whole Blocks. An element at which it fails is passed."""

    def __init__(self, child: Operator, function: RowFunction) -> None:
        super().__init__(child)
        self._function = function

    def read(self, most: int) -> Block | None:
        """Return the results for the next elements, up to one that fails."""
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
        """Return where the elements of the child come from, one for each."""
        return self._feed.provenance(count)


@final
class MapInThreads(WorkAhead):
    """Runs a function on several elements at a time, each in a thread.

    Args:
        child: Where the elements come from.
        function: Runs per element.
        threads: How many at a time.
        in_order: Whether a result waits for those of earlier elements.
    """

    def __init__(
        self, child: Operator, function: RowFunction, threads: int, *, in_order: bool = True
    ) -> None:
        super().__init__(child, function, in_order=in_order)
        self._threads = threads
        self._pool: ThreadPool | None = None

    @property
    def ahead(self) -> int:
        """A quarter more than is worked on: a thread that is done must not wait for the reader."""
        return self._threads + -(-self._threads // 4)

    @property
    def together(self) -> int:
        """One: each may wait for something of its own."""
        return 1

    def start(self, block: Block, number: int) -> Pending[list[Outcome]]:
        """Give an element to a thread."""
        if self._pool is None:
            self._pool = ThreadPool(self._threads, "evenfeed-map")
        return self._pool.submit(partial(_outcome, self.function, block, number))

    def close(self) -> None:
        """End the threads, as soon as they have done what they are at."""
        self.drop()
        if self._pool is not None:
            self._pool.close()
        super().close()


def _outcome(function: RowFunction, block: Block, number: int) -> list[Outcome]:
    try:
        return [of_rows([function.one(block.row(0), number)])]
    except BaseException as error:  # noqa: BLE001 - raised where the reader reaches it
        return [error]


@final
class MappedRows(Rows):
    """What a function gives for rows. It must be pure: a row may be fetched more than once."""

    def __init__(self, rows: Rows, function: RowFunction) -> None:
        self._rows = rows
        self._function = function
        self.size = rows.size

    def fetch(self, positions: Positions) -> Block:
        """Return the results for the rows at `positions`."""
        return self._function.rows(self._rows.fetch(positions), positions)

    def run(self, start: int, count: int) -> Block:
        """Return the results for `count` rows from `start` on."""
        return self._function.rows(self._rows.run(start, count), start)

    def provenance(self, position: int) -> RowOrigin | None:
        """Return where the one row comes from."""
        return self._rows.provenance(position)


class _Asks(PushbackOperator):
    """Asks a predicate about the elements of a child."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        super().__init__(child)
        self._predicate = predicate


@final
class KeepSome(_Asks):
    """Keeps the elements for which a predicate is true."""

    def read(self, most: int) -> Block | None:
        """Return elements that stay; what is read is never more than what is asked for."""
        while (came := self._feed.read(most)) is not None:
            kept = np.flatnonzero(self._answers(came))
            if len(kept):
                return came if len(kept) == came.length else came.gather(kept)
        return None

    def _answers(self, came: Block) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Ask the predicate; where it fails, the error waits until what came before is delivered."""
        try:
            answers = self._predicate.rows(came, self._feed.number - came.length)
        except FailedRow as failed:
            self._feed.give_back_failed(came.length - failed.index, failed.error)
            answers = failed.before
        column = None if answers is None else answers.columns[0]
        return np.zeros(0, np.bool_) if column is None else np.asarray(column)


@final
class StopAtFalse(_Asks):
    """Ends before the first element for which a predicate is false."""

    def __init__(self, child: Operator, predicate: RowFunction) -> None:
        super().__init__(child, predicate)
        self._ended = False

    def read(self, most: int) -> Block | None:
        """Return the elements up to the first that does not stay."""
        came = None if self._ended else self._feed.read(most)
        if came is None:
            return None
        for index in range(came.length):  # behind the first false it must not be asked
            if not self._holds(came, index):
                return came.cut(0, index) if index else self.read(most)
        return came

    def _holds(self, came: Block, index: int) -> bool:
        """Ask about one element; where the answer is no, or an error, the rest is given back."""
        rest = came.length - index
        try:
            holds = bool(self._predicate.one(came.row(index), self._feed.number - rest)[0])
        except Exception as error:  # noqa: BLE001 - it is raised when what came before is delivered
            self._feed.give_back_failed(rest, error)
            return False
        if not holds:
            self._ended = True
            self._feed.give_back(rest)
        return holds

    def state(self) -> State:
        """Return whether it has ended, and the position."""
        return [self._ended, super().state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._ended, inner = state
        super().restore(inner)


@final
class CarryState(Operator):
    """Calls a function with the state and each element, for the next state and an output."""

    def __init__(self, child: Operator, node: Scan, function: RowFunction) -> None:
        self._feed = PushbackReader(child)
        self._function = function
        self._carried: list[Any] = list(node.initial)

    def read(self, most: int) -> Block | None:
        """Return the outputs for the next elements, up to one that fails."""
        came = self._feed.read(most)
        if came is None:
            return None
        outputs = self._outputs(came)
        return of_rows(outputs) if outputs else self.read(most)

    def _outputs(self, came: Block) -> list[list[Any]]:
        outputs: list[list[Any]] = []
        count = len(self._carried)
        for index in range(came.length):
            rest = came.length - index
            parts = [*self._carried, *came.row(index)]
            try:
                result = self._function.one(parts, self._feed.number - rest)
            except Exception as error:  # noqa: BLE001 - it is raised when its turn comes
                self._feed.give_back_failed(rest, error)
                break
            self._carried = result[:count]
            outputs.append(result[count:])
        return outputs

    def state(self) -> State:
        """Return the state that is carried, and the position."""
        return [[to_json(part) for part in self._carried], self._feed.state()]

    def restore(self, state: State) -> None:
        """Take up state and position."""
        carried, position = state
        self._carried = [from_json(part) for part in carried]
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._feed.child,)
