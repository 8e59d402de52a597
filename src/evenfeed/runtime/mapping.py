"""Runs a user's function on the elements that come."""

import os
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.block import Block, Positions, of_rows
from evenfeed.plan.mapping import AUTOTUNE, Map
from evenfeed.runtime.functions import FailedRow, RowFunction
from evenfeed.runtime.operator import Feed, Operator, State, read_full
from evenfeed.runtime.rows import Rows


def mapped(child: Operator, function: RowFunction, node: Map) -> Operator:
    """Return the operator that runs `function`: on Blocks, or on several elements at a time."""
    threads = threads_of(function, node)
    if threads == 1:
        return MapRows(child, function)
    return MapInThreads(child, function, threads, in_order=node.deterministic is not False)


def threads_of(function: RowFunction, node: Map) -> int:
    """Return how many threads call a function; 1 is the thread that reads."""
    calls = 1 if function.is_vectorised else node.num_parallel_calls
    return _automatic() if calls == AUTOTUNE else calls or 1


def _automatic() -> int:
    # A function that does not trace mostly waits, for a file or for a library without the GIL.
    return min(32, (os.cpu_count() or 1) + 4)


@final
class MapRows(Operator):
    """Runs a function on whole Blocks. An element at which it fails is passed."""

    def __init__(self, child: Operator, function: RowFunction) -> None:
        self._child = child
        self._feed = Feed(child)
        self._function = function
        self._number = 0
        self._error: Exception | None = None

    def read(self, most: int) -> Block | None:
        """Return the results for the next elements, up to one that fails."""
        if self._error is None:
            block = self._feed.read(most)
            done = None if block is None else self._mapped(block)
            if block is None or done is not None:
                return done
        error, self._error = self._error, None
        self._feed.read(1)
        self._number += 1
        assert error is not None
        raise error from error.__cause__

    def _mapped(self, block: Block) -> Block | None:
        """Return the results up to an error, which is kept; None where it is at the first element."""
        try:
            done = self._function.rows(block, self._number)
        except FailedRow as failed:
            self._feed.give_back(block.length - failed.index)
            self._error = failed.error
            done = failed.before
        self._number += 0 if done is None else done.length
        return done

    def state(self) -> State:
        """Return how many elements there were, and the position behind them."""
        return [self._number, self._feed.state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._error = None
        self._number, inner = state
        self._feed.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)


@final
@dataclass(slots=True)
class _Call:
    """One element at work: its number, and where it was read, as a position and a row behind it."""

    number: int
    before: State
    row: int
    result: "Future[list[Any]]"


@final
class MapInThreads(Operator):
    """Runs a function on several elements at a time, each in a thread.

    It reads ahead as many elements as it works on, and a quarter more: a thread that is done must not
    wait for the reader to come by.

    Args:
        child: Where the elements come from.
        function: Runs per element.
        threads: How many at a time.
        in_order: Whether a result waits for those of earlier elements.
    """

    def __init__(
        self, child: Operator, function: RowFunction, threads: int, *, in_order: bool = True
    ) -> None:
        self._child = child
        self._function = function
        self._threads = threads
        self._ahead = threads + -(-threads // 4)
        self._in_order = in_order
        self._pool: ThreadPoolExecutor | None = None
        self._calls: deque[_Call] = deque()
        self._next = 0
        self._early: set[int] = set()  # delivered before an earlier element
        self._ended = False

    def read(self, most: int) -> Block | None:
        """Return the results that are there, at least one."""
        done: list[list[Any]] = []
        self._begin()
        while self._calls and len(done) < most:
            call = self._turn()
            if done and not call.result.done():
                break
            error = call.result.exception()
            if error is not None and done:
                break  # raised at the next read, behind what came before it
            self._deliver(call)
            if error is not None:
                raise error from error.__cause__
            done.append(call.result.result())
            self._begin()
        return of_rows(done) if done else None

    def _turn(self) -> _Call:
        """Return the next element to deliver: the first, or any that is done."""
        if self._in_order or self._calls[0].result.done():
            return self._calls[0]
        running = [call.result for call in self._calls]
        wait(running, return_when=FIRST_COMPLETED)
        return next(call for call in self._calls if call.result.done())

    def _deliver(self, call: _Call) -> None:
        if call is self._calls[0]:
            self._calls.popleft()
        else:
            self._calls.remove(call)
            self._early.add(call.number)
        first = self._calls[0].number if self._calls else self._next
        self._early = {number for number in self._early if number > first}

    def _begin(self) -> None:
        """Read and start elements until enough are at work."""
        while not self._ended and (free := self._ahead - len(self._calls)) > 0:
            before = self._child.state()
            try:
                block = self._child.read(free)
            except Exception as error:  # noqa: BLE001 - raised when it is its turn
                failed: Future[list[Any]] = Future()
                failed.set_exception(error)
                self._add(before, 0, failed)
                continue
            if block is None:
                self._ended = True
                return
            self._submit(before, block)

    def _submit(self, before: State, block: Block) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "evenfeed-map")
        for row in range(block.length):
            if self._next in self._early:  # delivered before the position was taken up
                self._next += 1
                continue
            number = self._next
            self._add(before, row, self._pool.submit(self._function.one, block.row(row), number))

    def _add(self, before: State, row: int, result: "Future[list[Any]]") -> None:
        self._calls.append(_Call(self._next, before, row, result))
        self._next += 1

    def state(self) -> State:
        """Return where the first element that is not delivered was read, and which behind it are."""
        if not self._calls:
            return [self._next, self._child.state(), 0, []]
        first = self._calls[0]
        return [first.number, first.before, first.row, sorted(self._early)]

    def restore(self, state: State) -> None:
        """Take up a position; what is at work is dropped."""
        self._drop()
        self._ended = False
        self._next, before, row, early = state
        self._early = set(early)
        self._child.restore(before)
        for _ in read_full(self._child, row):
            pass

    def close(self) -> None:
        """End the threads, as soon as they have done what they are at."""
        self._drop()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()

    def _drop(self) -> None:
        for call in self._calls:
            call.result.cancel()
        self._calls.clear()

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)


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
