"""Files that each worker writes for itself into a checkpoint, and reads again, perhaps with another number of workers."""

import os
import re
from typing import Final

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


def read_own(folder: str) -> str:
    """Read this worker's text. Another number of workers can read texts that are the same on all workers.

    Raises:
        FailedPreconditionError: The workers wrote different texts, and now there are more or fewer workers.
    """
    found = sorted(name for name in os.listdir(folder) if _OWN.fullmatch(name))
    index, count = place()
    own = f"worker-{index}-of-{count}.json"
    if own in found:
        return _read(os.path.join(folder, own))
    if not found:
        raise NotFoundError(
            f"{folder} does not have the positions of workers.",
            fix="restore a checkpoint that was saved with this handler.",
        )
    texts = {_read(os.path.join(folder, name)) for name in found}
    if len(texts) > 1:
        raise FailedPreconditionError(
            f"{len(found)} workers saved different positions, but now there are {count}: {folder}.",
            fix=f"restore with {len(found)} workers, or save iterators whose state is the same on all workers.",
        )
    return texts.pop()


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
