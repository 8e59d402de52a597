"""`CheckpointManager`: saves checkpoints into a folder, and deletes old ones."""

import os
import time
from collections.abc import Callable
from typing import Any, final

from evenfeed.checkpoints.checkpoint import Checkpoint, write_then
from evenfeed.checkpoints.checkpoint_options import CheckpointOptions
from evenfeed.checkpoints.state_file import get_checkpoint_state, update_checkpoint_state
from evenfeed.checkpoints.storage import checked_path, delete, named_path
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy import logging


@final
class CheckpointManager:
    """Saves checkpoints into a folder, deletes old ones, and finds the latest after a restart.

    Args:
        checkpoint: The Checkpoint to save.
        directory: The folder. Only one manager at a time may save into it.
        max_to_keep: How many checkpoints to keep; None for all.
        keep_checkpoint_every_n_hours: Never delete one checkpoint for each so many hours.
        checkpoint_name: The beginning of the names of the checkpoints.
        step_counter: A variable with the number of the current step, for `checkpoint_interval`.
        checkpoint_interval: The least number of steps between two checkpoints: `save` does nothing in between.
        init_fn: Called by `restore_or_initialize` if there is no checkpoint.

    Raises:
        ValueError: An argument is wrong.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder, step = tempfile.TemporaryDirectory(), tf.Variable(0)
        >>> checkpoint = tf.train.Checkpoint(step=step)
        >>> manager = tf.train.CheckpointManager(checkpoint, folder.name, max_to_keep=2)
        >>> for number in range(3):
        ...     _ = step.assign(number), manager.save()
        >>> [path.rpartition("/")[2] for path in manager.checkpoints]
        ['ckpt-2', 'ckpt-3']
        >>> _ = step.assign(0), manager.restore_or_initialize()
        >>> int(step)
        2
        >>> folder.cleanup()
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], object] | None = None,
    ) -> None:
        _check_arguments(checkpoint, max_to_keep, step_counter, checkpoint_interval)
        self._checkpoint = checkpoint
        self._directory = named_path(directory)
        checked_path(directory)
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step: int | None = None
        self._latest: str | None = None
        self._times: dict[str, float] = {}
        self._last_preserved = time.time() - 1
        self._recover()

    def _recover(self) -> None:
        """Continue with the checkpoints that the folder has."""
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        now = time.time()
        paths, times = state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps
        if len(times) != len(paths):  # Checkpoint.save wrote the file
            times = [now] * len(paths)
        self._latest = state.model_checkpoint_path
        self._times = dict(zip(paths, times, strict=True))
        self._last_preserved = min(now, state.last_preserved_timestamp)

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The Checkpoint."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between two checkpoints."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are not deleted yet, the oldest first."""
        return list(self._times)

    def save(
        self,
        checkpoint_number: Any = None,
        check_interval: bool = True,
        options: CheckpointOptions | None = None,
    ) -> str | None:
        """Save a checkpoint, and delete the oldest if there are too many.

        Args:
            checkpoint_number: The number in its name; by default how often the Checkpoint was saved.
            check_interval: Whether `checkpoint_interval` counts.
            options: How to save.

        Returns:
            The path; None if it is not time for a checkpoint.
        """
        if not self._is_time(check_interval):
            return None
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        number = int(counter if checkpoint_number is None else checkpoint_number)
        path = f"{self._prefix}-{number}"

        before = {known: moment for known, moment in self._times.items() if known != path}
        kept, gone, preserved = self._swept(before | {path: time.time()})

        def record() -> None:
            # First with those to delete: a kill while they are deleted leaves the file true.
            self._record(path, {**{old: before[old] for old in gone}, **kept}, self._last_preserved)
            for old in gone:
                delete(old)
            self._record(path, kept, preserved)

        write_then(self._checkpoint, path, record, options)
        self._latest, self._times, self._last_preserved = path, kept, preserved
        return path

    def _is_time(self, check_interval: bool) -> bool:
        if self._interval is None:
            return True
        step = int(self._step_counter)
        if self._last_step is not None:
            passed = step - self._last_step
            if passed < self._interval if check_interval else passed == 0:
                return False
        self._last_step = step
        return True

    def _swept(self, times: dict[str, float]) -> tuple[dict[str, float], list[str], float]:
        """Return which checkpoints to keep, which to delete, and when the last one was saved that is kept forever."""
        gone: list[str] = []
        preserved = self._last_preserved
        while self._max_to_keep is not None and len(times) > self._max_to_keep:
            path = next(iter(times))
            moment = times.pop(path)
            if self._hours is not None and moment - 3600 * self._hours >= preserved:
                preserved = moment
            else:
                gone.append(path)
        return times, gone, preserved

    def _record(self, latest: str, times: dict[str, float], preserved: float) -> None:
        folder = checked_path(self._directory)
        update_checkpoint_state(folder, latest, list(times), list(times.values()), preserved)

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint, or call `init_fn` if there is none.

        Returns:
            The path of the restored checkpoint; None if there is none.
        """
        if self._latest is None:
            if self._init_fn is not None:
                self._init_fn()
                logging.getLogger("evenfeed").info("initialized with init_fn: no checkpoint yet")
            return None
        self._checkpoint.restore(self._latest)
        if self._interval is not None:
            self._last_step = int(self._step_counter)
        return self._latest

    def sync(self) -> None:
        """Wait until a checkpoint that is saved in the background is complete. Raises the error if that failed."""
        self._checkpoint.sync()


def _check_arguments(
    checkpoint: object, max_to_keep: int | None, step_counter: object, interval: int | None
) -> None:
    if not isinstance(checkpoint, Checkpoint):
        raise TypeError(
            described(
                f"checkpoint must be a Checkpoint, but got {shortened(checkpoint)}.",
                fix="pass evenfeed.train.Checkpoint(model=model, step=step).",
            )
        )
    if max_to_keep is not None and max_to_keep < 1:
        raise ValueError(
            described(
                f"max_to_keep must be at least 1, but got {max_to_keep}.",
                fix="pass the number of checkpoints to keep, or None for all.",
            )
        )
    if interval is not None and step_counter is None:
        raise ValueError(
            described(
                "checkpoint_interval counts steps, but there is no step_counter.",
                fix="pass step_counter=step, a variable with the number of the step.",
            )
        )
