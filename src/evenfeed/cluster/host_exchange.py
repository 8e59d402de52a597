"""What workers tell each other on the host: through the store of JAX's coordination service."""

import time
from collections.abc import Callable
from itertools import count
from typing import Final, final

from evenfeed.cluster.jax_private import forget_text, store_text, stored_text
from evenfeed.core.concurrency.peers import peers
from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import CancelledError, DeadlineExceededError, UnavailableError
from evenfeed.core.lazy import logging

_LOOK_SECONDS: Final = 0.5  # no wait is longer without a look at who still listens, and who is lost
_WARN_SECONDS: Final = 20.0
_PATIENCE_SECONDS: Final = 300.0

# Datasets are numbered in the order in which a program distributes them, which is the same on all workers.
_numbers: Final = count()


def topic_name() -> str:
    """Return a name that all workers give to the same distributed dataset."""
    return f"evenfeed/input/{next(_numbers)}"


@final
class StoredAgreement:
    """Lets all workers hear what each says.

    Args:
        worker: Which worker this is.
        workers: How many there are.
        patience: How many seconds to wait for one that is there and says nothing; None for five minutes.
    """

    def __init__(self, worker: int, workers: int, patience: float | None = None) -> None:
        self._worker = worker
        self._workers = workers
        self._patience = _PATIENCE_SECONDS if patience is None else patience

    def exchange(self, key: str, said: str, is_closed: Callable[[], bool]) -> list[str]:
        """Say something under a key that is used once; return what every worker said, in their order.

        Raises:
            CancelledError: Nobody waits for the answer any more.
            DeadlineExceededError: A worker is there, and did not answer in time.
            UnavailableError: A worker is lost.
        """
        began = time.monotonic()
        try:
            written = store_text(f"{key}/{self._worker}", said)
            heard = [
                said if worker == self._worker else self._heard(key, worker, began, is_closed)
                for worker in range(self._workers)
            ]
            while not written.wait(_LOOK_SECONDS):  # or the others might not hear it before the end
                peers.check()
                _check_open(is_closed)
            return heard
        except UnavailableError as error:
            raise peers.explained(error) from error

    def forget(self, key: str) -> None:
        """Free what this worker said under a key: nobody will ask for it any more."""
        forget_text(f"{key}/{self._worker}")

    def _heard(self, key: str, worker: int, began: float, is_closed: Callable[[], bool]) -> str:
        warned = False
        while True:
            _check_open(is_closed)
            found = stored_text(f"{key}/{worker}", _LOOK_SECONDS)
            if found is not None:
                return found
            peers.check_waiting_for(worker)
            waited = time.monotonic() - began
            if waited > self._patience:
                raise _too_slow(worker, self._patience)
            if waited > _WARN_SECONDS and not warned:
                warned = True
                _warn(worker, self._patience)


def _check_open(is_closed: Callable[[], bool]) -> None:
    if is_closed():
        raise CancelledError(
            "The iterator is closed.", fix="begin a new one: iter(distributed_dataset)."
        )
    if background.are_ending:
        raise CancelledError("The program has ended.")


def _warn(worker: int, patience: float) -> None:
    logging.getLogger("evenfeed").warning(
        "Waiting for %s, which has said nothing for %g seconds where all workers tell each other what they have; "
        "after %g seconds that is an error.",
        peers.name(worker),
        _WARN_SECONDS,
        patience,
    )


def _too_slow(worker: int, patience: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"{peers.name(worker)} is there, but said nothing within {patience:g} seconds where all workers tell each "
        "other what they have.",
        fix="let all workers take the same steps, of the same datasets in the same order; or wait longer, with "
        "CommunicationOptions(timeout_seconds=3600).",
    )
