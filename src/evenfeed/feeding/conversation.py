"""The messages that workers exchange about one distributed dataset."""

import weakref
from collections.abc import Callable
from typing import Protocol


class Agreement(Protocol):
    """Exchanges messages between all workers, which must use the same keys, each once."""

    def exchange(self, key: str, message: str, is_closed: Callable[[], bool]) -> list[str]:
        """Send a message under a key. Return the messages of all workers, in worker order.

        Args:
            key: The key.
            message: The message, a short string.
            is_closed: Polled while waiting. If it returns True, the exchange is cancelled.

        Raises:
            CancelledError: `is_closed` returned True.
            DeadlineExceededError: A worker did not answer in time.
            UnavailableError: A worker is lost.
        """
        ...

    def forget(self, key: str) -> None:
        """Delete this worker's message under a key, which nobody will read anymore."""
        ...


class Topic:
    """The message keys of one distributed dataset. They agree on all workers that run the same program.

    With each message, a worker sends the number of the last pass that it has finished. Messages of passes
    that all workers have finished are deleted.

    Args:
        name: Identifies the dataset within the program.
        agreement: Exchanges the messages.
    """

    def __init__(self, name: str, agreement: Agreement) -> None:
        self._name = name
        self._agreement = agreement
        self._passes = 0
        self._open: set[int] = set()
        self._last: dict[int, str] = {}  # the last key of each pass whose messages are not deleted

    def beside(self, name: str) -> "Topic":
        """Return another topic, whose messages do not depend on how far this one is."""
        return Topic(f"{self._name}/{name}", self._agreement)

    def next_pass(self) -> "Talk":
        """Return the conversation of a new pass, or of one that is restored to another position."""
        self._passes += 1
        self._open.add(self._passes)
        talk = Talk(self, self._passes)
        # No locks: threads call this, and so does the garbage collector in the middle of them.
        weakref.finalize(talk, self._open.discard, self._passes).atexit = False
        return talk

    def ask(self, message: str) -> list[str]:
        """Exchange a single message. Return the messages of all workers."""
        talk = self.next_pass()
        try:
            return talk.exchange(message)
        finally:
            talk.close()

    def exchange(
        self, number: int, round_: int, message: str, is_closed: Callable[[], bool]
    ) -> list[str]:
        """Exchange messages in one round of a pass."""
        through = min(list(self._open), default=self._passes + 1) - 1
        key = f"{self._name}/{number}/{round_}"
        texts = self._agreement.exchange(key, f"{through} {message}", is_closed)
        received = [text.partition(" ") for text in texts]
        # A worker that sent a message in this round has received all messages of the previous one.
        self._forget(self._last.pop(number, None))
        self._last[number] = key
        self._forget_until(min(int(through) for through, _, _ in received))
        return [text for _, _, text in received]

    def close(self, number: int) -> None:
        """Record that this worker has finished a pass."""
        self._open.discard(number)

    def _forget_until(self, through: int) -> None:
        for number in list(self._last):
            if number <= through:
                self._forget(self._last.pop(number, None))

    def _forget(self, key: str | None) -> None:
        if key is not None:
            self._agreement.forget(key)


class Talk:
    """The messages of one pass, in rounds."""

    def __init__(self, topic: Topic, number: int) -> None:
        self._topic = topic
        self._number = number
        self._round = 0
        self._is_closed = False

    def exchange(self, message: str) -> list[str]:
        """Exchange messages in the next round. Return the messages of all workers."""
        self._round += 1
        return self._topic.exchange(self._number, self._round - 1, message, lambda: self._is_closed)

    def close(self) -> None:
        """Stop waiting for the other workers."""
        self._is_closed = True
        self._topic.close(self._number)
