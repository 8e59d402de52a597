"""Operators for flat_map, interleave and group_by_window: read the datasets that a user function returns."""

from functools import partial
from typing import Final, TypeAlias, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated, cut_up
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.side_effects import noted
from evenfeed.plan.flattening import FlatMap, GroupByWindow, Interleave
from evenfeed.plan.node import Node
from evenfeed.plan.windows import Held
from evenfeed.runtime.functions.calls import never_stopping
from evenfeed.runtime.functions.inner_datasets import InnerElements, unlike_elements
from evenfeed.runtime.live_state import effects_of
from evenfeed.runtime.operator import Operator, Replayed, State
from evenfeed.runtime.operators.inner.group_templates import GroupTemplates
from evenfeed.runtime.operators.inner.opening import InnerSlot, Opened, OpensInner
from evenfeed.runtime.operators.inner.slot_pool import OpenedSlot, Picks, SlotPool
from evenfeed.runtime.operators.keyed_elements import FullGroups
from evenfeed.runtime.provenance import Provenance, RowOrigin, unknown_origin
from evenfeed.runtime.run import Inner, Run
from evenfeed.runtime.step import Step, runs

_NO_TURNS: Final[Positions] = np.zeros(0, np.int64)

# The slots of an interleave, the turn, how much of its block was taken, whether the child has ended, and the number of
# the next dataset of the pool.
_Progress: TypeAlias = tuple[list[InnerSlot | OpenedSlot | None], int, int, bool, int]


@runs(FlatMap)
def _read_inner(step: Step[FlatMap]) -> Operator:
    return ReadInner(step)


@final
class ReadInner(OpensInner):
    """Reads the inner datasets one after the other, several at a time if that is possible."""

    def __init__(self, step: Step[FlatMap]) -> None:
        super().__init__(step)
        self._slot: InnerSlot | None = None
        self._opened: Opened | None = None  # datasets that were read at once
        self._used = 0  # how many of their elements
        self._last: tuple[Opened, int] | None = None  # after the last read, if they were

    def read(self, most: int) -> Block | None:
        while True:
            if self._slot is None and self._opened is None:
                self._opened, self._used = self._opens.next(most), 0
                # If each step read its end twice, n steps would read the first end 2**n times.
                if self._opens.is_at_end:
                    return None
            if self._opened is not None:
                block = self._opened.rows.cut(self._used, self._used + most)
                self._used += block.length
                self._last = self._opened, self._used
                if self._used >= self._opened.rows.length:
                    self._opened = None
                if block.length:
                    return block
                continue
            if self._slot is None:
                self._slot = self._open_next()
            if self._slot is None:
                return None
            block, self._last = self._slot.read(most), None
            if block is not None and self._elements.match(self._slot.inner, block):
                return block
            self._slot.inner.operator.close()
            self._slot = None
            if block is not None:
                raise unlike_elements()

    def provenance(self, count: int) -> Provenance:
        if self._last is None:
            return unknown_origin if self._slot is None else self._slot.provenance(count)
        opened, used = self._last
        return lambda index: opened.origin(used - count + index)

    def state(self) -> State:
        if self._opened is None:
            return [None if self._slot is None else self._slot.state(), self._feed.state()]
        return self._opened.state_at(self._used)

    def rewound(self, count: int) -> State | None:
        return None if self._last is None else self._last[0].state_at(self._last[1] - count)

    def restore(self, state: State) -> None:
        slot, position = state
        self._opened = self._last = None
        self._slot = self._open_again(slot)
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        inner = () if self._slot is None else (self._slot.inner.operator,)
        return (self._feed.child, *inner)


@runs(Interleave)
def _read_inners_in_turn(step: Step[Interleave]) -> Operator:
    return ReadInnersInTurn(step)


@final
class ReadInnersInTurn(OpensInner):
    """Reads a few elements of each of several inner datasets in turn.

    When an inner dataset ends, the next element takes its slot when the turn comes back to it. If it is
    unobservable how they are read, whole rounds are read at once, but never more elements than asked for. Datasets that were opened at once
    are a pool of elements: the turns are only counted, and choose elements of the pool.
    """

    def __init__(self, step: Step[Interleave]) -> None:
        super().__init__(step)
        self._slots: list[InnerSlot | OpenedSlot | None] = [None] * step.node.cycle_length
        self._block = step.node.block_length
        self._pool = SlotPool(self._opens)
        self._turn: int = 0
        self._taken: int = 0  # how many of the current slot's block
        self._ended: bool = False
        # The slots of the last read, and the order of their elements if there are several. Without slots, the places of
        # the elements in the pool.
        self._last: tuple[list[InnerSlot], Positions] = [], _NO_TURNS
        self._before_picks: _Progress = (
            self._progress()
        )  # before the elements of the pool were picked

    def read(self, most: int) -> Block | None:
        rounds = self._rounds(most)
        if rounds is not None:
            return rounds
        while not self._is_over:
            turns = self._turns(most)
            if turns is not None:
                return turns
            slot = self._slots[self._turn]
            if not isinstance(slot, InnerSlot):
                self._fill()
                continue
            block = slot.read(min(most, self._block - self._taken))
            if block is not None and self._elements.match(slot.inner, block):
                self._last = [slot], _NO_TURNS
                self._advance(block.length)
                return block
            slot.inner.operator.close()
            self._slots[self._turn] = None
            self._next_turn()
            if block is not None:
                raise unlike_elements()
        return None

    @property
    def _is_over(self) -> bool:
        return self._ended and all(slot is None for slot in self._slots)

    def _turns(self, most: int) -> Block | None:
        """Return the elements of the next turns, as far as their datasets were opened at once; None if there are none."""
        self._before_picks = self._progress()
        picks = self._picks(most)
        if not picks.count:
            return None
        places = picks.places()
        self._last = [], places
        return self._pool.picked(places)

    def _picks(self, most: int) -> Picks:
        picks = Picks()
        while (left := most - picks.count) and not self._is_over:
            if self._turn == self._taken == 0 and self._pick_rounds(picks, left):
                continue
            slot = self._slots[self._turn]
            if slot is None:
                # New datasets are opened only for the first element: an error must not take away those before it.
                if not self._ended and not self._fill_from_pool(most, may_open=not picks.count):
                    break
                self._turn_if_ended()
            elif not isinstance(slot, OpenedSlot):
                break
            elif (count := min(left, self._block - self._taken, slot.left)) == 0:
                self._slots[self._turn] = None
                self._next_turn()
            else:
                picks.add(slot, count)
                self._advance(count)
        return picks

    def _progress(self) -> _Progress:
        slots = [slot.twin() if isinstance(slot, OpenedSlot) else slot for slot in self._slots]
        return slots, self._turn, self._taken, self._ended, self._pool.number

    def rewound(self, count: int) -> State | None:
        """Count the turns of the last read again, if its elements are from the pool: many datasets may begin in it."""
        slots, places = self._last
        if slots or not len(places):
            return None
        after = self._slots, self._turn, self._taken, self._ended, self._pool.number
        self._slots, self._turn, self._taken, self._ended, self._pool.number = self._before_picks
        self._before_picks = self._progress()
        if len(places) > count:
            self._picks(len(places) - count)
        state = self.state()
        self._slots, self._turn, self._taken, self._ended, self._pool.number = after
        return state

    def _pick_rounds(self, picks: Picks, most: int) -> bool:
        """Pick whole rounds, if the datasets of all slots were opened at once. Return False if there are none."""
        opened = [slot for slot in self._slots if isinstance(slot, OpenedSlot)]
        free = sum(slot is None for slot in self._slots)
        if free == len(self._slots):
            groups = None if self._ended else self._pool.whole_groups(free, self._block, most)
            return picks.add_all(groups)
        whole = len(opened) + (free if self._ended else 0) == len(self._slots)
        return whole and picks.add_rounds(opened, self._block, most)

    def _fill_from_pool(self, most: int, *, may_open: bool) -> bool:
        opened = self._pool.next()
        if opened is None and may_open and self._pool.refill(most, self._slots):
            self._before_picks = self._progress()
            opened = self._pool.next()
        self._slots[self._turn] = opened
        return opened is not None

    def _turn_if_ended(self) -> None:
        if self._slots[self._turn] is None:
            self._next_turn()

    def provenance(self, count: int) -> Provenance:
        slots, turns = self._last
        if not len(turns):
            return slots[0].provenance(count) if slots else unknown_origin
        if not slots:
            return self._pool.provenance(turns[len(turns) - count :])
        each, first = len(turns) // len(slots), len(turns) - count
        provenances = [slot.provenance(each) for slot in slots]

        def found(index: int) -> RowOrigin | None:
            slot, row = divmod(int(turns[first + index]), each)
            return provenances[slot](row)

        return found

    def _rounds(self, most: int) -> Block | None:
        """Return the elements of as many whole rounds as possible; None if a slot fails, ends or is not open."""
        slots = self._in_round()
        wanted = most // (max(1, len(slots)) * self._block) * self._block
        if not slots or not wanted or self._taken:
            return None
        rounds = min(slot.hold(wanted) for slot in slots) // self._block
        if not rounds:
            return None
        blocks = [slot.read(rounds * self._block) for slot in slots]
        rows = np.arange(len(slots) * rounds * self._block)
        turns = rows.reshape(len(slots), rounds, self._block).swapaxes(0, 1).ravel()
        self._last = slots, turns
        return concatenated([block for block in blocks if block is not None]).gather(turns)

    def _in_round(self) -> list[InnerSlot]:
        """Return the slots of a round, starting with the current turn; none unless it is unobservable how they are read."""
        slots = [*self._slots[self._turn :], *self._slots[: self._turn]]
        opened = [slot for slot in slots if isinstance(slot, InnerSlot)]
        free = sum(slot is None for slot in slots) if self._ended else 0
        whole = len(opened) + free == len(slots)
        return opened if whole and all(slot.reads_freely for slot in opened) else []

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
        slots = [None if slot is None else slot.state() for slot in self._slots]
        position = self._pool.position() or self._feed.state()
        return [slots, self._turn, self._taken, self._ended, position]

    def restore(self, state: State) -> None:
        slots, self._turn, self._taken, self._ended, position = state
        self._pool, self._last = SlotPool(self._opens), ([], _NO_TURNS)
        self._slots = [self._open_again(slot) for slot in slots]
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        return (
            self._feed.child,
            *(slot.inner.operator for slot in self._slots if isinstance(slot, InnerSlot)),
        )


@runs(GroupByWindow)
def _read_groups(step: Step[GroupByWindow]) -> Operator:
    return ReadGroups(step)


@final
class ReadGroups(Replayed):
    """Collects elements by key, and reads the dataset that each full group is reduced to.

    Groups that are not full are not part of the state, so `restore` reads the elements again.
    """

    def __init__(self, step: Step[GroupByWindow]) -> None:
        self._step = step
        self._node = step.node
        self._key = step.function
        self._opens = step.opens
        self._drawn = step.run.draws_of(id(step.node))
        self._effects = effects_of(step.node)
        super().__init__(step.child)

    def _build(self, node: Node) -> Operator:
        return self._step.build(node, Run(node))

    def _begin(self) -> None:
        self._groups = FullGroups(self._child, self._key, self._window)
        self._opened = 0  # how many groups were opened
        self._open: Inner | None = None
        self._templates = GroupTemplates(self._node, self._effects, self._build)
        self._rest: Block | None = None  # elements that were read by a template
        self._elements = InnerElements(self._node.element_spec)

    def _next(self, most: int) -> Block | None:
        while True:
            if self._rest is not None:
                return self._from_rest(most)
            if self._open is None:
                found = self._groups.next()
                if found is None:
                    return None
                self._open_group(*found)
                continue
            block = self._open.operator.read(most)
            if block is not None and self._elements.match(self._open, block):
                return block
            self._open.operator.close()
            self._open = None
            if block is not None:
                raise unlike_elements()

    def _open_group(self, key: int, rows: Block) -> None:
        make = partial(self._reduced, key, rows)
        number, self._opened = self._opened, self._opened + 1
        read = self._templates.read(key, rows, make)
        if read is None:
            self._open = self._opens(number, make)
        elif read[1].length:
            if not self._elements.match(*read):
                raise unlike_elements()
            self._rest = read[1]

    def _from_rest(self, most: int) -> Block:
        assert self._rest is not None
        block, rest = self._rest.cut(0, most), self._rest.cut(most, self._rest.length)
        self._rest = rest if rest.length > 0 else None
        return block

    def _reduced(self, key: int, rows: Block) -> Node:
        group = Held(self._node.child.element_spec, tuple(map(cut_up, rows.columns)), rows.length)
        with (
            never_stopping("reduce_func", self._node.origin),
            noted(self._effects, self._drawn),
        ):
            return self._node.reduce(key, group)

    def _window(self, key: int) -> int:
        with (
            never_stopping("window_size_func", self._node.origin),
            noted(self._effects, self._drawn),
        ):
            size = self._node.window_size(key)
        if size < 1:
            raise InvalidArgumentError(
                f"The window size must be at least 1, but is {size} for key {key}.",
                fix="pass a window_size of at least 1, or return one from window_size_func.",
                origin=self._node.origin,
            )
        return size

    def children(self) -> tuple[Operator, ...]:
        return (self._child,) if self._open is None else (self._child, self._open.operator)
