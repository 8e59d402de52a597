"""Repeat, take, skip, shard and shuffle: as orders of positions, and as operators for elements without positions."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated
from evenfeed.core.errors import DataLossError, FailedPreconditionError
from evenfeed.core.randomness.random_bits import Permutation, key_of
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import HintedShard, Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.runtime.operator import Operator, Replayed, State, read_before_error, read_full
from evenfeed.runtime.operators.repeating import PlayAgain
from evenfeed.runtime.positions.indexing import Indexed, Lookup, addresses, forward
from evenfeed.runtime.positions.orders import Again, Every, Order, Shuffled, Slots, first_round
from evenfeed.runtime.positions.rows import Reordered, Rounds
from evenfeed.runtime.step import Step, runs

_ALL: Final = 1 << 62  # more elements than any buffer holds
# A shuffle buffer remembers the position of its child now and then, not at each read.
_LEAST_BETWEEN_MARKS: Final = 8


@addresses(Repeat)
def _again(lookup: Lookup[Repeat]) -> Indexed:
    node = lookup.node
    if lookup.is_mixed_below():
        return _in_rounds(lookup)
    return lookup.reordered(
        lambda order: Again(order, node.count) if node.size_of(order.size) else _nothing(order)
    )


def _in_rounds(lookup: Lookup[Repeat]) -> Indexed:
    """Return rows that differ in each round."""
    node, first = lookup.node, first_round(lookup.epoch, lookup.node.count)
    rows, order = lookup.indexed(node.child, first)
    if node.size_of(order.size) == 0:
        return rows, _nothing(order)

    def play(number: int) -> Reordered:
        return Reordered(*lookup.apart().indexed(node.child, first + number))

    return forward(Rounds(play, order.size, node.count))


def _nothing(order: Order) -> Order:
    return Every(order, 0, 1, 0)


@runs(Repeat)
def _play_again(step: Step[Repeat]) -> Operator:
    node = step.node
    first = first_round(step.epoch, node.count)
    return PlayAgain(
        lambda number: step.build(node.child, epoch=first + number),
        node.count,
        is_steady=step.run.meter is None and _is_steady(node.child),
    )


def _is_steady(plan: Node) -> bool:
    """Return True if all rounds have the same elements, unless functions are impure."""
    for node in plan.walk():
        if node.facts.random or node.facts.keeps_passes or node.facts.writes_files:
            return False
        if not node.children and not isinstance(node, (Range, Tensor, TensorSlice)):
            return False
    return True


@addresses(Take)
def _first(lookup: Lookup[Take]) -> Indexed:
    return lookup.reordered(lambda order: Every(order, 0, 1, lookup.node.size_of(order.size)))


@runs(Take)
def _take(step: Step[Take]) -> Operator:
    return TakeSome(step.child, 0, step.node.count if step.node.count >= 0 else None)


@addresses(Skip)
def _rest(lookup: Lookup[Skip]) -> Indexed:
    node = lookup.node
    return lookup.reordered(
        lambda order: Every(order, max(0, node.count), 1, node.size_of(order.size))
    )


@runs(Skip)
def _skip(step: Step[Skip]) -> Operator:
    count = step.node.count
    return TakeSome(step.child, max(0, count), 0 if count < 0 else None)


@final
class TakeSome(Operator):
    """Skips `skip` elements, and ends after `count` more."""

    calls_nothing = True

    def __init__(self, child: Operator, skip: int, count: int | None) -> None:
        self._child = child
        self._skip = skip
        self._count = count
        self._taken = 0

    def read(self, most: int) -> Block | None:
        for _ in read_full(self._child, self._skip):
            pass
        self._skip = 0
        left = most if self._count is None else min(most, self._count - self._taken)
        block = self._child.read(left) if left > 0 else None
        self._taken += 0 if block is None else block.length
        return block

    def state(self) -> State:
        return [self._skip, self._taken, self._child.state()]

    def restore(self, state: State) -> None:
        self._skip, self._taken, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@addresses(Shard)
def _every(lookup: Lookup[Shard]) -> Indexed:
    node = lookup.node
    return lookup.reordered(
        lambda order: Every(order, node.index, node.num_shards, node.size_of(order.size))
    )


@runs(Shard)
def _take_every(step: Step[Shard]) -> Operator:
    return TakeEvery(step.child, step.node.num_shards, step.node.index)


@runs(HintedShard)
def _not_distributed(step: Step[HintedShard]) -> Operator:
    if step.run.is_ahead:  # only to learn what a function returns for an element
        return step.child
    raise FailedPreconditionError(
        "shard(SHARD_HINT, SHARD_HINT) is a placeholder for a worker's shard, but the dataset was not distributed.",
        fix="distribute the dataset with auto_shard_policy = AutoShardPolicy.HINT in its options.",
        origin=step.node.origin,
    )


@final
class TakeEvery(Operator):
    """Keeps every `step`-th element, starting at `first`."""

    calls_nothing = True

    def __init__(self, child: Operator, step: int, first: int) -> None:
        self._child = child
        self._step = step
        self._wait = first  # how many to skip before the next one to keep

    def read(self, most: int) -> Block | None:
        while True:
            block = self._child.read(self._wait + 1 + self._step * (most - 1))
            if block is None:
                return None
            rows = np.arange(self._wait, block.length, self._step)
            self._wait = self._wait + self._step * len(rows) - block.length
            if len(rows):
                return block.gather(rows)

    def state(self) -> State:
        return [self._wait, self._child.state()]

    def restore(self, state: State) -> None:
        self._wait, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@addresses(Shuffle)
def _shuffled(lookup: Lookup[Shuffle]) -> Indexed:
    node, seed = lookup.node, lookup.run.seed(lookup.node)

    def shuffled(order: Order) -> Order:
        buffer = node.buffer_size if node.buffer_size > 0 else order.size
        return Shuffled(order, buffer, seed, reshuffle=node.reshuffle, ahead=lookup.ahead)

    return lookup.reordered(shuffled)


@runs(Shuffle)
def _shuffle(step: Step[Shuffle]) -> Operator:
    return ShuffleBuffer(step.child, max(0, step.node.buffer_size) or None, step.seed)


@final
@dataclass(frozen=True, slots=True)
class Mark:
    """A position of a shuffle buffer's child, from which it can be read again.

    Attributes:
        inputs: How many elements the child had returned.
        failed: How many of its elements had failed.
        state: Its state.
    """

    inputs: int
    failed: int
    state: State


@final
class ShuffleBuffer(Replayed):
    """Holds some elements, and returns a random one of them for each new element.

    The buffer is not part of the state. Seed and position tell which inputs are in it, so `restore` restarts the child at
    the oldest of them, about B ln B inputs ago, and keeps those of the inputs since then that the buffer holds. As long as
    the first inputs are in the buffer, `restore` starts from them and repeats the same steps.

    An error of the child is raised when its element would enter the buffer; the buffer stays as it is.
    """

    calls_nothing = True

    def __init__(self, child: Operator, buffer: int | None, seed: tuple[int, ...]) -> None:
        self._buffer = buffer
        self._seed = seed
        self._between = max(_LEAST_BETWEEN_MARKS, (buffer or 0) // 8)  # inputs between two marks
        super().__init__(child)

    def _begin(self) -> None:
        self._filling: list[Block] = []
        self._held: Block | None = None
        self._slots: Slots | None = None
        self._rest: Positions | None = None
        self._inputs = 0
        self._numbers: Positions = np.zeros(0, np.int64)  # the number of the input in each slot
        # The first mark is before all inputs that are held, once `_is_moved` is set. The others follow it.
        self._marks: list[Mark] = []
        self._is_moved = False

    def _next(self, most: int) -> Block | None:
        if self._slots is None:
            self._fill()
        return self._exchanged(most) or self._drained(most)

    def _fill(self) -> None:
        room = (self._buffer or _ALL) - sum(block.length for block in self._filling)
        blocks, errors = read_before_error(self._child, room)
        self._filling += blocks
        for error in errors:
            raise error
        self._held = concatenated(self._filling).copy() if self._filling else None
        self._filling = []
        self._inputs = self._held.length if self._held else 0
        self._numbers = np.arange(self._inputs)
        self._slots = self._new_slots(max(1, self._inputs))

    def fill(self) -> tuple[int, int]:
        held = 0 if self._held is None else self._held.length
        left = held if self._rest is None else len(self._rest)
        return left, self._buffer or held

    def _new_slots(self, count: int) -> Slots:
        return Slots(key_of(*self._seed), count)

    def _exchanged(self, most: int) -> Block | None:
        """Read new elements, and return as many, drawn from the buffer and from the new ones."""
        if self._held is None or self._slots is None or self._rest is not None:
            return None
        self._mark()
        incoming = self._child.read(most)
        if incoming is None:
            return None
        moves = self._slots.moves(self._passed, incoming.length)
        every = concatenated([self._held.gather(moves.slots), incoming])
        recent = moves.source >= 0
        rows = np.where(recent, incoming.length + moves.source, np.arange(incoming.length))
        self._held = self._held.replaced(moves.last_slots, incoming.gather(moves.last))
        self._numbers[moves.last_slots] = self._inputs + moves.last
        self._inputs += incoming.length
        return every.gather(rows)

    def _mark(self) -> None:
        """Remember the position of the child now and then, and forget those that no longer matter."""
        if self._inputs < (self._marks[-1].inputs if self._marks else 0) + self._between:
            return
        oldest = self._numbers.min()
        before = [mark for mark in self._marks if mark.inputs <= oldest]
        self._is_moved = bool(before)
        self._marks = before[-1:] + self._marks[len(before) :]
        self._marks.append(Mark(self._inputs, self._failed, self._child.state()))

    def _drained(self, most: int) -> Block | None:
        """Return the remaining elements in a random order, after the child has ended."""
        if self._held is None:
            return None
        if self._rest is None:
            self._rest = self._last_order(self._held.length)
        rows, self._rest = self._rest[:most], self._rest[most:]
        return self._held.gather(rows) if len(rows) else None

    def _last_order(self, count: int) -> Positions:
        return Permutation(key_of(key_of(*self._seed), 1), count).stretch(0, count)

    def state(self) -> State:
        if not self._is_moved:
            return super().state()
        mark = self._marks[0]
        return [mark.state, self._passed, self._failed, [mark.inputs, mark.failed, self._inputs]]

    def restore(self, state: State) -> None:
        if len(state) == 3:
            super().restore(state)
            return
        start, passed, failed, (first, failed_before, inputs) = state
        self._child.restore(start)
        self._restart()
        self._slots = self._new_slots(self._buffer or 1)
        self._numbers = self._slots.content(inputs - (self._buffer or 1)).copy()
        self._marks, self._is_moved = [Mark(first, failed_before, start)], True
        self._inputs, self._failed = first, failed_before
        self._held = self._read_again(inputs, failed)
        self._passed = passed
        drained = passed - (inputs - self._held.length)
        if drained:  # the child has ended
            self._rest = self._last_order(self._held.length)[drained:]

    def _read_again(self, inputs: int, failed: int) -> Block:
        """Read the child up to a number of inputs and errors; return the inputs in the buffer, in its order."""
        wanted, found = np.sort(self._numbers), list[Block]()
        while self._inputs < inputs or self._failed < failed:
            self._mark()
            try:
                block = self._child.read(max(1, inputs - self._inputs))
            except Exception:
                self._failed += 1
                if self._failed > failed:
                    raise
                continue
            if block is None:
                raise DataLossError(
                    f"The data ends after {self._inputs} elements, but {inputs} had been read when the state was taken.",
                    fix="restore the data as it was, or start over with iter(dataset).",
                )
            begin, end = np.searchsorted(wanted, [self._inputs, self._inputs + block.length])
            found.append(block.gather(wanted[begin:end] - self._inputs))
            self._inputs += block.length
        return concatenated(found).gather(np.searchsorted(wanted, self._numbers)).copy()
