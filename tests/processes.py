"""What there is to see of processes, without asking them."""

import time
from collections.abc import Callable
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the processes that another has started and that are not reaped."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def alive(pids: list[int]) -> list[int]:
    """Return those that still run."""
    return [pid for pid in pids if _state(pid) not in (None, "Z")]


def _state(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for a condition; fail if it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.01)
