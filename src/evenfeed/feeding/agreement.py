"""How workers tell each other what they have, ahead of the steps and off the devices."""

import weakref
from collections.abc import Callable
from typing import Protocol


class Agreement(Protocol):
    """A way for all workers to hear what each says.

    All must ask for the same keys. A key is used once.
    """

    def exchange(self, key: str, said: str, is_closed: Callable[[], bool]) -> list[str]:
        """Say something under a key; return what every worker said, in their order.

        Args:
            key: What it is about.
            said: A short text.
            is_closed: Asked from time to time: once it is true, nobody waits for the answer any more.

        Raises:
            CancelledError: Nobody waits any more.
            DeadlineExceededError: A worker did not answer in time.
            UnavailableError: A worker is lost.
        """
        ...

    def forget(self, key: str) -> None:
        """Free what this worker said under a key: nobody will ask for it any more."""
        ...


class Topic:
    """Keys for one distributed dataset: the same ones on all workers, if all run the same program.

    With each text a worker says up to which pass it is through, so that what was said in passes that all are
    through with can be forgotten.

    Args:
        name: Tells one dataset of the program from another.
        agreement: The way.
    """

    def __init__(self, name: str, agreement: Agreement) -> None:
        self._name = name
        self._agreement = agreement
        self._passes = 0
        self._open: set[int] = set()
        self._last: dict[int, str] = {}  # the last key of each pass that is not forgotten

    def next_pass(self) -> "Talk":
        """Return the talk of a new pass, or of one that goes on elsewhere."""
        self._passes += 1
        self._open.add(self._passes)
        talk = Talk(self, self._passes)
        # Threads, and a garbage collector in the middle of them, come here: no locks.
        weakref.finalize(talk, self._open.discard, self._passes).atexit = False
        return talk

    def ask(self, said: str) -> list[str]:
        """Say one thing, and return what every worker said."""
        talk = self.next_pass()
        try:
            return talk.exchange(said)
        finally:
            talk.close()

    def exchange(
        self, number: int, round_: int, said: str, is_closed: Callable[[], bool]
    ) -> list[str]:
        """Say something in one round of a pass."""
        through = min(list(self._open), default=self._passes + 1) - 1
        key = f"{self._name}/{number}/{round_}"
        texts = self._agreement.exchange(key, f"{through} {said}", is_closed)
        told = [text.partition(" ") for text in texts]
        # Who has said something in this round has heard all of the one before.
        self._forget(self._last.pop(number, None))
        self._last[number] = key
        self._forget_until(min(int(through) for through, _, _ in told))
        return [text for _, _, text in told]

    def close(self, number: int) -> None:
        """Note that this worker is through with a pass."""
        self._open.discard(number)

    def _forget_until(self, through: int) -> None:
        for number in list(self._last):
            if number <= through:
                self._forget(self._last.pop(number, None))

    def _forget(self, key: str | None) -> None:
        if key is not None:
            self._agreement.forget(key)


class Talk:
    """What workers tell each other in one pass, round by round.

    Args:
        topic: What it is about.
        number: The pass.
    """

    def __init__(self, topic: Topic, number: int) -> None:
        self._topic = topic
        self._number = number
        self._round = 0
        self._is_closed = False

    def exchange(self, said: str) -> list[str]:
        """Say something, and return what every worker said in this round."""
        self._round += 1
        return self._topic.exchange(self._number, self._round - 1, said, lambda: self._is_closed)

    def close(self) -> None:
        """Wait for nobody any more."""
        self._is_closed = True
        self._topic.close(self._number)
