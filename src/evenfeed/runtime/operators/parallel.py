"""Processes several elements at a time, ahead of the reader."""

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final, final

from evenfeed.core.block import Block, Outcome, concatenated, of_rows
from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Bell, Pending
from evenfeed.core.side_effects import changes_state
from evenfeed.plan.elementwise import AUTOTUNE, Map
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import Operator, State, read_full
from evenfeed.runtime.provenance import (
    Provenance,
    RowOrigin,
    merged_origin,
    text_origin,
    unknown_origin,
    with_origin,
)
from evenfeed.runtime.run import Run

# The longest wait in seconds, whatever goes wrong.
_WAIT: Final = 0.05
# With a result ready for delivery, a slow child is not read for longer than this.
_PATIENCE: Final = 0.01


@final
@dataclass(slots=True)
class _Call:
    """A run of elements being processed.

    Attributes:
        number: The index of its first element that is not delivered.
        before: The position of the read that it came from.
        row: The row of that element within the read.
        block: The elements; None if the child failed instead.
        result: The pending outcomes.
        provenance: Looks up the origin of a row.
    """

    number: int
    before: State
    row: int
    block: Block | None
    result: Pending[list[Outcome]]
    provenance: Provenance = unknown_origin


class WorkAhead(Operator):
    """Reads elements and has them processed elsewhere, a few at a time.

    The state is the position of the first element not delivered, and which elements after it were delivered early.

    Args:
        child: The operator to read from.
        function: The function that processes elements, named in messages.
        in_order: Whether a result waits for the results of earlier elements.
    """

    def __init__(self, child: Operator, function: RowFunction, *, in_order: bool) -> None:
        self._child = child
        self.function = function
        self._in_order = in_order
        self._calls: deque[_Call] = deque()
        self._next = 0  # the index of the next element to read
        self._at_work = 0
        self._done = Bell()  # rings when a call is done
        self._early: set[int] = set()  # the elements delivered before an earlier one
        self._ended = False
        self._failed = False

    @abstractmethod
    def start(self, block: Block, number: int) -> Pending[list[Outcome]]:
        """Start processing a few elements. If the result itself raises, no element is to blame."""

    @property
    @abstractmethod
    def ahead(self) -> int:
        """How many elements to read ahead of delivery."""

    @property
    @abstractmethod
    def together(self) -> int:
        """The largest number of elements to start in one call."""

    def read(self, most: int) -> Block | None:
        done: list[Block] = []
        self._try_again()
        self._begin()
        while self._calls and most > 0:
            call = self._turn(patient=not done)
            if call is None:
                break
            outcome = self._result(call)[0]
            if not isinstance(outcome, Block):
                if done:
                    break  # raised by the next read, after the elements before it
                raised = with_origin(outcome, _place(call, outcome))
                self._deliver(call, 1)
                raise raised from raised.__cause__
            rows = outcome.cut(0, most)
            most -= rows.length
            self._deliver(call, rows.length)
            done.append(rows)
            self._begin()
        return concatenated(done) if done else None

    def _turn(self, *, patient: bool) -> _Call | None:
        """Return the next call to deliver: the first, or any that is done; None if it would have to wait."""
        some = [self._calls[0]] if self._in_order else self._calls
        found = next((call for call in some if call.result.done()), None)
        if found is None and patient:
            self._wait(some)
            return self._turn(patient=patient)
        return found

    def _wait(self, some: Iterable[_Call]) -> None:
        try:
            while not any(call.result.done() for call in some):
                self._done.wait(_WAIT)
        except KeyboardInterrupt as stop:
            number, function = self._calls[0].number, self.function
            stop.add_note(
                f"while waiting for element {number} of {function.name}, asked for at {function.origin}"
            )
            raise

    def _result(self, call: _Call) -> list[Outcome]:
        """Return the outcomes of a call; if they are unknown, raise without moving the position."""
        if call.block is not None and call.result.cancelled():  # at exit
            call.result = self._started(call.block, call.number)
        try:
            return call.result.result()
        except Exception:
            self._failed = True
            raise

    def _try_again(self) -> None:
        """Restart calls that failed through no fault of their elements."""
        if self._failed:
            self._failed = False
            for call in self._calls:
                if call.block is not None and call.result.done() and call.result.exception():
                    call.result = self._started(call.block, call.number)

    def _deliver(self, call: _Call, count: int) -> None:
        outcomes = call.result.result()
        first = outcomes[0]
        if isinstance(first, Block) and count < first.length:
            outcomes[0] = first.cut(count, first.length)
        else:
            del outcomes[0]
        if call is not self._calls[0]:
            self._early.update(range(call.number, call.number + count))
        call.number += count
        call.row += count
        self._at_work -= count
        if not outcomes:
            self._calls.remove(call)
        first_open = self._calls[0].number if self._calls else self._next
        if self._early:
            self._early = {number for number in self._early if number > first_open}

    def _begin(self) -> None:
        """Read and start elements until enough are being processed."""
        end = perf_counter() + _PATIENCE
        # Wait until a full call fits, or a consumer that reads a little at a time makes all calls small.
        while not self._ended and (free := self.ahead - self._at_work) >= self.together:
            before = self._child.state()
            try:
                block = self._child.read(free)
            except Exception as error:  # noqa: BLE001 - raised when its turn comes
                failed: Pending[list[Outcome]] = Pending()
                failed.set_result([error])
                self._add(_Call(self._next, before, 0, None, failed), 1)
                continue
            if block is None:
                self._ended = True
                return
            self._start(before, block)
            if perf_counter() > end and self._calls and self._calls[0].result.done():
                return

    def _start(self, before: State, block: Block) -> None:
        row, provenance = 0, self._child.provenance(block.length)
        while row < block.length:
            if self._next in self._early:  # delivered before the state was taken
                self._next += 1
                row += 1
                continue
            count = self._run(min(self.together, block.length - row))
            part = block.cut(row, row + count)
            started = self._started(part, self._next)
            self._add(_Call(self._next, before, row, part, started, provenance), count)
            row += count

    def _started(self, block: Block, number: int) -> Pending[list[Outcome]]:
        started = self.start(block, number)
        started.when_done(self._done.ring)
        return started

    def _run(self, most: int) -> int:
        """Return how many of the next elements, at most `most`, were not delivered early."""
        if not self._early:
            return most
        return next((n for n in range(1, most) if self._next + n in self._early), most)

    def _add(self, call: _Call, count: int) -> None:
        self._calls.append(call)
        self._next += count
        self._at_work += count

    def state(self) -> State:
        if not self._calls:
            return [self._next, self._child.state(), 0, []]
        first = self._calls[0]
        return [first.number, first.before, first.row, sorted(self._early)]

    def restore(self, state: State) -> None:
        self.drop()
        self._ended = False
        self._next, before, row, early = state
        self._early = set(early)
        self._child.restore(before)
        for _ in read_full(self._child, row):
            pass

    def seek(self, count: int) -> None:
        self.drop()
        self._child.seek(count)
        self._ended, self._next, self._early = False, count, set()

    def drop(self) -> None:
        """Cancel everything that is being processed."""
        for call in self._calls:
            call.result.cancel()
        self._calls.clear()
        self._at_work = 0
        self._failed = False

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


def _place(call: _Call, error: BaseException) -> RowOrigin | None:
    """Return the origin of the call's next element, which failed."""
    outcomes = call.result.result()
    left = sum(outcome.length if isinstance(outcome, Block) else 1 for outcome in outcomes)
    index = 0 if call.block is None else call.block.length - left
    return merged_origin(call.provenance(call.row), text_origin(call.block, index, error))


def keeps_order(node: Map, run: Run) -> bool:
    """Return True if a result waits for those of earlier elements: as the step says, or else the options."""
    if run.is_shared:
        return True  # workers that read the same rows must find them in the same order
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
