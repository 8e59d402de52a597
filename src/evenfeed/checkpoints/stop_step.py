"""Lets all workers stop at the same step after one of them got a notice.

The rule is that of JAX's preemption service: each worker tells how many steps it has begun, and all stop after one more
than the largest. That service itself knows SIGTERM only, replaces Python's handler of the signal, and agrees only once,
so it could serve neither a watcher nor a grace period.
"""

import threading
from typing import Final, final

from evenfeed.cluster.host_exchange import StoredAgreement
from evenfeed.cluster.jax_private import store_text, stored_text
from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import CancelledError, UnavailableError

_POLL_SECONDS: Final = 0.5


@final
class StopStep:
    """The step at which all workers stop. One worker alone stops at its next step.

    Args:
        topic: A name that is the same on all workers, and used once.
        place: This worker's index.
        workers: The number of workers.
        step: The step that this worker is at.
    """

    def __init__(self, topic: str, place: int, workers: int, step: int) -> None:
        self._topic = topic
        self._place, self._workers = place, workers
        self._lock = threading.Lock()
        self._step = step
        self._asked = False  # this worker wants to stop
        self._told: int | None = None  # the step that it told the others
        self._agreed: int | None = None
        self._error: Exception | None = None
        self._answered = threading.Event()
        self._closed = threading.Event()
        if workers > 1:
            background.thread(self._agree, "evenfeed-preemption", self.close).start()

    def ask(self) -> None:
        """Ask all workers to stop."""
        self._asked = True

    def is_now(self, step: int) -> bool:
        """Return True if all workers stop before this step. Called for each step, with growing numbers."""
        if self._workers == 1:
            return self._asked
        with self._lock:
            self._step = step
            may_be_past = self._told is not None and step > self._told
        if may_be_past:
            # The others' threads answer, whatever their steps do meanwhile.
            while not self._answered.wait(_POLL_SECONDS):
                if self._closed.is_set():
                    return False
            if self._error is not None:
                raise self._error
        return self._agreed == step

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()

    def _agree(self) -> None:
        """Wait until a worker asks, and exchange steps."""
        asked = False
        try:
            while stored_text(f"{self._topic}/asked", _POLL_SECONDS) is None:
                if self._closed.is_set():
                    return
                if self._asked and not asked:
                    asked = True
                    store_text(f"{self._topic}/asked", "1")  # another worker may have done so too
            with self._lock:
                told = self._told = self._step
            agreement = StoredAgreement(self._place, self._workers)
            steps = agreement.exchange(f"{self._topic}/steps", str(told), self._closed.is_set)
            self._agreed = max(map(int, steps)) + 1
        except (UnavailableError, CancelledError) as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - raised in the main thread
            self._error = error
        self._answered.set()
