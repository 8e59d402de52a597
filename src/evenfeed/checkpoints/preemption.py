"""Saves a checkpoint on all workers at the same step when one of them will be ended."""

import os
import sys
import time
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, Final, final

from evenfeed.checkpoints.checkpoint import Checkpoint
from evenfeed.checkpoints.rotation import CheckpointManager
from evenfeed.checkpoints.stop_step import StopStep
from evenfeed.checkpoints.termination import Notice, TerminationConfig
from evenfeed.checkpoints.worker_files import place
from evenfeed.cluster.membership import membership_of
from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy import logging
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.device_arrays import held_dtype

_RUNS: Final = "checkpointed_runs"
_EXIT_CODE: Final = 42
_STEPS_LEFT: Final = 6  # how many steps before the end of the grace period the last save starts

# Handlers are numbered in the order in which the program creates them, which is the same on all workers.
_numbers: Final = count()


@final
class PreemptionCheckpointHandler:
    """Saves a checkpoint and exits when a worker is about to be ended, on all workers at the same step.

    When it is created, it restores the latest checkpoint. After a notice (by default SIGTERM to any worker), the workers
    agree on a step, save there, and exit with code 42. A program that is started again goes on at that step.

    Args:
        cluster_resolver: Lists the workers: `strategy.cluster_resolver`; None for one worker.
        checkpoint_or_checkpoint_manager: What to save.
        checkpoint_dir: The folder, if that is a Checkpoint.
        termination_config: How to notice the end, and how to exit.

    Raises:
        InvalidArgumentError: A Checkpoint without a folder.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> step, folder = tf.Variable(0), tempfile.TemporaryDirectory()
        >>> handler = tf.distribute.experimental.PreemptionCheckpointHandler(
        ...     None, tf.train.Checkpoint(step=step), folder.name)
        >>> for _ in range(handler.total_run_calls, 3):
        ...     _ = handler.run(step.assign_add, 1)
        >>> int(step), handler.total_run_calls
        (3, 3)
        >>> folder.cleanup()
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None,
        checkpoint_or_checkpoint_manager: Checkpoint | CheckpointManager,
        checkpoint_dir: Any = None,
        termination_config: TerminationConfig | None = None,
    ) -> None:
        self._manager = _manager_of(checkpoint_or_checkpoint_manager, checkpoint_dir)
        config = termination_config or TerminationConfig()
        self._exit_fn = config.exit_fn or _exit
        self._save_fn = config.save_fn
        self._grace_seconds = config.grace_period or 0
        self._place, self._workers = _place_of(cluster_resolver)
        checkpoint = self._manager.checkpoint
        if _RUNS not in vars(checkpoint):  # no handler before this one
            setattr(checkpoint, _RUNS, Variable(0, trainable=False, dtype=held_dtype(dtypes.int64)))
        self._saved_runs: Any = vars(checkpoint)[_RUNS]
        self._manager.restore_or_initialize()
        self._runs = int(self._saved_runs)
        self._seconds_per_run = 0.0
        self._deadline: float | None = None  # when the last save starts
        self._is_last = not self._grace_seconds
        self._is_over = False
        self._stop = self._new_stop()
        self._notice = Notice(config.termination_watcher_fn)
        weakref.finalize(self, self._notice.stop)

    def _new_stop(self) -> StopStep:
        topic = f"evenfeed/preemption/{next(_numbers)}"
        stop = StopStep(topic, self._place, self._workers, self._runs)
        weakref.finalize(self, stop.close)
        return stop

    @property
    def total_run_calls(self) -> int:
        """How often `run` was called, in the programs before this one too."""
        return self._runs

    def run(self, distributed_train_function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run one training step, or save and exit instead if it is time.

        Args:
            distributed_train_function: The training step.
            *args: Its arguments. An iterator is better than an element of it: an element that was taken before the
                checkpoint is saved is not trained on.
            **kwargs: Its named arguments.

        Returns:
            What the step returns.
        """
        self._save_if_due()
        start = time.monotonic()
        result = distributed_train_function(*args, **kwargs)
        self._runs += 1
        seconds = time.monotonic() - start
        self._seconds_per_run += (seconds - self._seconds_per_run) / self._runs
        return result

    def save_checkpoint_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        """Save and exit if it is time; for programs that call their training step themselves, once for each step.

        Args:
            *args: Arguments of `CheckpointManager.save`.
            **kwargs: Its named arguments.
        """
        self._save_if_due(*args, **kwargs)
        self._runs += 1

    def _save_if_due(self, *args: Any, **kwargs: Any) -> None:
        if self._is_over:  # exit_fn chose to go on
            return
        if self._notice.is_given and self._is_time():
            self._stop.ask()
        if not self._stop.is_now(self._runs):
            return
        self._saved_runs.assign(self._runs)
        save = self._save_fn or self._manager.save
        save(*args, **kwargs)
        log = logging.getLogger("evenfeed")
        if self._is_last:
            log.warning("saved before the end of this process, at step %d; exiting", self._runs)
            self._stop.close()
            self._notice.stop()
            self._is_over = True
            self._exit_fn()
            return
        log.warning(
            "saved at step %d; training goes on for the rest of the grace period", self._runs
        )
        self._is_last = True
        self._stop.close()
        self._stop = self._new_stop()

    def _is_time(self) -> bool:
        """Return True at the notice, and again when the grace period is almost over."""
        now = time.monotonic()
        if self._deadline is None:
            margin = _STEPS_LEFT * self._seconds_per_run
            self._deadline = now + max(0.0, self._grace_seconds - margin)
        return not self._is_last or now >= self._deadline

    def watch_preemption_scope(self) -> "_Scope":
        """Return a context manager that does nothing: `run` does all the work."""
        return _Scope()


@final
class _Scope:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *raised: object) -> None:
        return None


@final
class PreemptionWatcher:
    """Says whether this process got SIGTERM, for programs that save on their own.

    Examples:
        >>> import os, signal
        >>> import evenfeed as tf
        >>> watcher = tf.distribute.experimental.PreemptionWatcher()
        >>> watcher.preemption_message is None
        True
        >>> os.kill(os.getpid(), signal.SIGTERM)
        >>> watcher.preemption_message
        'SIGTERM'
    """

    def __init__(self) -> None:
        self._notice = Notice()

    @property
    def preemption_message(self) -> str | None:
        """What was received; None if nothing was."""
        return "SIGTERM" if self._notice.is_given else None

    def block_until_worker_exit(self) -> None:
        """Return at once: workers are processes of their own, which exit when they have saved."""


def _manager_of(given: object, folder: Any) -> CheckpointManager:
    if isinstance(given, CheckpointManager):
        return given
    if not isinstance(given, Checkpoint):
        raise TypeError(
            described(
                f"checkpoint_or_checkpoint_manager must be a Checkpoint or a CheckpointManager, but got {shortened(given)}.",
                fix="pass evenfeed.train.Checkpoint(model=model, data=iterator).",
            )
        )
    if folder is None:
        raise InvalidArgumentError(
            "A Checkpoint needs a folder to be saved in.",
            fix="pass checkpoint_dir, or a CheckpointManager.",
        )
    return CheckpointManager(given, os.fspath(folder), max_to_keep=1)


def _place_of(resolver: ClusterResolver | None) -> tuple[int, int]:
    """Return this worker's index and the number of workers, which must be those that are connected."""
    if resolver is None:
        return place()
    membership = membership_of(resolver)
    if membership.worker_count != place()[1]:
        raise ValueError(
            described(
                f"The cluster has {membership.worker_count} workers, but {place()[1]} are connected.",
                fix="create the MultiWorkerMirroredStrategy first, and pass strategy.cluster_resolver.",
            )
        )
    return membership.place, membership.worker_count


def _exit() -> None:
    sys.exit(_EXIT_CODE)
