"""Files that each worker writes for itself into a checkpoint, and reads again, perhaps with another number of workers."""

import os
import re
from collections.abc import Sequence
from typing import Any, Final

from evenfeed.cluster.jax_private import joined_runtime
from evenfeed.core.errors import FailedPreconditionError, NotFoundError

_SHARED: Final = "shared.json"
_OWN: Final = re.compile(r"worker-(\d+)-of-(\d+)\.json")


def place() -> tuple[int, int]:
    """Return this worker's index and the number of workers."""
    return joined_runtime() or (0, 1)


def write_own(folder: str, own: str, shared: str | None = None) -> None:
    """Write this worker's text; worker 0 also writes the shared one."""
    index, count = place()
    _write(os.path.join(folder, f"worker-{index}-of-{count}.json"), own)
    if shared is not None and index == 0:
        _write(os.path.join(folder, _SHARED), shared)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read_shared(folder: str) -> str:
    """Read the text for all workers."""
    return _read(os.path.join(folder, _SHARED))


def read_own(folder: str) -> list[str]:
    """Read this worker's text. If there were more or fewer workers, return the texts of all of them."""
    found = sorted(name for name in os.listdir(folder) if _OWN.fullmatch(name))
    index, count = place()
    own = f"worker-{index}-of-{count}.json"
    if not found:
        raise NotFoundError(
            f"{folder} does not have the states of workers.",
            fix="restore a checkpoint that was saved in the same way.",
        )
    return [_read(os.path.join(folder, name)) for name in ([own] if own in found else found)]


def common(states: Sequence[Any], folder: str) -> Any:
    """Return the state that all workers saved, for another number of workers.

    Raises:
        FailedPreconditionError: They saved different states.
    """
    if any(state != states[0] for state in states):
        raise FailedPreconditionError(
            f"{len(states)} workers saved different states, but now there are {place()[1]}: {folder}.",
            fix=f"restore with {len(states)} workers, or save objects whose state is the same on all workers.",
        )
    return states[0]


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
