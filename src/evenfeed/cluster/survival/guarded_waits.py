"""Waits for the other workers in compiled code, which the loss of a worker would not end for minutes."""

from collections.abc import Callable
from typing import Final, TypeVar

from evenfeed.core.concurrency.peers import peers
from evenfeed.core.concurrency.threads import background
from evenfeed.core.concurrency.waiting import Pending

_CHECK_SECONDS: Final = 0.1

_T = TypeVar("_T")


def guarded(call: Callable[[], _T]) -> _T:
    """Call a function that waits for all workers, in a thread of its own.

    Raises:
        UnavailableError: A worker was lost meanwhile. The thread keeps waiting; it does not keep the program from
            exiting.
    """
    found: Pending[_T] = Pending()

    def run() -> None:
        try:
            found.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            found.set_exception(error)

    background.thread(run, "evenfeed-guarded", lambda: None).start()
    while not found.done():
        try:
            return found.result(_CHECK_SECONDS)
        except TimeoutError:
            peers.check()
    return found.result()
