"""Maps elements in threads, for user functions that wait or release the GIL."""

import os
from collections import deque
from collections.abc import Callable, Iterable
from operator import length_hint
from time import perf_counter
from typing import Final, final

from evenfeed.core.block import Block, Outcome, of_rows
from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.core.concurrency.waiting import Bell, Pending
from evenfeed.core.side_effects import changes_state
from evenfeed.plan.elementwise import AUTOTUNE, Map
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import FailedRow, Operator, State, rows_per_block
from evenfeed.runtime.operators.parallel import Work, WorkAhead
from evenfeed.runtime.operators.thread_tuning import Tuner
from evenfeed.runtime.peek import Result

# In seconds. A thread gets as many elements at a time as take about this long: waking it takes about 50 microseconds.
_RUN_SECONDS: Final = 0.0005
_LONGEST_RUN: Final = 256
# In seconds. The thread that reads takes more at a time, because each read has a cost of its own.
_READ_SECONDS: Final = 0.002
# The fastest of the last runs says how long an element takes: in the others, the thread may have waited for the GIL.
_RUNS: Final = 8
# The longest wait in seconds, if a bell was rung for another thread.
_WAIT: Final = 0.05


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

    A thread takes one element after another, several of them at a time if the function is fast. So no element waits
    for another, and threads are seldom woken.

    Args:
        child: The operator to read from.
        function: A function that runs per element.
        threads: How many threads to use.
        in_order: Whether a result waits for the results of earlier elements.
        tuned: Whether to call the function in the reading thread if that is as fast.
    """

    def __init__(
        self,
        child: Operator,
        function: RowFunction,
        threads: int,
        *,
        in_order: bool = True,
        tuned: bool = False,
    ) -> None:
        super().__init__(child, function, in_order=in_order)
        self._threads = threads
        self._pool: ThreadPool | None = None
        self._pace = _RunPace()
        self._tuner = Tuner(threads, function) if tuned else None
        self._more = 0  # how many elements to read ahead of delivery, though fewer would do
        self._added = (
            0  # how many were read for threads without work, while the reader waited for an element
        )

    @property
    def ahead(self) -> int:
        """A quarter more than the threads process: a thread that is done must not wait for the reader.

        Long runs are read ahead only if that goes unnoticed, or if the consumer waits for them.
        """
        if self._is_here:
            return 0  # what threads have begun is delivered first
        least = self._threads + -(-self._threads // 4)
        wanted = least * self._run_length
        if not self._child.hides_reads:
            return max(least, min(wanted, self.asked))
        return max(wanted, self._more)

    @property
    def together(self) -> int:
        return max(1, min(self._run_length, self.ahead // self._threads))

    @property
    def _run_length(self) -> int:
        return self._pace.rows if self.function.is_pure else 1

    @property
    def _is_here(self) -> bool:
        """True if the function is called in the thread that reads."""
        return self._tuner is not None and self._tuner.is_here and not self._early

    def read(self, most: int) -> Block | None:
        self._more = self._added = 0
        is_alone = self._is_here and self.is_idle
        block = self._read_here(most) if is_alone else super().read(most)
        if self._tuner is not None and block is not None:
            self._tuner.learn(block.length, is_settled=is_alone or not self._is_here)
        return block

    def _read_here(self, most: int) -> Block | None:
        """Call the function in this thread, for no more elements than are asked for."""
        before = self._child.state()
        # A consumer that got many ready results from threads may ask for very many.
        block = self.read_child(min(most, self._pace.rows_here))
        if block is None:
            return None
        start = perf_counter()
        try:
            done = self.function.rows(block, self.next_number)
        except FailedRow as failed:
            self._put_back(before, block, failed)
            return super().read(most)
        self._pace.learn(block, perf_counter() - start)
        self.skip(block.length)
        return done

    def _put_back(self, before: State, block: Block, failed: FailedRow) -> None:
        """Keep what was called: the elements before the one that failed, and its error. Start the rest again."""
        tried = failed.index + 1
        found: list[Outcome] = [] if failed.before is None else [failed.before]
        self.add_done(before, 0, block.cut(0, tried), [*found, failed.error])
        if tried < block.length:
            self.start_rows(before, block, tried)

    def start(self, block: Block, number: int) -> "ThreadRun":
        run = ThreadRun(self.function, block, number, self._pace.learn)
        if self._is_here:
            run.work_here()
        else:
            run.submit(self._threads_started)
        return run

    def hurry(self, works: Iterable[Work]) -> None:
        """Let other threads continue the runs, whose threads may be stuck at one element.

        Out of order, what follows that element becomes a run of its own, and waits no longer for it. Threads that are left without work get more elements: all that are read may be done, but for those that the
        delivery waits for.
        """
        runs = [work for work in works if isinstance(work, ThreadRun)]
        for run in runs:
            if not self._in_order:
                index = run.end_early()
                if index is not None:
                    self.split(run, index)
            elif not run.is_taken and run.helpers < self._threads:
                run.submit(self._threads_started)
        idle = self._threads - sum(run.unfinished for run in runs)
        idle = min(idle, self._threads - self._added)
        if idle > 0 and self._child.hides_reads:
            self._added += idle
            self._more = self.at_work + idle
            self.begin()

    @property
    def _threads_started(self) -> ThreadPool:
        if self._pool is None:
            self._pool = ThreadPool(self._threads, "evenfeed-map")
        return self._pool

    def close(self) -> None:
        """Let the threads end after their current call."""
        self.drop()
        if self._pool is not None:
            self._pool.close()
        super().close()


@final
class _RunPace:
    """How many elements a thread takes at a time, by how long the last runs took.

    Attributes:
        rows: How many a thread of the pool takes.
        rows_here: How many the thread that reads takes.
    """

    def __init__(self) -> None:
        self.rows = 1
        self.rows_here = 1
        self._each: deque[float] = deque(maxlen=_RUNS)

    def learn(self, block: Block, seconds: float) -> None:
        """Choose the length of the next runs."""
        self._each.append(seconds / block.length)
        each, most = max(min(self._each), 1e-9), min(rows_per_block(block), _LONGEST_RUN)
        self.rows = max(1, min(int(_RUN_SECONDS / each), 2 * self.rows, most))
        self.rows_here = max(1, min(int(_READ_SECONDS / each), 2 * self.rows_here, most))


@final
class ThreadRun:
    """A run of elements that one thread processes, or several: each takes the next element that nobody has taken.

    Attributes:
        helpers: How many threads were asked to work on it.
        is_taken: Whether a thread has taken the last element.
    """

    def __init__(
        self,
        function: RowFunction,
        block: Block,
        number: int,
        learn: Callable[[Block, float], None],
    ) -> None:
        self.helpers = 0
        self.is_taken = False
        self._function = function
        self._block = block
        self._number = number
        self._learn = learn
        self._indices = iter(
            range(block.length)
        )  # threads share it: each index goes to one of them
        self._found: list[Result | BaseException | None] = [None] * block.length
        self._seen = 0  # how many results are in `_outcomes`, or were delivered
        self._outcomes: list[Outcome] = []
        self._task: Pending[None] | None = None
        self._has_begun = False
        self._rings: list[Callable[[], object]] = []

    def submit(self, pool: ThreadPool) -> None:
        """Let a thread work on it."""
        self.helpers += 1
        self._task = pool.submit(self._work)

    def work_here(self) -> None:
        """Work on it in this thread. What interrupts this thread is not the outcome of an element."""
        self._work(Exception)

    def _work(self, caught: type[BaseException] = BaseException) -> None:
        self._has_begun = True
        start = perf_counter()
        count = self._process(caught)
        if count == len(self._found):
            self._learn(self._block.cut(0, count), perf_counter() - start)

    def _process(self, caught: type[BaseException]) -> int:
        """Process elements that nobody has taken; return how many."""
        count, last = 0, self._block.length - 1
        for index, result in self._function.each(self._block, self._number, self._indices, caught):
            self._found[index] = result
            self.is_taken = self.is_taken or index == last
            count += 1
            for ring in self._rings:
                ring()
        return count

    def done(self) -> bool:
        """Return True if there are outcomes to deliver, or it was cancelled."""
        return bool(self._outcomes) or self._is_next_found() or self.cancelled()

    @property
    def unfinished(self) -> int:
        """How many elements have no result yet."""
        return self._found[self._seen :].count(None)

    def _is_next_found(self) -> bool:
        return self._seen < len(self._found) and self._found[self._seen] is not None

    def cancelled(self) -> bool:
        """Return True if it was cancelled before a thread took an element."""
        return not self._has_begun and self._task is not None and self._task.cancelled()

    def cancel(self) -> None:
        """Let the threads end after their current element."""
        self.is_taken = True
        for _ in self._indices:
            pass
        if self._task is not None:
            self._task.cancel()

    def end_early(self) -> int | None:
        """Leave what no thread has taken to others; return the index of the first of it. None if there is none."""
        if length_hint(self._indices) == self._block.length:
            return None  # no thread has begun: then nothing here waits for an element
        left = list(self._indices)
        if not left:
            return None
        self.is_taken = True
        del self._found[left[0] :]
        return left[0]

    def result(self) -> list[Outcome]:
        """Return the outcomes so far that are not delivered; wait for the first."""
        if not self._outcomes:
            self._wait()
            self._outcomes.extend(self._next_outcomes())
        return self._outcomes

    def _wait(self) -> None:
        bell = Bell()
        self.when_done(bell.ring)
        while not self._is_next_found():
            bell.wait(_WAIT)

    def _next_outcomes(self) -> list[Outcome]:
        """Return the elements up to the next that failed or is not finished, or the error of one that failed."""
        rows: list[list[object]] = []
        for found in self._found[self._seen :]:
            if not isinstance(found, list):
                break
            rows.append(found)
        first = self._found[self._seen]
        count = len(rows) or 1
        self._found[self._seen : self._seen + count] = [
            None
        ] * count  # keep nothing that is delivered
        self._seen += count
        return [of_rows(rows)] if rows else [first] if isinstance(first, BaseException) else []

    def exception(self) -> BaseException | None:
        """Return None: an error is always that of an element."""
        return None

    def when_done(self, call: Callable[[], object]) -> None:
        """Run `call` after each element, in the thread that processed it."""
        self._rings.append(call)
        if self.done():
            call()
