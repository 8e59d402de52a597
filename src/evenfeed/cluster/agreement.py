"""What workers tell each other on the host: through the store of JAX's coordination service."""

import time
from collections.abc import Callable
from itertools import count
from typing import Final, final

from evenfeed.cluster.jax_private import store_text, stored_text
from evenfeed.core.errors import CancelledError, UnavailableError

_WAIT_SECONDS: Final = 0.5  # no wait is longer without a look at who still listens
_MOST_SECONDS: Final = 600.0

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
    """

    def __init__(self, worker: int, workers: int) -> None:
        self._worker = worker
        self._workers = workers

    def exchange(self, key: str, said: str, is_closed: Callable[[], bool]) -> list[str]:
        """Say something under a key that is used once; return what every worker said, in their order.

        Raises:
            CancelledError: Nobody waits for the answer any more.
            UnavailableError: A worker did not answer.
        """
        store_text(f"{key}/{self._worker}", said)
        end = time.monotonic() + _MOST_SECONDS
        return [
            said if worker == self._worker else _heard(key, worker, end, is_closed)
            for worker in range(self._workers)
        ]


def _heard(key: str, worker: int, end: float, is_closed: Callable[[], bool]) -> str:
    while not is_closed():
        found = stored_text(f"{key}/{worker}", _WAIT_SECONDS)
        if found is not None:
            return found
        if time.monotonic() > end:
            raise UnavailableError(
                f"Worker {worker} did not say within {_MOST_SECONDS:g} seconds what it has at the next steps.",
                fix="look at what it printed last; all workers must read the same distributed datasets.",
            )
    raise CancelledError(
        "The iterator is closed.", fix="begin a new one: iter(distributed_dataset)."
    )
