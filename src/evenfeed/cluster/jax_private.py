"""Every use of JAX's private modules that concerns devices and the cluster.

tests/cluster/test_jax_private.py and tests/strategy/test_xla_threads.py fail if JAX changes one of these.
"""

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NoReturn, final

from evenfeed.core.concurrency.peers import MEETING_ERRORS
from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import UnavailableError

# The threads that XLA needs for each of several CPU devices: one runs programs, one is held by the thread that launches a
# strategy's programs, and one by a thread that launches the user's own.
THREADS_PER_DEVICE: Final = 3

_POOL_THREAD: Final = "tf_XLAEigen"


def backend_started() -> bool:
    """Return True if JAX has started a backend. Neither loads JAX nor starts a backend."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


def pool_threads(tasks: Path = Path("/proc/self/task")) -> int | None:
    """Count the threads of the CPU client's pool; None if the system does not show them.

    NPROC cannot answer this: it may have been set after the pool was created.
    """
    return sum(_thread_name(task) == _POOL_THREAD for task in tasks.glob("*")) or None


def _thread_name(task: Path) -> str | None:
    try:
        return (task / "comm").read_text().strip()
    except OSError:  # the thread ended in the meantime
        return None


# JAX's coordination service and its client. jax.distributed.initialize would start the service inside
# worker 0, and has no option to leave it out.

# JAX kills a client that misses its heartbeats, without an exception in Python. `cluster/survival/failure_watch.py`
# detects lost workers instead, so heartbeats never time out.
_NEVER_SECONDS: Final = 1 << 22


def load_runtime() -> None:
    """Load jaxlib early, while the workers are still starting."""
    _jaxlib()


def runtime_service(address: str, count: int) -> Any:
    """Start the service for `count` clients. Losing one does not end the others."""
    return _jaxlib().get_distributed_runtime_service(
        address,
        count,
        heartbeat_timeout=_NEVER_SECONDS,
        recoverable=True,
    )


def runtime_client(address: str, place: int, seconds: int) -> Any:
    """Return a client of the service, not yet connected."""
    return _jaxlib().get_distributed_runtime_client(
        address,
        place,
        init_timeout=seconds,
        heartbeat_timeout=_NEVER_SECONDS,
        shutdown_on_destruction=False,
        use_compression=True,
    )


def join_runtime(address: str, place: int, count: int) -> None:
    """Connect this process to the service, so that the backend starts with the devices of all workers."""
    state: Any = import_module("jax._src.distributed").global_state
    client = runtime_client(address, place, seconds=60)
    client.connect()
    state.client, state.coordinator_address = client, address
    state.process_id, state.num_processes = place, count


def leave_runtime() -> None:
    """Make JAX forget the service when the process ends: disconnecting from a service that is gone would abort it."""
    state: Any = import_module("jax._src.distributed").global_state
    _kept_alive.append(state.client)
    state.client = None


# C++ would disconnect from the service when the last reference is dropped.
_kept_alive: Final[list[Any]] = []


def joined_runtime() -> tuple[int, int] | None:
    """Return this process's index and the number of processes; None if it has not joined a cluster."""
    module = sys.modules.get("jax._src.distributed")
    state: Any = None if module is None else module.global_state
    return (
        None if state is None or state.client is None else (state.process_id, state.num_processes)
    )


def gloo_collectives(host: str | None) -> Any:
    """Return Gloo collectives between the CPUs of all workers, listening on `host`; None for the machine's name."""
    return _jaxlib().make_gloo_tcp_collectives(distributed_client=_member(), hostname=host)


def set_cpu_collectives(make: Callable[[], Any]) -> None:
    """Make the CPU backend use these collectives when it starts."""
    bridge: Any = import_module("jax._src.xla_bridge")

    def factory() -> Any:
        return bridge.make_cpu_client(collectives=make())

    bridge.register_backend_factory("cpu", factory, priority=0, fail_quietly=False)


def explain_errors(reraise: Callable[[Exception], NoReturn]) -> None:
    """Explain errors of programs where their results are awaited: an asynchronous program raises nowhere else."""
    arrays: Any = import_module("jax._src.array").ArrayImpl

    def explaining(wait: Callable[..., Any]) -> Callable[..., Any]:
        def waited(*args: Any) -> Any:
            try:
                return wait(*args)
            except MEETING_ERRORS as error:
                reraise(error)

        return waited

    arrays._value = property(explaining(arrays._value.fget))
    arrays.block_until_ready = explaining(arrays.block_until_ready)


def _jaxlib() -> Any:
    return import_module("jaxlib._jax")


@final
class Written:
    """A pending write to the key-value store that all workers share, or a deletion (`is_tidying`)."""

    def __init__(self, write: Callable[[], Any], *, is_tidying: bool = False) -> None:
        self.is_tidying = is_tidying
        self._write = write
        self._done = threading.Event()
        self._error: Exception | None = None

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; return True if the write is done."""
        if self._done.wait(seconds) and self._error is not None:
            raise self._error
        return self._done.is_set()

    def run(self) -> None:
        """Do the write."""
        try:
            _ask(self._write)
        except UnavailableError as error:
            self._error = error
        self._done.set()


@final
class _Writer:
    """Writes in a thread: JAX's writes have no timeout, and the service may never answer."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Written | None] = SimpleQueue()  # None ends the thread
        self._thread: threading.Thread | None = None

    def put(self, written: Written) -> Written:
        """Write after everything that was put before."""
        if self._thread is None:
            self._thread = background.thread(self._run, "evenfeed-store", self._stop)
            self._thread.start()
        self._queue.put(written)
        return written

    def _stop(self) -> None:
        self._queue.put(None)

    def _run(self) -> None:
        while (written := self._queue.get()) is not None:
            # Others wait for writes, so all of them are done. Deletions are skipped when the process ends.
            if not (written.is_tidying and background.are_ending):
                written.run()


_writer: Final = _Writer()


def store_text(key: str, text: str) -> Written:
    """Write a text to the key-value store that all workers share."""
    return _writer.put(Written(lambda: _member().key_value_set(key, text)))


def forget_text(key: str) -> None:
    """Delete a text that this worker wrote, asynchronously."""
    _writer.put(Written(lambda: _member().key_value_delete(key), is_tidying=True))


def stored_text(key: str, seconds: float) -> str | None:
    """Return the text that a worker wrote; None if it does not arrive within `seconds`."""
    return _ask(lambda: _member().blocking_key_value_get(key, int(1000 * seconds)))


def _ask(request: Callable[[], Any]) -> Any:
    """Send a request to the service; return None if it times out."""
    try:
        return request()
    except Exception as error:
        if "DEADLINE_EXCEEDED" in str(error):
            return None
        raise UnavailableError(
            f"The coordination service of the workers does not answer: {error}",
            fix="look at the last lines that the other workers printed.",
        ) from error


def _member() -> Any:
    state: Any = import_module("jax._src.distributed").global_state
    return state.client
