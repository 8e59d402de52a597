"""Runs a user's function in processes, for what Python's threads cannot do at the same time."""

import os
import queue
import threading
import weakref
from dataclasses import dataclass
from functools import partial
from typing import Final, final

from evenfeed.core.block import Block, Outcome
from evenfeed.core.concurrency.threads import background, start_soon
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.errors import CancelledError
from evenfeed.plan.elementwise import AUTOTUNE, Map
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.operators.elementwise import keeps_order
from evenfeed.runtime.operators.parallel import WorkAhead
from evenfeed.runtime.processes.portable import refuse_while_loading_main
from evenfeed.runtime.processes.spawning import Child, ChildDied
from evenfeed.runtime.run import Run

# So much goes to a process at a time: enough that the way there and back is little against it.
_SECONDS: Final = 0.02
_BYTES: Final = 1 << 20
_ROWS: Final = 1024

_IDLE_SECONDS: Final = (
    60.0  # a process that has nothing to do for so long ends, and is started again
)
_JOIN_SECONDS: Final = 1.0


def mapped_in_processes(child: Operator, function: RowFunction, node: Map, run: Run) -> Operator:
    """Return the operator that runs a function in processes, which last for all rounds of a pass."""
    pool = run.lasting(node, lambda: Processes(function, processes_of(node)))
    return MapInProcesses(child, pool, in_order=keeps_order(node, run))


def processes_of(node: Map) -> int:
    """Return how many processes call a function: one for each core that there is, unless it is said."""
    asked = node.num_parallel_calls
    return len(os.sched_getaffinity(0)) if asked is None or asked == AUTOTUNE else asked


@final
class MapInProcesses(WorkAhead):
    """Runs a function on several runs of elements at a time, each in a process.

    Args:
        child: Where the elements come from.
        pool: The processes.
        in_order: Whether a result waits for those of earlier elements.
    """

    def __init__(self, child: Operator, pool: "Processes", *, in_order: bool = True) -> None:
        super().__init__(child, pool.function, in_order=in_order)
        self._pool = pool

    @property
    def ahead(self) -> int:
        """Twice what the processes work on, so that none waits for the reader."""
        return 2 * self._pool.count * self._pool.together

    @property
    def together(self) -> int:
        """As many as take some time."""
        return self._pool.together

    def start(self, block: Block, number: int) -> Pending[list[Outcome]]:
        """Give the elements to the next process that is free."""
        return self._pool.submit(block, number)

    def close(self) -> None:
        """Let go of what is at work. The processes are those of the whole pass."""
        self.drop()
        super().close()


@final
class Processes:
    """Processes that run one function, started when there is something to do.

    They end when this object is closed or forgotten, the interpreter exits, or is killed.

    Attributes:
        function: What they run.
        count: How many there are.
    """

    def __init__(self, function: RowFunction, count: int) -> None:
        refuse_while_loading_main(function.name)
        self.function = function
        self.count = count
        self._shared = _Shared(function, count)
        # The threads know only what is shared: that nobody holds this object can be noticed.
        self._end = weakref.finalize(self, self._shared.close)

    @property
    def together(self) -> int:
        """How many elements to give to a process at a time, as it is known by now."""
        return self._shared.together

    def submit(self, block: Block, number: int) -> Pending[list[Outcome]]:
        """Have elements mapped, of which the first has this number."""
        return self._shared.submit(block, number)

    def close(self) -> None:
        """End the processes, now."""
        self._end()


@final
@dataclass(frozen=True, slots=True)
class _Task:
    block: Block
    number: int
    result: Pending[list[Outcome]]


@final
class _Shared:
    """What the reader has in common with the threads, of which each has a process."""

    def __init__(self, function: RowFunction, count: int) -> None:
        self.together = 1
        self._function = function
        self._count = count
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._children: list[Child] = []
        self._is_closed = False
        self._owner = os.getpid()
        # A garbage collector may call `close` in a thread that is at one of the locked lines.
        self._lock = threading.RLock()

    def submit(self, block: Block, number: int) -> Pending[list[Outcome]]:
        task = _Task(block, number, Pending())
        with self._lock:
            self.check_open()
            while len(self._threads) < self._count:
                self._add_thread(len(self._threads))
        self._tasks.put(task)
        return task.result

    def _add_thread(self, number: int) -> None:
        name = f"evenfeed-process-{number}"
        thread = background.thread(partial(self._work, number), name, self._stop)
        # Ctrl-C between these begins one thread too many, at worst.
        start_soon((thread,))
        self._threads.append(thread)

    def close(self) -> None:
        if os.getpid() != self._owner:
            return  # a fork of the process to which the children belong
        children = self._stop()
        for thread in self._threads:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(_JOIN_SECONDS)
        for child in children:
            child.end()

    def _stop(self) -> list[Child]:
        """Let the threads end, each of which then ends its process; return the processes."""
        with self._lock:
            self._is_closed = True
            children = list(self._children)
        for child in children:
            child.hang_up()
        self._tasks.put(None)
        return children

    def _work(self, number: int) -> None:
        """Have elements mapped by a process, one run of them after the other."""
        hand = _Hand(self, number)
        while self._settle_next(hand):
            pass  # and hold nothing: an error in a task holds who reads, who could not be forgotten
        hand.let_go()

    def _settle_next(self, hand: "_Hand") -> bool:
        """Wait for elements and have them mapped; tell whether to go on."""
        try:
            task = self._tasks.get(timeout=_IDLE_SECONDS if hand.child else None)
        except queue.Empty:
            hand.let_go()
            return True
        if task is None:
            self._tasks.put(None)  # for the other threads
            return False
        if task.result.begin():
            try:
                task.result.set_result(hand.outcomes(task.block, task.number))
            except BaseException as error:  # noqa: BLE001 - raised where the reader reaches it
                task.result.set_exception(error)
                self._fail_waiting(error)
        return True

    def _fail_waiting(self, error: BaseException) -> None:
        """Let what waits fail likewise: a process that could not be started says why only once."""
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return
            if task is None:
                self._tasks.put(None)
                return
            if task.result.begin():
                task.result.set_exception(error)

    def started(self, number: int) -> Child:
        """Return a process that is ready."""
        with self._lock:
            self.check_open()
            child = Child(number, self._function)
            self._children.append(child)
        try:
            child.prepare()
        except BaseException:
            self.forget(child)
            raise
        return child

    def forget(self, child: Child) -> None:
        """End a process."""
        with self._lock:
            if child in self._children:
                self._children.remove(child)
        child.end()

    def check_open(self) -> None:
        """Raise where a process has ended because it was told to."""
        if self._is_closed:
            raise CancelledError("The iterator was closed while it was read.")

    def learn(self, rows: int, seconds: float, size: int) -> None:
        """Count the time, and choose how many elements go to a process at a time."""
        self._function.meter.add(rows, seconds)
        fitting = min(_SECONDS * rows / max(seconds, 1e-9), _BYTES * rows / max(size, 1), _ROWS)
        self.together = max(1, min(int(fitting), 2 * self.together))


@final
class _Hand:
    """A thread's process, which may have to be started anew."""

    def __init__(self, shared: _Shared, number: int) -> None:
        self._shared = shared
        self._number = number
        self.child: Child | None = None

    def outcomes(self, block: Block, number: int) -> list[Outcome]:
        """Return what becomes of elements, also where one of them kills the process."""
        if self.child is None:
            self.child = self._shared.started(self._number)
        try:
            found, seconds, size = self.child.call(block, number)
        except ChildDied as died:
            self._shared.check_open()
            error = self.child.died_at(died, number + died.row)
            self.let_go()
            # What came before is mapped again, for it went with the process.
            before = self._part(block, number, 0, died.row)
            return [*before, error, *self._part(block, number, died.row + 1, block.length)]
        size += sum(part.nbytes for part in found if isinstance(part, Block))
        self._shared.learn(block.length, seconds, size)
        return found

    def _part(self, block: Block, number: int, start: int, stop: int) -> list[Outcome]:
        return self.outcomes(block.cut(start, stop), number + start) if start < stop else []

    def let_go(self) -> None:
        """End the process."""
        if self.child is not None:
            child, self.child = self.child, None
            self._shared.forget(child)
