"""Tracks which workers of the cluster are lost, and explains collective errors that follow."""

import re
import threading
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, final

from evenfeed.core.errors import DeadlineExceededError, EvenfeedError, UnavailableError

# How long the news of a lost worker may take to arrive after a collective has failed.
_NEWS_SECONDS: Final = 5.0
_MORE_NEWS_SECONDS: Final = 0.5

# Matches JAX errors of failed collectives. Other errors, such as one from a user callback, are left alone.
_MEETING: Final = re.compile(r"gloo|nccl|coordination service", re.IGNORECASE)
_SLOW: Final = re.compile(r"timed? ?out", re.IGNORECASE)

# Their classes. ValueError is raised if a program fails at once.
MEETING_ERRORS: Final = (RuntimeError, ValueError)

_RESTART: Final = "save what you need, end this program, and restart all workers."


@final
class Peers:
    """The workers of a cluster: which of them are gone, and why.

    The news comes from worker 0 and arrives in a background thread. Code that waits for another worker must
    therefore check here from time to time.
    """

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._gone: dict[int, str] = {}
        self._broken: int | None = None
        self._news = threading.Condition()
        self._rescues: list[Callable[[], None]] = []

    def at_loss(self, rescue: Callable[[], None]) -> None:
        """Call `rescue` once, before the program learns that no collective can succeed any more."""
        self._rescues.append(rescue)

    def expect(self, names: Sequence[str]) -> None:
        """Set the names of the workers, in order."""
        self._names = names

    def name(self, place: int) -> str:
        """Return the name of a worker."""
        return self._names[place] if place < len(self._names) else f"worker {place}"

    def hear(self, place: int, how: str, *, breaks: bool = True) -> None:
        """Record that a worker is gone. Only the first report about each worker counts.

        Args:
            place: The index of the worker.
            how: The rest of a sentence that starts with its name.
            breaks: Whether the others cannot continue. False if the worker just finished.
        """
        with self._news:
            if place in self._gone:
                return
            self._gone[place] = how
            if breaks and self._broken is None:
                self._broken = place
            self._news.notify_all()

    @property
    def is_broken(self) -> bool:
        """True if a worker was lost, so that no collective can succeed any more."""
        return self._broken is not None

    def check(self) -> None:
        """Raise if a worker was lost.

        Raises:
            UnavailableError: A worker was lost; the message names it.
        """
        if self._broken is not None:
            raise self._unavailable(self._broken)

    def check_waiting_for(self, place: int) -> None:
        """Raise if the worker that this process waits for is gone, or if any worker was lost.

        Raises:
            UnavailableError: A worker is gone; the message names it.
        """
        self.check()
        if place in self._gone:
            raise self._unavailable(place)

    def explained(self, error: Exception) -> Exception:
        """Return the cause of a JAX error: a lost or slow worker. Otherwise returns the error itself."""
        text = str(error)
        if not self._names or not _MEETING.search(text):
            return error
        with self._news:
            seconds = _MORE_NEWS_SECONDS if self._gone else _NEWS_SECONDS
            if not _SLOW.search(text):
                self._news.wait_for(lambda: self.is_broken, seconds)
        first = self._broken if self._broken is not None else next(iter(self._gone), None)
        if first is not None:
            return self._unavailable(first)
        if _SLOW.search(text):
            self._rescue()
            return _too_slow(text)
        return error

    def reraise(self, error: Exception) -> NoReturn:
        """Raise the cause of a JAX error."""
        cause = self.explained(error)
        if cause is error:
            raise error
        raise cause from error

    def _rescue(self) -> None:
        while self._rescues:  # a rescue may call this method again
            self._rescues.pop()()

    def _unavailable(self, place: int) -> EvenfeedError:
        self._rescue()
        return UnavailableError(f"{self.name(place)} {self._gone[place]}", fix=_RESTART)


def _too_slow(text: str) -> EvenfeedError:
    return DeadlineExceededError(
        f"All workers are alive, but one did not reach a collective in time: {text}",
        fix="check what the other workers do, or pass a larger CommunicationOptions(timeout_seconds=...).",
    )


peers: Final = Peers()
