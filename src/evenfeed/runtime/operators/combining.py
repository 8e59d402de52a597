"""Zip and concatenate: as rows with positions, and as operators for elements without positions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import final

from evenfeed.core.block import Block
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.combining import MANY_PARTS, Concatenate, Zip
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.called_functions import draws_in_turn
from evenfeed.runtime.operator import Operator, PushbackReader, State
from evenfeed.runtime.positions.indexing import Indexed, Lookup, addresses, forward
from evenfeed.runtime.positions.rows import Chained, Zipped, side_by_side
from evenfeed.runtime.provenance import Provenance, unknown_origin
from evenfeed.runtime.run import Run
from evenfeed.runtime.step import Step, runs


@final
class Parts:
    """The datasets that a concatenation reads one after the other, found by index.

    Nested concatenations are flattened. There may be far more parts than nodes: `data.concatenate(data)` doubles them.
    """

    def __init__(self, node: Concatenate, run: Run) -> None:
        self._top: tuple[Node, Run] = node, run
        self._next = 0
        # The part with index `_next` is the first one below the last of these.
        self._waiting: list[tuple[Node, Run]] = [self._top]

    @property
    def count(self) -> int:
        """The number of parts."""
        return self._top[0].part_count

    def __iter__(self) -> Iterator[tuple[Node, Run]]:
        return (part for number in range(self.count) if (part := self.at(number)) is not None)

    def at(self, number: int) -> tuple[Node, Run] | None:
        """Return a part and the run that knows its place; None after the last."""
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
            if number >= node.part_count:
                number -= node.part_count
            else:
                self._waiting += reversed(run.children_of(node))


@addresses(Zip)
def _side_by_side(lookup: Lookup[Zip]) -> Indexed:
    parts = lookup.rows()
    ends = [part.size for part in parts if part.size != INFINITE]
    return forward(Zipped(parts, min(ends, default=INFINITE)))


@runs(Zip)
def _read_together(step: Step[Zip]) -> Operator:
    parts = step.node.children
    sizes = {part.size for part in parts}
    uneven = len(sizes) > 1 or UNKNOWN in sizes
    singly = uneven and step.run.may_restart and any(map(draws_in_turn, parts))
    return ReadTogether(step.children, [_keeps_passes(part) for part in parts], singly=singly)


def _keeps_passes(node: Node) -> bool:
    return any(part.facts.keeps_passes for part in node.walk())


@final
class ReadTogether(Operator):
    """Zips the elements of several operators, until one ends.

    Args:
        children: The operators.
        keeping: For each of them, whether it stores its elements once it is read to its end.
        singly: Whether it is observable that elements after the end are read.
    """

    calls_nothing = True

    def __init__(
        self, children: Sequence[Operator], keeping: Sequence[bool], *, singly: bool = False
    ) -> None:
        self._singly = singly
        self._feeds = [PushbackReader(child) for child in children]
        self._keeping = keeping

    def read(self, most: int) -> Block | None:
        blocks: list[Block] = []
        most = 1 if self._singly else most
        for feed in self._feeds:
            try:
                block = feed.read(most)
            except Exception:
                self._pass_one(blocks)
                raise
            if block is None:
                self._give_back(blocks, 0)  # so that the next read finds the same end
                self._end_caches(len(blocks) + 1)
                return None
            most = min(most, block.length)
            blocks.append(block)
        self._give_back(blocks, most)
        return side_by_side([block.cut(0, most) for block in blocks])

    def _end_caches(self, start: int) -> None:
        """Let the caches in the children from `start` on find their end, which may be here: only then they store."""
        for feed, keeps in zip(self._feeds[start:], self._keeping[start:], strict=True):
            with suppress(Exception):  # the zip has ended: this element is not asked for
                if keeps and (block := feed.read(1)) is not None:
                    feed.give_back(block.length)

    def _give_back(self, read: list[Block], kept: int) -> None:
        for feed, block in zip(self._feeds, read, strict=False):
            feed.give_back(block.length - kept)

    def _pass_one(self, read: list[Block]) -> None:
        """Skip one element of every child because that of one failed, so that they stay aligned."""
        self._give_back(read, 1)
        for feed in self._feeds[len(read) + 1 :]:
            with suppress(Exception):  # only the first error is raised for the element
                feed.read(1)

    def state(self) -> State:
        return [feed.state() for feed in self._feeds]

    def restore(self, state: State) -> None:
        for feed, inner in zip(self._feeds, state, strict=True):
            feed.restore(inner)

    def seek(self, count: int) -> None:
        for feed in self._feeds:
            feed.seek(count)

    def children(self) -> tuple[Operator, ...]:
        return tuple(feed.child for feed in self._feeds)


@addresses(Concatenate)
def _chained(lookup: Lookup[Concatenate]) -> Indexed:
    few = lookup.node.part_count <= MANY_PARTS
    parts = lookup.rows(Parts(lookup.node, lookup.run) if few else None)
    ends = next((n for n, part in enumerate(parts, 1) if part.size == INFINITE), len(parts))
    return forward(parts[0] if ends == 1 else Chained(parts[:ends]))


@runs(Concatenate)
def _read_in_turn(step: Step[Concatenate]) -> Operator:
    parts = Parts(step.node, step.run)

    def start(number: int) -> Operator | None:
        found = parts.at(number)
        return None if found is None else step.build(*found)

    return ReadInTurn(start)


@final
class ReadInTurn(Operator):
    """Reads one operator to its end, then starts the next.

    Args:
        start: Returns the operator with a given index; None after the last.
    """

    def __init__(self, start: Callable[[int], Operator | None]) -> None:
        self._start = start
        self._turn = 0
        self._child = start(0)

    def read(self, most: int) -> Block | None:
        while self._child is not None:
            block = self._child.read(most)
            if block is not None:
                return block
            following = self._start(self._turn + 1)
            self._child.close()
            self._turn, self._child = self._turn + 1, following
        return None

    def provenance(self, count: int) -> Provenance:
        return unknown_origin if self._child is None else self._child.provenance(count)

    def state(self) -> State:
        return None if self._child is None else [self._turn, self._child.state()]

    def restore(self, state: State) -> None:
        self.close()
        self._child = None
        if state is not None:
            self._turn, inner = state
            self._child = self._start(self._turn)
            assert self._child is not None
            self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return () if self._child is None else (self._child,)
