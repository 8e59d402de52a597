"""The parts of concatenations: concatenations of concatenations are one long row of them."""

from collections.abc import Iterator
from typing import final

from evenfeed.plan.combining import Concatenate
from evenfeed.plan.node import Node
from evenfeed.runtime.run import Run


@final
class Parts:
    """The datasets that a concatenation reads one after the other, found by their numbers.

    There may be far more of them than nodes: `data.concatenate(data)`, again and again.
    """

    def __init__(self, node: Concatenate, run: Run) -> None:
        self._top: tuple[Node, Run] = node, run
        self._counts: dict[int, int] = {}
        for part in node.bottom_up():
            below = (part.first, part.second) if isinstance(part, Concatenate) else ()
            self._counts[id(part)] = sum(self._counts[id(child)] for child in below) or 1
        self._next = 0
        # The part with the number `_next` is the first below the last of these.
        self._waiting: list[tuple[Node, Run]] = [self._top]

    @property
    def count(self) -> int:
        """How many there are."""
        return self._counts[id(self._top[0])]

    def __iter__(self) -> Iterator[tuple[Node, Run]]:
        return (part for number in range(self.count) if (part := self.at(number)) is not None)

    def at(self, number: int) -> tuple[Node, Run] | None:
        """Return a part, and the run that knows its place; None behind the last."""
        if number != self._next:
            self._go_to(number)
        while self._waiting:
            node, run = self._waiting.pop()
            if not isinstance(node, Concatenate):
                self._next += 1
                return node, run
            self._waiting += reversed(run.children_of(node))
        return None

    def _go_to(self, number: int) -> None:
        self._next, self._waiting = number, [self._top]
        while number and self._waiting:
            node, run = self._waiting.pop()
            if number >= self._counts[id(node)]:
                number -= self._counts[id(node)]
            else:
                self._waiting += reversed(run.children_of(node))
