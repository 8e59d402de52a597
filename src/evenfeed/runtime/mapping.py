"""Runs a user's function on the elements that come."""

import os
from functools import partial
from typing import final

from evenfeed.core.block import Block, Outcome, Positions, of_rows
from evenfeed.core.side_effects import changes_state
from evenfeed.core.thread_pool import ThreadPool
from evenfeed.core.waiting import Pending
from evenfeed.plan.mapping import AUTOTUNE, Map
from evenfeed.runtime.ahead import WorkAhead
from evenfeed.runtime.functions import FailedRow, RowFunction
from evenfeed.runtime.operator import Fed, Operator
from evenfeed.runtime.rows import Rows
from evenfeed.runtime.run import Run
from evenfeed.runtime.whence import Place, Whence


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
class MapRows(Fed):
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
            self._feed.refuse(block.length - failed.index, failed.error)
            before = failed.before
        return before or self.read(most)

    def whence(self, count: int) -> Whence:
        """Return where the elements of the child come from, one for each."""
        return self._feed.whence(count)


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

    def whence(self, position: int) -> Place | None:
        """Return where the one row comes from."""
        return self._rows.whence(position)
