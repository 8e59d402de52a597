"""Operators that read the datasets which a user's function makes of elements."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from evenfeed.core.block import Block
from evenfeed.plan.node import Node
from evenfeed.runtime.operator import Feed, Operator, State
from evenfeed.runtime.run import Build, Inner

# Makes the plan of an inner dataset of the parts of one element, and starts it.
Start: TypeAlias = Callable[[list[Any]], Inner]


@final
@dataclass
class _Slot:
    """An inner dataset that is being read, and where its element stands in the child."""

    before: State
    inner: Inner

    def state(self) -> State:
        return [self.before, self.inner.state()]


class _Opens(Operator):
    """Opens inner datasets for the elements of a child."""

    def __init__(self, child: Operator, start: Start) -> None:
        self._feed = Feed(child)
        self._start = start

    def _open_next(self) -> _Slot | None:
        before = self._feed.state()
        came = self._feed.read(1)
        return None if came is None else _Slot(before, self._start(came.row(0)))

    def _open_again(self, state: State) -> _Slot | None:
        if state is None:
            return None
        before, position = state
        self._feed.restore(before)
        slot = self._open_next()
        if slot is not None:
            slot.inner.restore(position)
        return slot


@final
class ReadInner(_Opens):
    """Reads the inner datasets one after the other."""

    def __init__(self, child: Operator, start: Start) -> None:
        super().__init__(child, start)
        self._slot: _Slot | None = None

    def read(self, most: int) -> Block | None:
        """Return elements of the inner dataset that is open, or of the next."""
        while True:
            if self._slot is None:
                self._slot = self._open_next()
            if self._slot is None:
                return None
            block = self._slot.inner.operator.read(most)
            if block is not None:
                return block
            self._slot.inner.operator.close()
            self._slot = None

    def state(self) -> State:
        """Return the open element and the position in it, and the position in the child."""
        return [None if self._slot is None else self._slot.state(), self._feed.state()]

    def restore(self, state: State) -> None:
        """Open the element again, and take up the positions."""
        slot, position = state
        self._slot = self._open_again(slot)
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        """Return the child and the inner dataset that is open."""
        inner = () if self._slot is None else (self._slot.inner.operator,)
        return (self._feed.child, *inner)


@final
class ReadInnersInTurn(_Opens):
    """Reads a few elements of each of several inner datasets in turn.

    An inner dataset that ends leaves its place to the next element when the turn comes back to it.
    """

    def __init__(self, child: Operator, start: Start, cycle: int, block: int) -> None:
        super().__init__(child, start)
        self._slots: list[_Slot | None] = [None] * cycle
        self._block = block
        self._turn = 0
        self._taken = 0  # of the block of the one whose turn it is
        self._ended = False

    def read(self, most: int) -> Block | None:
        """Return elements of the one whose turn it is."""
        while not self._ended or any(slot is not None for slot in self._slots):
            slot = self._slots[self._turn]
            if slot is None:
                self._fill()
                continue
            block = slot.inner.operator.read(min(most, self._block - self._taken))
            if block is not None:
                self._advance(block.length)
                return block
            slot.inner.operator.close()
            self._slots[self._turn] = None
            self._next_turn()
        return None

    def _fill(self) -> None:
        opened = None if self._ended else self._open_next()
        if opened is None:
            self._ended = True
            self._next_turn()
        else:
            self._slots[self._turn] = opened

    def _advance(self, count: int) -> None:
        self._taken += count
        if self._taken == self._block:
            self._next_turn()

    def _next_turn(self) -> None:
        self._turn = (self._turn + 1) % len(self._slots)
        self._taken = 0

    def state(self) -> State:
        """Return all open elements with their positions, and whose turn it is."""
        slots = [None if slot is None else slot.state() for slot in self._slots]
        return [slots, self._turn, self._taken, self._ended, self._feed.state()]

    def restore(self, state: State) -> None:
        """Open the elements again, and take up all positions."""
        slots, self._turn, self._taken, self._ended, position = state
        self._slots = [self._open_again(slot) for slot in slots]
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        """Return the child and the inner datasets that are open."""
        return (
            self._feed.child,
            *(slot.inner.operator for slot in self._slots if slot is not None),
        )


def starter(make: Callable[[list[Any]], Node], build: Build) -> Start:
    """Return what opens the inner dataset of an element."""
    return lambda parts: Inner(make(parts), build)
