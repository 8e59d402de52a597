"""Threads that take calls as they come."""

import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar, final
from weakref import finalize

from evenfeed.core.background import background, start_soon
from evenfeed.core.errors import CancelledError
from evenfeed.core.waiting import Pending

_T = TypeVar("_T")

_Task: TypeAlias = tuple[Pending[Any], Callable[[], Any]]


@final
class ThreadPool:
    """Runs calls in several threads, which are started as they are needed.

    When a program ends, Python waits without limit for the threads of its own ThreadPoolExecutor. These are told
    to stop (`core/background.py`), and afterwards calls are run by whoever submits them.

    Args:
        most: How many threads there may be.
        name: What their names begin with.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._renew()

    def _renew(self) -> None:
        self._owner = os.getpid()
        self._tasks = _Tasks(self._most, self._name)
        # The threads know only the tasks: that nobody holds the pool can be noticed.
        finalize(self, self._tasks.close).atexit = False

    def submit(self, call: Callable[[], _T]) -> Pending[_T]:
        """Have something called by the next thread that is free; return its result to come.

        Raises:
            CancelledError: The pool is closed.
        """
        if self._owner != os.getpid():  # a fork has none of the threads
            self._renew()
        result: Pending[_T] = Pending()
        if background.are_ending:
            _run((result, call))
        else:
            self._tasks.add((result, call))
        return result

    def close(self) -> None:
        """Cancel what no thread has begun, and let the threads end when they have done the rest."""
        self._tasks.close()


@final
class _Tasks:
    """The calls that wait for a thread."""

    def __init__(self, most: int, name: str) -> None:
        self._most: Final = most
        self._name: Final = name
        self._waiting: SimpleQueue[_Task | None] = SimpleQueue()  # None: a thread is to end
        self._lock = Lock()
        self._begun = 0  # threads
        self._unfinished = 0
        self._is_closed = False

    def add(self, task: _Task) -> None:
        is_short = False
        try:
            with self._lock:
                if self._is_closed:
                    raise CancelledError("The iterator was closed while it was read.")
                self._unfinished += 1
                is_short = self._unfinished > self._begun < self._most
                self._begun += is_short
            self._waiting.put(task)
            if is_short:
                name = f"{self._name}_{self._begun - 1}"
                start_soon((background.thread(self._work, name, self.close),))
        except (
            BaseException
        ):  # Ctrl-C: a thread that was begun and is not counted is one too many, at worst
            self._begun -= is_short
            raise
        if self._is_closed:  # since it was asked
            self._cancel_waiting()

    def close(self) -> None:
        """End the threads. Takes no lock: a garbage collector may call this."""
        self._is_closed = True
        self._cancel_waiting()
        self._waiting.put(None)

    def _cancel_waiting(self) -> None:
        ends = 0
        while True:
            try:
                task = self._waiting.get_nowait()
            except Empty:
                break
            if task is None:
                ends += 1
            else:
                task[0].cancel()
        for _ in range(ends):
            self._waiting.put(None)

    def _work(self) -> None:
        while self._does_next():
            pass  # and holds nothing: a result may hold who reads, who could not be forgotten

    def _does_next(self) -> bool:
        """Run the next call; tell whether there may be others."""
        task = self._waiting.get()
        if task is None:
            self._waiting.put(None)  # for the other threads
            return False
        _run(task)
        del task
        with self._lock:
            self._unfinished -= 1
        return True


def _run(task: _Task) -> None:
    result, call = task
    if not result.begin():
        return
    try:
        found = call()
    except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
        result.set_exception(error)
        del task, result, call  # an error holds the frames it came through: they must not hold it
    else:
        result.set_result(found)
