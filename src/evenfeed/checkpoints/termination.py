"""Notices that this process will be ended: by SIGTERM, or by a user function that is called every few seconds."""

import os
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, final

from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import described

_POLL_SECONDS: Final = 1.0


@final
class TerminationConfig:
    """How a `PreemptionCheckpointHandler` notices that the process will be ended, and how the process exits.

    Args:
        termination_watcher_fn: Returns True when the process will be ended soon. It is called every second, in a thread.
            By default, SIGTERM says so.
        exit_fn: Called after the checkpoint was saved. By default, the process exits with code 42.
        grace_period: How many seconds are left after the notice. A checkpoint is saved at once, training goes on, and
            another one is saved shortly before the end. By default, the process exits after the first.
        save_fn: Saves the checkpoint instead of the manager.

    Examples:
        >>> import sys
        >>> import evenfeed as tf
        >>> config = tf.distribute.experimental.TerminationConfig(exit_fn=lambda: sys.exit(3))
        >>> config.grace_period is None
        True
    """

    def __init__(
        self,
        termination_watcher_fn: Callable[[], Any] | None = None,
        exit_fn: Callable[[], object] | None = None,
        grace_period: float | None = None,
        save_fn: Callable[..., object] | None = None,
    ) -> None:
        self.termination_watcher_fn = termination_watcher_fn
        self.exit_fn = exit_fn
        self.grace_period = grace_period
        self.save_fn = save_fn


@final
class Notice:
    """Whether this process will be ended.

    Args:
        watcher: Returns True when it will. Without it, SIGTERM counts.
    """

    def __init__(self, watcher: Callable[[], Any] | None = None) -> None:
        self._given = False
        self._stopped = threading.Event()
        self._watcher = watcher
        self._error: Exception | None = None
        if watcher is None:
            _listen(self)
        else:
            background.thread(self._watch, "evenfeed-termination", self.stop).start()

    def give(self) -> None:
        """Say that the process will be ended. A signal may call it between any two lines."""
        self._given = True

    @property
    def is_given(self) -> bool:
        """True if the process will be ended. Raises if the function of the user raised."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._given

    def stop(self) -> None:
        """Stop asking."""
        self._stopped.set()

    def _watch(self) -> None:
        assert self._watcher is not None
        while not self._stopped.wait(_POLL_SECONDS):
            try:
                if self._watcher():
                    self._given = True
                    return
            except Exception as error:  # noqa: BLE001 - raised in the main thread
                error.add_note("while termination_watcher_fn was asked, in a thread")
                self._error = error
                return


# Those who want to know of SIGTERM, and what handled it before.
_listeners: Final["weakref.WeakSet[Notice]"] = weakref.WeakSet()


class _Before:
    handler: Any = None


def _listen(notice: Notice) -> None:
    if signal.getsignal(signal.SIGTERM) is not _handle:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                described(
                    "Python receives SIGTERM in the main thread only.",
                    fix="create the handler there, or pass a termination_watcher_fn.",
                )
            )
        _Before.handler = signal.signal(signal.SIGTERM, _handle)
    _listeners.add(notice)


def _handle(number: int, frame: FrameType | None) -> None:
    listeners = list(_listeners)
    for notice in listeners:
        notice.give()
    if listeners:
        return
    if callable(_Before.handler):
        _Before.handler(number, frame)
    elif _Before.handler is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), number)
