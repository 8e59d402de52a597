"""Has all workers take the same steps together: a compiled loop over steps must be the same on all of them."""

import json
from typing import Any, NoReturn, final

from evenfeed.core.errors import AbortedError
from evenfeed.feeding.conversation import Talk, Topic


@final
class AgreedRuns:
    """Exchanges how many next steps each worker can bring to its devices together.

    All workers ask at the same steps of the same iterators. A worker that is lost, or never asks, is an error.

    Args:
        topic: Exchanges messages with the other workers.
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._talk: Talk | None = None

    def worst(self, own: int) -> int:
        """Return the largest of the numbers that all workers say."""
        return max(self._exchanged("standing", own))

    def common(self, count: int, most: int, kind: Any) -> tuple[int, int]:
        """Return how many steps every worker has, and the least of their limits.

        Args:
            count: How many steps this worker has, all of one kind.
            most: The most steps that it wants.
            kind: What the steps of all workers must have in common, as JSON-serializable data.
        """
        found = self._exchanged("steps", [count, most, kind])
        counts, limits, kinds = zip(*found, strict=True)
        are_alike = all(each == kinds[0] for each in kinds)
        return (min(counts) if are_alike else 0), min(limits)

    def _exchanged(self, what: str, own: Any) -> list[Any]:
        if self._talk is None:
            self._talk = self._topic.next_pass()
        texts = self._talk.exchange(json.dumps([what, own]))
        asked, found = zip(*map(json.loads, texts), strict=True)
        if len(set(asked)) > 1:
            _refuse()
        return list(found)

    def close(self) -> None:
        """Stop waiting for the other workers."""
        if self._talk is not None:
            self._talk.close()


def _refuse() -> NoReturn:
    raise AbortedError(
        "The workers are not at the same step of this iterator.",
        fix="make all workers take the same steps in the same order: with next(iterator), or in the same loops.",
    )
