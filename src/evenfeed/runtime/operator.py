"""The contract of all operators."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from evenfeed.runtime.block import Block


class Operator(ABC):
    """One step of a running plan, with its own position."""

    __slots__ = ()

    @abstractmethod
    def read(self, most: int) -> Block | None:
        """Return the next elements, at least one and at most `most`; None at the end."""


def read_full(operator: Operator, count: int) -> Iterator[Block]:
    """Yield blocks until they hold `count` elements or the operator ends."""
    while count > 0:
        block = operator.read(count)
        if block is None:
            return
        count -= block.length
        yield block
