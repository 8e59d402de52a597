"""Maps elements in processes, for user functions that hold the GIL."""

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
from evenfeed.runtime.live_state import Meter
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.operators.parallel import WorkAhead, keeps_order
from evenfeed.runtime.processes.portable import refuse_while_loading_main
from evenfeed.runtime.processes.spawning import Child, ChildDied
from evenfeed.runtime.run import Run

# Limits for the work that one message carries: enough that sending it costs little in comparison.
_MESSAGE_SECONDS: Final = 0.02
_MESSAGE_BYTES: Final = 1 << 20
_MESSAGE_ROWS: Final = 1024

# A process that is idle for this long ends. It is started again when there is work.
_IDLE_SECONDS: Final = 60.0
_JOIN_SECONDS: Final = 1.0


def mapped_in_processes(child: Operator, function: RowFunction, node: Map, run: Run) -> Operator:
    """Return the operator that runs a function in processes, which live for all epochs of a pass."""
    meter = (
        None if run.meter is None else run.meter.function_meter(node, function.meter, splits=True)
    )
    pool = run.lasting(node, lambda: Processes(function, processes_of(node), meter))
    return MapInProcesses(child, pool, in_order=keeps_order(node, run))


def processes_of(node: Map) -> int:
    """Return the number of processes: `num_parallel_calls`, or one per available core by default."""
    asked = node.num_parallel_calls
    return len(os.sched_getaffinity(0)) if asked is None or asked == AUTOTUNE else asked


@final
class MapInProcesses(WorkAhead):
    """Runs a function on several groups of elements at a time, each in a process.

    Args:
        child: The operator that produces the elements.
        pool: The processes.
        in_order: Whether results come in the order of the elements.
    """

    def __init__(self, child: Operator, pool: "Processes", *, in_order: bool = True) -> None:
        super().__init__(child, pool.function, in_order=in_order)
        self._pool = pool

    @property
    def ahead(self) -> int:
        """How many elements to read ahead: twice what the processes work on, so that none waits for the reader."""
        return 2 * self._pool.count * self._pool.together

    @property
    def together(self) -> int:
        return self._pool.together

    def start(self, block: Block, number: int) -> Pending[list[Outcome]]:
        return self._pool.submit(block, number)

    def close(self) -> None:
        """Cancel the pending work. The processes stay: they belong to the whole pass."""
        self.drop()
        super().close()


@final
class Processes:
    """A pool of processes that run one function, started when there is work.

    They end when this object is closed or garbage-collected, or when the interpreter exits or is killed.

    Attributes:
        function: The function that they run.
        count: The number of processes.

    Args:
        function: The function.
        count: The number of processes.
        meter: Counts the time of the function, by default for all passes together.
    """

    def __init__(self, function: RowFunction, count: int, meter: Meter | None = None) -> None:
        refuse_while_loading_main(function.name)
        self.function = function
        self.count = count
        self._shared = _Shared(function, count, meter or function.meter)
        # The threads refer only to `_shared`, so this object can be garbage-collected while they run.
        self._end = weakref.finalize(self, self._shared.close)

    @property
    def together(self) -> int:
        """How many elements to send to a process at a time, by the timings so far."""
        return self._shared.together

    def submit(self, block: Block, number: int) -> Pending[list[Outcome]]:
        """Map elements in a process; `number` is the number of the first one."""
        return self._shared.submit(block, number)

    def close(self) -> None:
        """End the processes at once."""
        self._end()


@final
@dataclass(frozen=True, slots=True)
class _Task:
    block: Block
    number: int
    result: Pending[list[Outcome]]


@final
class _Shared:
    """The state that the reader shares with the threads, each of which drives one process."""

    def __init__(self, function: RowFunction, count: int, meter: Meter) -> None:
        self.together = 1
        self._function = function
        self._meter = meter
        self._count = count
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._children: list[Child] = []
        self._is_closed = False
        self._owner = os.getpid()
        # The garbage collector may call `close` in a thread that holds the lock.
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
        # Ctrl-C between these lines starts one thread too many, at worst.
        start_soon((thread,))
        self._threads.append(thread)

    def close(self) -> None:
        if os.getpid() != self._owner:
            return  # in a fork: the children belong to the original process
        children = self._stop()
        for thread in self._threads:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(_JOIN_SECONDS)
        for child in children:
            child.end()

    def _stop(self) -> list[Child]:
        """Tell the threads to end, and each of them ends its process; return the processes."""
        with self._lock:
            self._is_closed = True
            children = list(self._children)
        for child in children:
            child.hang_up()
        self._tasks.put(None)
        return children

    def _work(self, number: int) -> None:
        """Map tasks in one process until the queue ends."""
        driver = _Driver(self, number)
        while self._run_next(driver):
            pass  # keep no task here: its error refers to the reader, which could then never be collected
        driver.release()

    def _run_next(self, driver: "_Driver") -> bool:
        """Wait for a task and run it; return False after the last one."""
        try:
            task = self._tasks.get(timeout=_IDLE_SECONDS if driver.child else None)
        except queue.Empty:
            driver.release()
            return True
        if task is None:
            self._tasks.put(None)  # for the other threads
            return False
        if task.result.begin():
            try:
                task.result.set_result(driver.outcomes(task.block, task.number))
            except BaseException as error:  # noqa: BLE001 - raised where the reader reaches it
                task.result.set_exception(error)
                self._fail_waiting(error)
        return True

    def _fail_waiting(self, error: BaseException) -> None:
        """Fail all waiting tasks with the same error: a process that cannot start reports it only once."""
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

    def start_child(self, number: int) -> Child:
        """Start a process, and wait until it is ready."""
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
        """Raise if the pool is closed, which also ends the processes."""
        if self._is_closed:
            raise CancelledError("The iterator was closed while it was read.")

    def learn(self, rows: int, seconds: float, waited: float, size: int) -> None:
        """Record the time, and choose how many elements to send to a process at a time."""
        self._meter.add(rows, seconds, waited=waited)
        fitting = min(
            _MESSAGE_SECONDS * rows / max(seconds, 1e-9),
            _MESSAGE_BYTES * rows / max(size, 1),
            _MESSAGE_ROWS,
        )
        self.together = max(1, min(int(fitting), 2 * self.together))


@final
class _Driver:
    """The process of one thread, restarted when it dies."""

    def __init__(self, shared: _Shared, number: int) -> None:
        self._shared = shared
        self._number = number
        self.child: Child | None = None

    def outcomes(self, block: Block, number: int) -> list[Outcome]:
        """Return the outcome of each element, even if one of them kills the process."""
        if self.child is None:
            self.child = self._shared.start_child(self._number)
        try:
            found, seconds, waited, size = self.child.call(block, number)
        except ChildDied as died:
            self._shared.check_open()
            error = self.child.died_at(died, number + died.row)
            self.release()
            # Earlier elements are mapped again: their results were lost with the process.
            before = self._part(block, number, 0, died.row)
            return [*before, error, *self._part(block, number, died.row + 1, block.length)]
        size += sum(part.nbytes for part in found if isinstance(part, Block))
        self._shared.learn(block.length, seconds, waited, size)
        return found

    def _part(self, block: Block, number: int, start: int, stop: int) -> list[Outcome]:
        return self.outcomes(block.cut(start, stop), number + start) if start < stop else []

    def release(self) -> None:
        """End the process."""
        if self.child is not None:
            child, self.child = self.child, None
            self._shared.forget(child)
