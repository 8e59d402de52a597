"""Gives XLA's CPU client enough threads to run collectives without a deadlock.

Each CPU device that waits in a collective blocks a thread of the client's pool, and so does each device of
a program that is being launched while 32 others are under way. The pool has one thread per core, or per
device if there are more devices. Up to JAX 0.11 this is too few, even with a core for each device: one device
gets no thread, the others wait for it, and after 40 s XLA aborts the process. It needs a thread for each
device to run a program, and one for each Python thread that launches programs; the programs of all
strategies are launched in turn (`replicas/launch_turns.py`). Measured with 2, 4 and 8 devices on JAX 0.9, 0.10
and 0.11: with fewer than two threads per device it hangs within a few hundred steps; with two it never did.
JAX 0.12 runs programs on a separate pool and never hung. The environment variable NPROC enlarges the pool
if it is set before the backend starts. A larger pool makes programs slower (docs/decisions/devices.md).
"""

import os
import re
from typing import NamedTuple

from evenfeed.cluster.hardware import started_devices
from evenfeed.cluster.jax_private import THREADS_PER_DEVICE, backend_started, pool_threads
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax

_FORCED = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


class Threads(NamedTuple):
    """The CPU devices that the environment asks for, the threads that XLA will start, and those that it should."""

    devices: int
    expected: int
    wanted: int


def threads() -> Threads:
    """Return what the environment asks for."""
    devices = _requested_devices()
    return Threads(devices, _expected_threads(), THREADS_PER_DEVICE * devices if devices > 1 else 1)


def arrange_threads() -> None:
    """Raise NPROC to THREADS_PER_DEVICE for each CPU device, unless the backend has already started."""
    if backend_started():
        return
    found = threads()
    if found.expected < found.wanted:
        os.environ["NPROC"] = str(found.wanted)


def ensure_threads(replicas: int | None = None) -> None:
    """Make sure that XLA has enough threads for collectives between CPU devices.

    Args:
        replicas: The number of CPU devices in a collective; by default all of them. A single device
            waits for no other, so it needs nothing.

    Raises:
        RuntimeError: The backend has already started with too few threads.
    """
    arrange_threads()
    if not backend_started():
        return
    meeting = len(started_devices("CPU")) if replicas is None else replicas
    started = pool_threads() or max(_expected_threads(), len(started_devices("CPU")))
    if meeting > 1 and started < _needed_per_device() * meeting:
        raise RuntimeError(_too_few(meeting, started))


def _needed_per_device() -> int:
    return 1 if jax.__version_info__ >= (0, 12) else 2


def _requested_devices() -> int:
    # jax_num_cpu_devices reflects JAX_NUM_CPU_DEVICES; -1 means that it is not set.
    configured = int(jax.config.jax_num_cpu_devices)
    if configured >= 0:
        return configured
    forced = _FORCED.findall(os.environ.get("XLA_FLAGS", ""))
    return int(forced[-1]) if forced else 1


def _expected_threads() -> int:
    """Return the number of threads that XLA will start. It ignores an NPROC that is not a number."""
    try:
        return int(os.environ["NPROC"])
    except (KeyError, ValueError):
        return _cores()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def _too_few(meeting: int, started: int) -> str:
    return described(
        f"JAX's backend started with {started} threads, too few for collectives between {meeting} "
        f"CPU devices: they would deadlock until XLA aborts the process.",
        fix=f"export NPROC={THREADS_PER_DEVICE * meeting} before the program starts; or call "
        "evenfeed.config.set_logical_device_configuration, which sets NPROC, before anything else "
        "uses JAX.",
    )
