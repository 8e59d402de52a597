"""Exchanges short texts between workers on the host, through the key-value store of JAX's coordination service."""

import time
from collections.abc import Callable
from itertools import count
from typing import Final, final

from evenfeed.cluster.jax_private import forget_text, store_text, stored_text
from evenfeed.core.concurrency.peers import peers
from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import CancelledError, DeadlineExceededError, UnavailableError
from evenfeed.core.lazy import logging

_POLL_SECONDS: Final = 0.5  # how often a wait checks for a closed iterator and for lost workers
_WARN_SECONDS: Final = 20.0
_PATIENCE_SECONDS: Final = 300.0

# Datasets are numbered in the order in which the program distributes them, which is the same on all workers.
_numbers: Final = count()


def topic_name() -> str:
    """Return a name for the next distributed dataset, the same on all workers."""
    return f"evenfeed/input/{next(_numbers)}"


@final
class StoredAgreement:
    """Lets workers exchange texts.

    Args:
        worker: This worker's index.
        workers: The number of workers.
        patience: How many seconds to wait for a worker that is connected but sends nothing; None for five minutes.
    """

    def __init__(self, worker: int, workers: int, patience: float | None = None) -> None:
        self._worker = worker
        self._workers = workers
        self._patience = _PATIENCE_SECONDS if patience is None else patience

    def exchange(self, key: str, message: str, is_closed: Callable[[], bool]) -> list[str]:
        """Send a text under a key that is used once; return the texts of all workers, in worker order.

        Raises:
            CancelledError: The iterator is closed, or the program ends.
            DeadlineExceededError: A worker is connected, but did not answer in time.
            UnavailableError: A worker is lost.
        """
        start = time.monotonic()
        try:
            written = store_text(f"{key}/{self._worker}", message)
            heard = [
                message if worker == self._worker else self._read(key, worker, start, is_closed)
                for worker in range(self._workers)
            ]
            # Otherwise the program might end before the others have read it.
            while not written.wait(_POLL_SECONDS):
                peers.check()
                _check_open(is_closed)
            return heard
        except UnavailableError as error:
            raise peers.explained(error) from error

    def forget(self, key: str) -> None:
        """Delete this worker's text under a key that nobody will read any more."""
        forget_text(f"{key}/{self._worker}")

    def _read(self, key: str, worker: int, start: float, is_closed: Callable[[], bool]) -> str:
        warned = False
        while True:
            _check_open(is_closed)
            found = stored_text(f"{key}/{worker}", _POLL_SECONDS)
            if found is not None:
                return found
            peers.check_waiting_for(worker)
            waited = time.monotonic() - start
            if waited > self._patience:
                raise _timeout_error(worker, self._patience)
            if waited > _WARN_SECONDS and not warned:
                warned = True
                _warn(worker, self._patience)


def _check_open(is_closed: Callable[[], bool]) -> None:
    if is_closed():
        raise CancelledError(
            "The iterator is closed.", fix="create a new one: iter(distributed_dataset)."
        )
    if background.are_ending:
        raise CancelledError("The program has ended.")


def _warn(worker: int, patience: float) -> None:
    logging.getLogger("evenfeed").warning(
        "Still waiting for %s after %g seconds: it has not reached the point where all workers exchange information. "
        "This becomes an error after %g seconds.",
        peers.name(worker),
        _WARN_SECONDS,
        patience,
    )


def _timeout_error(worker: int, patience: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"{peers.name(worker)} is running, but did not reach the point where all workers exchange information within "
        f"{patience:g} seconds.",
        fix="make all workers take the same steps of the same datasets in the same order, or wait longer with "
        "CommunicationOptions(timeout_seconds=3600).",
    )
