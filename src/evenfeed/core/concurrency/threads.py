"""Background threads that stop before Python exits, and a thread pool that uses them.

A thread that returns from compiled code while Python shuts down aborts the process (up to Python 3.13). The exit
code is lost, and so is unwritten data of open files. So evenfeed starts every thread here. At exit, it tells the
threads to stop and waits for them, for two seconds in all.
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
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar, final
from weakref import finalize

from evenfeed.core.callsite import line_in
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.errors import CancelledError
from evenfeed.core.lazy import ctypes, logging

_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = (
    0.02  # the longest delay before a thread that has just started is told to stop
)
_FLUSH_SECONDS: Final = 0.5
_FILES: Final = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)

# Private functions without type stubs: the hook that runs before atexit, and the frames of threads.
_threading: Any = threading
_sys: Any = sys


@final
class _Thread(threading.Thread):
    """A thread that is registered from start to end."""

    def __init__(
        self,
        known: "BackgroundThreads",
        work: Callable[[], object],
        name: str,
        stop: Callable[[], object],
    ) -> None:
        super().__init__(name=name, daemon=True)  # Python must not wait for it without limit
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
            # Like Python's own threads, it keeps no references after its end.
            del self._work, self._stop_work


@final
class BackgroundThreads:
    """The running threads, and a function to stop each.

    Attributes:
        are_ending: Whether the program is exiting. The caller then does the work itself instead of passing it to
            a thread: functions that users registered with `atexit` may still read datasets.
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
            work: The function to run.
            name: The name in warnings and debuggers.
            stop: Makes `work` return soon. It is called at exit, and must not wait.
        """
        return _Thread(self, work, name, stop)

    def add(self, thread: threading.Thread, stop: Callable[[], object]) -> None:
        """Register a thread that is about to start."""
        self._running[thread] = stop
        self.stand_before_jax()

    def remove(self, thread: threading.Thread) -> None:
        """Unregister a thread that has finished."""
        self._running.pop(thread, None)

    def afterwards(self, call: Callable[[], None]) -> None:
        """Run `call` at exit, after the threads have ended."""
        self.stand_before_jax()
        self._afterwards.append(call)

    @staticmethod
    def before_pools_close(call: Callable[[], None]) -> None:
        """Run `call` when the program has ended, while the thread pools of Python still take work."""
        import_module("concurrent.futures.thread")  # the hooks run in reverse order
        _threading._register_atexit(call)

    def stand_before_jax(self) -> None:
        """Register `end` so that the threads end just before JAX releases its devices at exit.

        `atexit` calls functions in reverse order of registration. JAX registers its own when it is loaded, which
        may happen at any time.
        """
        knows_jax = "jax" in sys.modules
        if knows_jax != self._knew_jax:
            self._knew_jax = knows_jax
            atexit.unregister(self.end)
            atexit.register(self.end)

    def end(self) -> None:
        """Tell the threads to stop and wait for them. Warns about those that keep running."""
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
        """Wait until all threads have stopped. Returns those still running at the time `end`."""
        notified: set[threading.Thread] = set()
        while running := self._others():
            for thread in running:
                if thread not in notified:
                    notified.add(thread)
                    self._stop(thread)
            if time.monotonic() > end:
                return running
            running[0].join(_LOOK_SECONDS)
        for thread in notified:  # their work is done, and they are about to end
            thread.join(_LOOK_SECONDS)
        return []

    def _others(self) -> list[threading.Thread]:
        own = threading.current_thread()
        return [one for one in list(self._running) if one is not own and one.is_alive()]

    def _stop(self, thread: threading.Thread) -> None:
        stop = self._running.get(thread)
        if stop is not None:
            with suppress(Exception):  # the other threads must be stopped, too
                stop()

    def forget(self) -> None:
        """Unregister all threads, in a fork, which does not have them."""
        self._running.clear()


def _warn(late: Sequence[threading.Thread]) -> None:
    names = ", ".join(map(_named, late))
    logging.getLogger("evenfeed").warning(
        "The program has ended, but %s did not stop within %g seconds. Python exits without waiting longer. "
        "Add a timeout to what the thread waits for, or close the iterator before the program ends.",
        names,
        _SECONDS,
    )


def _named(thread: threading.Thread) -> str:
    frame = _sys._current_frames().get(thread.ident)
    line = None if frame is None else line_in(frame)
    return f"thread {thread.name}" if line is None else f"thread {thread.name} (at {line})"


def _flush_files() -> None:
    """Flush open files. Python does not flush files that a thread left running can reach.

    Runs in a thread of its own: a thread that waits while it writes to a file may hold the lock of the file.

    """
    flushing = threading.Thread(target=_flush, name="evenfeed-flush", daemon=True)
    flushing.start()
    flushing.join(_FLUSH_SECONDS)


def _flush() -> None:
    for one in gc.get_objects():
        if issubclass(type(one), _FILES):  # isinstance reads __class__, which may run any code
            with suppress(OSError, ValueError):  # it is not writable, or is closed
                one.flush()


def _keep_from_aborting() -> None:
    """Make a thread that returns from C++ while Python shuts down wait forever, as Python 3.14 does.

    Older versions end the thread by unwinding its stack. C++ does not allow that everywhere: it calls its terminate
    handler, which aborts the process. JAX waits for running programs at exit, so its threads return just then.

    """
    if sys.version_info >= (3, 14):
        return
    with suppress(OSError, AttributeError):  # a different C++ library, or none
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
        set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError:  # too many threads: run it in this one
        thread.run()


# Starts a thread: `start_soon((thread,))`. `Thread.start` waits until the thread runs, in Python code that leaves
# locks locked if Ctrl-C comes between two lines. So a second thread, which never receives Ctrl-C, calls it. Starting
# that one is a single C call.
start_soon: Final = partial(_thread.start_new_thread, _start)

background: Final = BackgroundThreads()
_threading._register_atexit(background.stand_before_jax)
os.register_at_fork(after_in_child=background.forget)


_T = TypeVar("_T")

_Task: TypeAlias = tuple[Pending[Any], Callable[[], Any]]


@final
class ThreadPool:
    """Runs calls in several threads, which start as needed.

    At exit, Python waits without limit for the threads of its own ThreadPoolExecutor. The threads of this pool are
    told to stop, and afterwards `submit` runs calls in the thread of the caller.

    Args:
        most: The largest number of threads.
        name: The prefix of the thread names.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._renew()

    def _renew(self) -> None:
        self._owner = os.getpid()
        self._tasks = _Tasks(self._most, self._name)
        # The threads refer only to the tasks, so that an unused pool is garbage-collected.
        finalize(self, self._tasks.close).atexit = False

    def submit(self, call: Callable[[], _T]) -> Pending[_T]:
        """Run `call` in the next free thread. Returns a future.

        Raises:
            CancelledError: The pool is closed.
        """
        if self._owner != os.getpid():  # a fork does not have the threads
            self._renew()
        result: Pending[_T] = Pending()
        if background.are_ending:
            _run((result, call))
        else:
            self._tasks.add((result, call))
        return result

    def close(self) -> None:
        """Cancel the calls that have not started. The threads end after those that have."""
        self._tasks.close()


@final
class _Tasks:
    """The calls that wait for a thread."""

    def __init__(self, most: int, name: str) -> None:
        self._most: Final = most
        self._name: Final = name
        self._waiting: SimpleQueue[_Task | None] = SimpleQueue()  # None tells a thread to end
        self._lock = Lock()
        self._started = 0  # threads
        self._unfinished = 0
        self._is_closed = False

    def add(self, task: _Task) -> None:
        is_short = False
        try:
            with self._lock:
                if self._is_closed:
                    raise CancelledError("The iterator was closed while it was read.")
                self._unfinished += 1
                is_short = self._unfinished > self._started < self._most
                self._started += is_short
            self._waiting.put(task)
            if is_short:
                name = f"{self._name}_{self._started - 1}"
                start_soon((background.thread(self._work, name, self.close),))
        except BaseException:
            # Ctrl-C. At worst, a started thread is not counted, and there is one too many.
            self._started -= is_short
            raise
        if self._is_closed:  # it was closed in the meantime
            self._cancel_waiting()

    def close(self) -> None:
        """End the threads. Takes no lock, because the garbage collector may call this."""
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
        while self._run_next():
            pass  # keeps no references: a result may refer to its reader, which could never be collected

    def _run_next(self) -> bool:
        """Run the next call. Returns False if the thread must end."""
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
    except BaseException as error:  # noqa: BLE001 - raised by result()
        result.set_exception(error)
        del task, result, call  # the error refers to this frame; a reference back would be a cycle
    else:
        result.set_result(found)
