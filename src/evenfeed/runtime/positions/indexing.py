"""Finds the rows of a plan whose elements have positions: it runs as arithmetic on positions.

`@addresses(Take)` marks the function that finds the rows of a `Take`, given its `Lookup`. The plan alone decides which
nodes have rows (`evenfeed.plan.addressing`); only files that turn out to be damaged are an exception.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

from evenfeed.plan.node import Node
from evenfeed.runtime.positions.drawn_ahead import DrawnAhead
from evenfeed.runtime.positions.orders import Forward, Order
from evenfeed.runtime.positions.rows import Reordered, Rows
from evenfeed.runtime.run import Run

N = TypeVar("N", bound=Node)
F = TypeVar("F", bound="Callable[[Any], Indexed]")

# Rows, and the order in which they come.
Indexed: TypeAlias = tuple[Rows, Order]

_FINDERS: Final[dict[type[Node], "Callable[[Lookup[Any]], Indexed]"]] = {}


def addresses(kind: type[Node]) -> Callable[[F], F]:
    """Mark the function that finds the rows of a node."""

    def mark(find: F) -> F:
        _FINDERS[kind] = find
        return find

    return mark


def indexed(node: Node, run: Run, epoch: int = 0) -> Indexed | None:
    """Return the rows of a plan and their order; None if elements must be read sequentially.

    Args:
        node: The plan to read.
        run: The random state of this pass.
        epoch: The round of a repeat above; rows and order are those of that round.
    """
    while run.why_sequential(node) is None:
        try:
            return _Search().indexed(node, run, epoch)
        except Uncounted as found:
            run.note_sequential(found.node, str(found))
    return None


@final
class Uncounted(Exception):  # noqa: N818 - not an error: the files are read sequentially
    """Raised if the rows of files cannot be counted, for example because a file is damaged."""

    def __init__(self, node: Node) -> None:
        super().__init__("the number of rows is known only after the files are read")
        self.node = node


@final
class Lookup(Generic[N]):
    """A node whose rows are sought, in one pass and one round of a repeat above it."""

    def __init__(self, search: "_Search", node: N, run: Run, epoch: int) -> None:
        self._search = search
        self.node = node
        self.run = run
        self.epoch = epoch

    def child(self) -> Indexed:
        """Return the rows of the first child, and an order to which the round is still to be applied."""
        return self._search.found(self.node.children[0], self.run, self.epoch)

    def reordered(self, order: Callable[[Order], Order]) -> Indexed:
        """Return the rows of the first child in another order, given theirs."""
        rows, before = self.child()
        return rows, order(before)

    def indexed(self, node: Node, epoch: int) -> Indexed:
        """Return the rows of a node and their order, in a round."""
        return self._search.indexed(node, self.run, epoch)

    def rows(self, nodes: Iterable[tuple[Node, Run]] | None = None) -> list[Rows]:
        """Return the rows of several nodes in their orders; by default those of all children."""
        parts = self.run.children_of(self.node) if nodes is None else nodes
        return [Reordered(*self._search.indexed(node, run, self.epoch)) for node, run in parts]

    def is_mixed_below(self) -> bool:
        """Return True if the rows themselves, not only their order, differ in each round."""
        return self._search.is_mixed_below(self.node)

    def apart(self) -> "Lookup[N]":
        """Return a lookup with a search of its own, which keeps no rows of this one."""
        return Lookup(_Search(self.ahead), self.node, self.run, self.epoch)

    @property
    def ahead(self) -> DrawnAhead:
        """The orders that are drawn before their round begins."""
        return self._search.ahead


@final
class _Search:
    """Finds the rows and orders of nodes, once for each node and place."""

    def __init__(self, ahead: DrawnAhead | None = None) -> None:
        self.ahead = ahead or DrawnAhead()
        self._known: dict[tuple[int, int, int], Indexed] = {}
        self._mixed: dict[int, bool] = {}

    def indexed(self, node: Node, run: Run, epoch: int) -> Indexed:
        """Return the rows of a plan and their order in a round."""
        rows, order = self.found(node, run, epoch)
        return rows, order.of_epoch(epoch)

    def found(self, node: Node, run: Run, epoch: int) -> Indexed:
        """Return the rows of a round, and an order to which the round is still to be applied."""
        key = id(node), epoch, run.place_of(node)
        if key not in self._known:
            found = _FINDERS[type(node)](Lookup(self, node, run, epoch))
            if run.meter is not None:
                found = run.meter.addressed(node, *found)
            self._known[key] = found
        return self._known[key]

    def is_mixed_below(self, node: Node) -> bool:
        """Return True if the rows themselves, not only their order, differ in each round."""
        passed: list[Node] = []
        rows = node
        while _has_rows_of_child(rows) and id(rows) not in self._mixed:
            passed.append(rows)
            rows = rows.children[0]
        mixed = self._mixed.get(id(rows))
        if mixed is None:
            mixed = any(
                part.facts.random and getattr(part, "reshuffle", True) for part in rows.walk()
            )
        self._mixed |= {id(part): mixed for part in passed}
        return mixed


def _has_rows_of_child(node: Node) -> bool:
    """Return True if a node has the rows of its only child, computed one by one or in another order."""
    facts = node.facts
    return len(node.children) == 1 and (facts.by_position or facts.elementwise)


def forward(rows: Rows) -> Indexed:
    """Return rows in their own order."""
    return rows, Forward(rows.size)
