"""The file `checkpoint` in a folder of checkpoints, which says which of them is the latest. Its format is TensorFlow's."""

import json
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, final

from evenfeed.checkpoints.storage import checked_path, exists, named_path
from evenfeed.core.errors import DataLossError
from evenfeed.core.lazy import logging

_NAME: Final = "checkpoint"
_POLL_SECONDS: Final = 1.0


@final
@dataclass(frozen=True)
class CheckpointState:
    """Which checkpoints a folder has.

    Attributes:
        model_checkpoint_path: The latest checkpoint.
        all_model_checkpoint_paths: All that are kept, the oldest first.
        all_model_checkpoint_timestamps: When each was saved, in seconds since 1970.
        last_preserved_timestamp: When the last one was saved that `keep_checkpoint_every_n_hours` keeps forever.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str] = field(default_factory=list[str])
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list[float])
    last_preserved_timestamp: float = 0.0


def update_checkpoint_state(
    folder: str,
    latest: str,
    paths: Sequence[str],
    times: Sequence[float] = (),
    last_preserved: float | None = None,
) -> None:
    """Replace the file atomically. Paths in it are relative to the folder, so that the folder can be moved."""
    lines = [("model_checkpoint_path", _relative(folder, latest))]
    lines += [("all_model_checkpoint_paths", _relative(folder, path)) for path in paths]
    lines += [("all_model_checkpoint_timestamps", moment) for moment in times]
    if last_preserved is not None:
        lines.append(("last_preserved_timestamp", last_preserved))
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in lines)
    target = os.path.join(folder, _NAME)
    part = f"{target}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, target)


def _relative(folder: str, path: str) -> Any:
    return os.path.relpath(os.path.abspath(path), folder)


def get_checkpoint_state(
    checkpoint_dir: Any, latest_filename: str | None = None
) -> CheckpointState | None:
    """Read which checkpoints a folder has; None if it has none.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The name of the file that says it; by default "checkpoint".

    Examples:
        >>> import evenfeed as tf
        >>> tf.train.get_checkpoint_state("/no/such/folder") is None
        True
    """
    folder = named_path(checkpoint_dir)
    name = os.path.join(checked_path(folder), latest_filename or _NAME)
    try:
        with open(name, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    found: dict[str, list[Any]] = {}
    for line in lines:
        key, colon, value = line.partition(": ")
        try:
            found.setdefault(key, []).append(json.loads(value if colon else ""))
        except ValueError:
            raise DataLossError(
                f"{name} is damaged: {line!r}.",
                fix="delete it, and restore a checkpoint by its path.",
            ) from None
    paths = [os.path.join(folder, path) for path in found.get("all_model_checkpoint_paths", [])]
    return CheckpointState(
        os.path.join(folder, found["model_checkpoint_path"][0]),
        paths,
        found.get("all_model_checkpoint_timestamps", []),
        found.get("last_preserved_timestamp", [0.0])[0],
    )


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Return the path of the latest checkpoint in a folder; None if there is none.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The name of the file that says it; by default "checkpoint".

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     before = tf.train.latest_checkpoint(folder)
        ...     path = tf.train.Checkpoint(v=tf.Variable(1)).save(folder + "/ckpt")
        ...     before, tf.train.latest_checkpoint(folder) == path
        (None, True)
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path = state.model_checkpoint_path
    if exists(path) or os.path.exists(f"{path}.index"):  # restoring one of TensorFlow's explains
        return path
    logging.getLogger("evenfeed").error("The latest checkpoint, %s, is gone.", path)
    return None


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Generator[str]:
    """Yield the path of each new checkpoint in a folder, as other programs save them.

    Args:
        checkpoint_dir: The folder.
        min_interval_secs: The least number of seconds between two results.
        timeout: How many seconds to wait for a new checkpoint; None for any time.
        timeout_fn: Called when the time is over. If it returns True, the iterator ends; otherwise it waits again.
            Without it, the iterator ends.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(v=tf.Variable(1)).save(folder + "/ckpt")
        ...     list(tf.train.checkpoints_iterator(folder, timeout=0)) == [path]
        True
    """
    last: str | None = None
    while True:
        found = _next_checkpoint(checkpoint_dir, last, timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        start, last = time.monotonic(), found
        yield found
        time.sleep(max(0.0, start + min_interval_secs - time.monotonic()))


def _next_checkpoint(folder: Any, last: str | None, timeout: float | None) -> str | None:
    """Wait for a checkpoint other than the last one; return None when the time is over."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        with suppress(FileNotFoundError):
            found = latest_checkpoint(folder)
            if found is not None and found != last:
                return found
        if end is not None and time.monotonic() + _POLL_SECONDS > end:
            return None
        time.sleep(_POLL_SECONDS)
