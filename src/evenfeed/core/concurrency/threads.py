"""The threads that evenfeed starts, all of which end before Python does.

A thread that comes back from compiled code while Python takes itself apart aborts the process (up to Python 3.13):
the program's exit code is lost, and so is what its open files have not written yet. So every thread is started
here. At exit the threads are told to stop and waited for, for two seconds in all.
"""

import _thread
import atexit
import gc
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar, final
from weakref import finalize

from evenfeed.core.callsite import line_in
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.errors import CancelledError
from evenfeed.core.lazy import ctypes, logging

_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.02  # how soon a thread that was started meanwhile is told to stop, too
_FLUSH_SECONDS: Final = 0.5
_FILES: Final = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)

# What has no types: the hook before those of atexit, and the frames of threads.
_threading: Any = threading
_sys: Any = sys


@final
class _Thread(threading.Thread):
    """A thread that is known from its start to its end."""

    def __init__(
        self,
        known: "BackgroundThreads",
        work: Callable[[], object],
        name: str,
        stop: Callable[[], object],
    ) -> None:
        super().__init__(name=name, daemon=True)  # nothing waits for it longer than it is worth
        self._known = known
        self._work = work
        self._stop_work = stop

    def start(self) -> None:
        self._known.add(self, self._stop_work)
        super().start()

    def run(self) -> None:
        try:
            self._work()
        finally:
            self._known.remove(self)
            del self._work, self._stop_work  # as Python's own, it holds nothing when it has ended


@final
class BackgroundThreads:
    """The threads that run now, and how each is told to stop.

    Attributes:
        are_ending: Whether the program has come to its end. Work that would go to a thread is then done by
            whoever asks for it: functions that users gave to `atexit` may still read datasets.
    """

    def __init__(self) -> None:
        self.are_ending = False
        self._running: dict[threading.Thread, Callable[[], object]] = {}
        self._afterwards: list[Callable[[], None]] = []
        self._knew_jax: bool | None = None

    def thread(
        self, work: Callable[[], object], name: str, stop: Callable[[], object]
    ) -> threading.Thread:
        """Return a thread that is not started yet.

        Args:
            work: What it does.
            name: What it is called in warnings and debuggers.
            stop: Lets `work` return soon. It is called at exit, and must not wait.
        """
        return _Thread(self, work, name, stop)

    def add(self, thread: threading.Thread, stop: Callable[[], object]) -> None:
        """Know of a thread that is started."""
        self._running[thread] = stop
        self.stand_before_jax()

    def remove(self, thread: threading.Thread) -> None:
        """Forget a thread that has done its work."""
        self._running.pop(thread, None)

    def afterwards(self, call: Callable[[], None]) -> None:
        """Let something be done at exit, once the threads have ended."""
        self.stand_before_jax()
        self._afterwards.append(call)

    def stand_before_jax(self) -> None:
        """Let the threads end before JAX takes the devices away at exit, and not much sooner.

        Functions are called at exit in the reverse order of their registration, and JAX registers its own when
        it is loaded, which may be at any time.
        """
        knows_jax = "jax" in sys.modules
        if knows_jax != self._knew_jax:
            self._knew_jax = knows_jax
            atexit.unregister(self.end)
            atexit.register(self.end)

    def end(self) -> None:
        """Tell the threads to stop, and wait until they have; warn of those that go on."""
        self.are_ending = True
        late: Sequence[threading.Thread] = ()
        try:
            late = self._wait(time.monotonic() + _SECONDS)
        except KeyboardInterrupt:  # the user does not want to wait
            late = self._others()
        if late:
            _warn(late)
            _flush_files()
            _keep_from_aborting()
        for call in reversed(self._afterwards):
            call()

    def _wait(self, end: float) -> list[threading.Thread]:
        """Wait until all threads have stopped; return those that have not when the time is over."""
        told: set[threading.Thread] = set()
        while running := self._others():
            for thread in running:
                if thread not in told:
                    told.add(thread)
                    self._tell(thread)
            if time.monotonic() > end:
                return running
            running[0].join(_LOOK_SECONDS)
        for thread in told:  # they are through with their work, and nearly gone
            thread.join(_LOOK_SECONDS)
        return []

    def _others(self) -> list[threading.Thread]:
        own = threading.current_thread()
        return [one for one in list(self._running) if one is not own and one.is_alive()]

    def _tell(self, thread: threading.Thread) -> None:
        stop = self._running.get(thread)
        if stop is not None:
            with suppress(Exception):  # the others must hear of it, too
                stop()

    def forget(self) -> None:
        """Know of no threads: this process is a fork, and has none of them."""
        self._running.clear()


def _warn(late: Sequence[threading.Thread]) -> None:
    names = ", ".join(map(_named, late))
    logging.getLogger("evenfeed").warning(
        "The program has ended, but %s did not stop within %g seconds: Python exits without waiting any longer. "
        "Give what it waits for a timeout, or close the iterator before the program ends.",
        names,
        _SECONDS,
    )


def _named(thread: threading.Thread) -> str:
    frame = _sys._current_frames().get(thread.ident)
    line = None if frame is None else line_in(frame)
    return f"thread {thread.name}" if line is None else f"thread {thread.name} (at {line})"


def _flush_files() -> None:
    """Write what open files still hold: Python forgets those that a thread it leaves behind can reach.

    In a thread, for one of them may be locked by a thread that writes to it and waits.
    """
    flushing = threading.Thread(target=_flush, name="evenfeed-flush", daemon=True)
    flushing.start()
    flushing.join(_FLUSH_SECONDS)


def _flush() -> None:
    for one in gc.get_objects():
        if issubclass(
            type(one), _FILES
        ):  # isinstance would ask the object itself, which may run anything
            with suppress(OSError, ValueError):  # it cannot be written, or is closed
                one.flush()


def _keep_from_aborting() -> None:
    """Let a thread that comes back from C++ too late wait for ever, as it does from Python 3.14 on.

    Before, Python ends it by unwinding its stack. C++ does not allow that everywhere and calls its terminate handler,
    which aborts the process. JAX waits at exit for programs that run, so its threads come back just then.
    """
    if sys.version_info >= (3, 14):
        return
    with suppress(OSError, AttributeError):  # another C++ library, or none
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
        set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError:  # there are too many threads already: but this is one
        thread.run()


# Starts a thread: `start_soon((thread,))`. `Thread.start` waits until it runs, by Python code that leaves locks taken where
# Ctrl-C comes between two lines. So another thread does that, which does not hear Ctrl-C; this is a single call of C code.
start_soon: Final = partial(_thread.start_new_thread, _start)

background: Final = BackgroundThreads()
_threading._register_atexit(background.stand_before_jax)
os.register_at_fork(after_in_child=background.forget)


_T = TypeVar("_T")

_Task: TypeAlias = tuple[Pending[Any], Callable[[], Any]]


@final
class ThreadPool:
    """Runs calls in several threads, which are started as they are needed.

    When a program ends, Python waits without limit for the threads of its own ThreadPoolExecutor. These are told
    to stop (`core/concurrency/threads.py`), and afterwards calls are run by whoever submits them.

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
