"""How workers tell each other what they have, ahead of the steps and off the devices."""

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
            UnavailableError: A worker did not answer.
        """
        ...


class Topic:
    """Keys for one distributed dataset: the same ones on all workers, if all run the same program.

    Args:
        name: Tells one dataset of the program from another.
        agreement: The way.
    """

    def __init__(self, name: str, agreement: Agreement) -> None:
        self._name = name
        self._agreement = agreement
        self._passes = 0

    def next_pass(self) -> "Talk":
        """Return the talk of a new pass, or of one that goes on elsewhere."""
        self._passes += 1
        return Talk(f"{self._name}/{self._passes}", self._agreement)


class Talk:
    """What workers tell each other in one pass, round by round.

    Args:
        name: The pass.
        agreement: The way.
    """

    def __init__(self, name: str, agreement: Agreement) -> None:
        self._name = name
        self._agreement = agreement
        self._round = 0
        self.is_closed = False

    def exchange(self, said: str) -> list[str]:
        """Say something, and return what every worker said in this round."""
        key = f"{self._name}/{self._round}"
        self._round += 1
        return self._agreement.exchange(key, said, lambda: self.is_closed)
