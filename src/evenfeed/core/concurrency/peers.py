"""What this process has heard of the workers that it computes with."""

import re
import threading
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, final

from evenfeed.core.errors import DeadlineExceededError, EvenfeedError, UnavailableError

# How long the news of a lost worker may take after a collective with it has failed.
_NEWS_SECONDS: Final = 5.0
_MORE_NEWS_SECONDS: Final = 0.5

# What JAX's errors say where workers could not meet. Others, such as one out of a user's callback, are left alone.
_MEETING: Final = re.compile(r"gloo|nccl|coordination service", re.IGNORECASE)
_SLOW: Final = re.compile(r"timed? ?out", re.IGNORECASE)

# Of these classes they are; of the second where a program fails at once.
MEETING_ERRORS: Final = (RuntimeError, ValueError)

_START_ANEW: Final = "save what you need, end this program, and start all workers anew."


@final
class Peers:
    """The workers of a cluster: who of them is gone, and how.

    Worker 0 says so in a thread of its own, so code that waits for another worker asks here from time to time.
    """

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._gone: dict[int, str] = {}
        self._broken: int | None = None
        self._news = threading.Condition()
        self._rescues: list[Callable[[], None]] = []

    def at_loss(self, rescue: Callable[[], None]) -> None:
        """Let something be done once, before a program is told that no collective can end well."""
        self._rescues.append(rescue)

    def expect(self, names: Sequence[str]) -> None:
        """Know who the workers are, by their places."""
        self._names = names

    def name(self, place: int) -> str:
        """Return how a worker is called."""
        return self._names[place] if place < len(self._names) else f"worker {place}"

    def hear(self, place: int, how: str, *, breaks: bool = True) -> None:
        """Note that a worker is gone. The first word about each counts.

        Args:
            place: Which worker.
            how: The rest of a sentence that begins with its name.
            breaks: Whether the others cannot go on: it did not just come to its end.
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
        """Whether a worker was lost, so that no collective can end well any more."""
        return self._broken is not None

    def check(self) -> None:
        """Raise where a worker was lost.

        Raises:
            UnavailableError: It names the worker.
        """
        if self._broken is not None:
            raise self._unavailable(self._broken)

    def check_waiting_for(self, place: int) -> None:
        """Raise where a worker, of whom something is still to come, is gone; or another is lost.

        Raises:
            UnavailableError: It names the worker.
        """
        self.check()
        if place in self._gone:
            raise self._unavailable(place)

    def explained(self, error: Exception) -> Exception:
        """Return what is behind an error of JAX's: a worker that is gone; else the error itself."""
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
        """Raise what is behind an error of JAX's."""
        told = self.explained(error)
        if told is error:
            raise error
        raise told from error

    def _rescue(self) -> None:
        while self._rescues:  # what is done may come here again
            self._rescues.pop()()

    def _unavailable(self, place: int) -> EvenfeedError:
        self._rescue()
        return UnavailableError(f"{self.name(place)} {self._gone[place]}", fix=_START_ANEW)


def _too_slow(text: str) -> EvenfeedError:
    return DeadlineExceededError(
        f"All workers are there, but one of them did not come to a collective in time: {text}",
        fix="look at what the others do; or pass CommunicationOptions(timeout_seconds=...) with more.",
    )


peers: Final = Peers()
