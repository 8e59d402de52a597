"""Gives XLA's CPU client enough threads for its collectives to meet.

Each CPU device that waits in a collective holds a thread of the client's pool, which has as many
threads as there are cores, or devices where those are more. Up to JAX 0.11 that is too few even
with a core for each device: one device finds no thread, the others wait for it, and after 40 s XLA
aborts the process. Measured with 2, 4 and 8 devices on JAX 0.9, 0.10 and 0.11: fewer than two threads
per device hang within some hundred steps, two never did. JAX 0.12 runs programs on a pool of their
own and never hung. The environment variable NPROC makes the pool larger, if it is set before the
backend starts.
"""

import os
import re
from typing import Any, Final

from evenfeed.cluster.hardware import started_devices
from evenfeed.cluster.jax_private import backend_started, pool_threads
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax

_jax: Any = jax  # whose settings have no types

_GIVEN: Final = 4  # per device: twice what was ever needed

_FORCED = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


def arrange_threads() -> None:
    """Raise NPROC to four threads per CPU device, where the backend has not started yet."""
    if backend_started():
        return
    devices = _devices_asked_for()
    if devices > 1 and _threads_to_come() < _GIVEN * devices:
        os.environ["NPROC"] = str(_GIVEN * devices)


def ensure_threads(replicas: int | None = None) -> None:
    """Make sure that CPU devices can meet in a collective, or say at once what to set.

    Args:
        replicas: How many CPU devices will meet; by default all that there are. One alone
            waits for nobody and needs nothing.

    Raises:
        RuntimeError: The backend has started with too few threads, which cannot be changed.
    """
    arrange_threads()
    if not backend_started():
        return
    meeting = len(started_devices("CPU")) if replicas is None else replicas
    threads = pool_threads() or max(_threads_to_come(), len(started_devices("CPU")))
    if meeting > 1 and threads < _needed_per_device() * meeting:
        raise RuntimeError(_too_few(meeting, threads))


def _needed_per_device() -> int:
    return 1 if _jax.__version_info__ >= (0, 12) else 2


def _devices_asked_for() -> int:
    # jax_num_cpu_devices has read JAX_NUM_CPU_DEVICES; -1 says that nobody asked.
    configured = int(_jax.config.jax_num_cpu_devices)
    if configured >= 0:
        return configured
    forced = _FORCED.findall(os.environ.get("XLA_FLAGS", ""))
    return int(forced[-1]) if forced else 1


def _threads_to_come() -> int:
    """Tell how many threads XLA will start: it overlooks an NPROC that is not a number."""
    try:
        return int(os.environ["NPROC"])
    except (KeyError, ValueError):
        return _cores()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def _too_few(meeting: int, threads: int) -> str:
    return described(
        f"{meeting} CPU devices cannot meet in a collective with the {threads} threads that JAX's "
        f"backend was started with: they would wait for each other until XLA aborts the process.",
        fix=f"export NPROC={_GIVEN * meeting} before the program starts; or call "
        "evenfeed.config.set_logical_device_configuration before anything else uses JAX: it sets "
        "NPROC itself.",
    )
