"""All that evenfeed must know about devices and JAX does not say in public.

tests/cluster/test_jax_private.py and tests/strategy/test_threads.py fail when a version of JAX changes one of these.
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

_POOL_THREAD: Final = "tf_XLAEigen"


def backend_started() -> bool:
    """Tell whether JAX has started a backend, without loading JAX and without starting one."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


def pool_threads(tasks: Path = Path("/proc/self/task")) -> int | None:
    """Count the threads of the CPU client's pool; None where the system does not show them.

    NPROC cannot answer this afterwards: it may have been set when the pool was there already.
    """
    return sum(_thread_name(task) == _POOL_THREAD for task in tasks.glob("*")) or None


def _thread_name(task: Path) -> str | None:
    try:
        return (task / "comm").read_text().strip()
    except OSError:  # a thread that ended while the others were read
        return None


# JAX's coordination service and its client. jax.distributed.initialize would start the service inside of
# worker 0, and has no way to leave it out.

# A member whose heart beat fails is ended by JAX, without a word to Python. Lost workers are noticed by their lines
# (`cluster/survival/failure_watch.py`), so no heart ever beats.
_NEVER_SECONDS: Final = 1 << 22


def load_runtime() -> None:
    """Load jaxlib before it is needed: the workers are still starting."""
    _jaxlib()


def runtime_service(address: str, count: int) -> Any:
    """Start the service that so many members join. One that is lost does not end the others."""
    return _jaxlib().get_distributed_runtime_service(
        address,
        count,
        heartbeat_timeout=_NEVER_SECONDS,
        recoverable=True,
    )


def runtime_client(address: str, place: int, seconds: int) -> Any:
    """Return a member of the service, which is not connected yet."""
    return _jaxlib().get_distributed_runtime_client(
        address,
        place,
        init_timeout=seconds,
        heartbeat_timeout=_NEVER_SECONDS,
        shutdown_on_destruction=False,
        use_compression=True,
    )


def join_runtime(address: str, place: int, count: int) -> None:
    """Make this process a member, so that the backend that starts afterwards has the devices of all."""
    state: Any = import_module("jax._src.distributed").global_state
    client = runtime_client(address, place, seconds=60)
    client.connect()
    state.client, state.coordinator_address = client, address
    state.process_id, state.num_processes = place, count


def leave_runtime() -> None:
    """Let JAX forget the service, in a process that ends: to take leave of one that is gone would abort it."""
    state: Any = import_module("jax._src.distributed").global_state
    _kept.append(state.client)
    state.client = None


_kept: Final[list[Any]] = []  # C++ would take leave of the service with the last reference


def joined_runtime() -> tuple[int, int] | None:
    """Return the place of this process among how many; None where it is alone."""
    module = sys.modules.get("jax._src.distributed")
    state: Any = None if module is None else module.global_state
    return (
        None if state is None or state.client is None else (state.process_id, state.num_processes)
    )


def gloo_collectives(host: str | None) -> Any:
    """Return collectives between the CPUs of members, that meet at an address; None for the machine's name."""
    return _jaxlib().make_gloo_tcp_collectives(distributed_client=_member(), hostname=host)


def set_cpu_collectives(make: Callable[[], Any]) -> None:
    """Let the CPU backend, when it starts, have collectives of our own making."""
    bridge: Any = import_module("jax._src.xla_bridge")

    def factory() -> Any:
        return bridge.make_cpu_client(collectives=make())

    bridge.register_backend_factory("cpu", factory, priority=0, fail_quietly=False)


def explain_errors(reraise: Callable[[Exception], NoReturn]) -> None:
    """Let errors of programs be explained where their results are waited for: a program that runs has no other place."""
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
    """A text that is being put where all members can read it, or taken away (`is_tidying`)."""

    def __init__(self, write: Callable[[], Any], *, is_tidying: bool = False) -> None:
        self.is_tidying = is_tidying
        self._write = write
        self._done = threading.Event()
        self._error: Exception | None = None

    def wait(self, seconds: float) -> bool:
        """Wait for a while; tell whether it is there."""
        if self._done.wait(seconds) and self._error is not None:
            raise self._error
        return self._done.is_set()

    def run(self) -> None:
        """Put it there."""
        try:
            _answered(self._write)
        except UnavailableError as error:
            self._error = error
        self._done.set()


@final
class _Writer:
    """Writes in a thread: a write has no time limit of JAX's, and the service may be silent for ever."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Written | None] = SimpleQueue()  # None: the thread is to end
        self._thread: threading.Thread | None = None

    def put(self, written: Written) -> Written:
        """Write after all that was put before."""
        if self._thread is None:
            self._thread = background.thread(self._run, "evenfeed-store", self._stop)
            self._thread.start()
        self._waiting.put(written)
        return written

    def _stop(self) -> None:
        self._waiting.put(None)

    def _run(self) -> None:
        while (written := self._waiting.get()) is not None:
            # What others wait for is written to the end; what nobody will ask for need not be taken away.
            if not (written.is_tidying and background.are_ending):
                written.run()


_writer: Final = _Writer()


def store_text(key: str, text: str) -> Written:
    """Put a text where all members can read it."""
    return _writer.put(Written(lambda: _member().key_value_set(key, text)))


def forget_text(key: str) -> None:
    """Take away what this member put there, some time soon."""
    _writer.put(Written(lambda: _member().key_value_delete(key), is_tidying=True))


def stored_text(key: str, seconds: float) -> str | None:
    """Return the text that a member put there, wait for it for a while; None where it did not come."""
    return _answered(lambda: _member().blocking_key_value_get(key, int(1000 * seconds)))


def _answered(ask: Callable[[], Any]) -> Any:
    """Ask the service; None where the time is over."""
    try:
        return ask()
    except Exception as error:
        if "DEADLINE_EXCEEDED" in str(error):
            return None
        raise UnavailableError(
            f"The coordination service of the workers does not answer: {error}",
            fix="look at what the other workers printed last.",
        ) from error


def _member() -> Any:
    state: Any = import_module("jax._src.distributed").global_state
    return state.client
