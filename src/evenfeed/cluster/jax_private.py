"""All that evenfeed must know about devices and JAX does not say in public.

tests/strategy/test_threads.py fails when a version of JAX changes one of these.
"""

import sys
from pathlib import Path
from typing import Final

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
