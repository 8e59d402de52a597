"""The elements of datasets that were opened at once, and the slots in which they are read in turn."""

from collections.abc import Sequence
from typing import final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated
from evenfeed.runtime.operator import State
from evenfeed.runtime.operators.inner.expanded import runs
from evenfeed.runtime.operators.inner.opening import Opened, OpensAtOnce
from evenfeed.runtime.provenance import Provenance, RowOrigin, unknown_origin


@final
class OpenedSlot:
    """One of the datasets that were opened at once, of which some elements were used.

    Attributes:
        at: The index of its next element in the pool.
        left: How many elements are left.
    """

    __slots__ = ("_number", "_opened", "_used", "at", "left")

    def __init__(self, opened: Opened, number: int, at: int, left: int) -> None:
        self._opened = opened
        self._number = number
        self._used = 0
        self.at = at
        self.left = left

    def use(self, count: int) -> int:
        """Move past `count` elements, and return the index of the first of them in the pool."""
        at = self.at
        self.at += count
        self.left -= count
        self._used += count
        return at

    def twin(self) -> "OpenedSlot":
        """Return another slot at the same element."""
        twin = OpenedSlot(self._opened, self._number, self.at, self.left)
        twin._used = self._used
        return twin

    def row(self) -> tuple[Opened, int]:
        """Return the datasets that it is one of, and the index of its next element in their rows."""
        return self._opened, int(self._opened.starts[self._number]) + self._used

    def state(self) -> State:
        """Return how to open it again."""
        return self._opened.state_of(self._number, self._used)


@final
class SlotPool:
    """The elements of datasets that were opened at once, for slots that are read in turn.

    Attributes:
        number: The number of the next dataset that is not in a slot yet.
    """

    def __init__(self, opens: OpensAtOnce) -> None:
        self._opens = opens
        self._rows: Block | None = None
        self._opened: Opened | None = None
        self._starts: list[int] = []  # of the datasets that were opened last
        self._lengths: list[int] = []
        self.number = 0
        # Where elements come from: the first place in the pool of each run, the datasets, and its first row of theirs.
        self._runs: list[tuple[int, Opened, int]] = []

    def next(self) -> OpenedSlot | None:
        """Return the next dataset that is not in a slot yet; None if there is none."""
        number = self.number
        if self._opened is None or number == len(self._starts):
            return None
        self.number += 1
        return OpenedSlot(self._opened, number, self._starts[number], self._lengths[number])

    def whole_groups(self, cycle: int, block: int, most: int) -> Positions | None:
        """Return the elements of as many groups of `cycle` datasets as are opened, a block of each in turn.

        None if there is no whole group, or the datasets have different lengths.
        """
        waiting = len(self._starts) - self.number
        each = self._lengths[self.number] if waiting >= cycle else 0
        if not each or each % block or self._opened is None or not self._opened.is_even:
            return None
        groups = min(waiting // cycle, most // (cycle * each))
        first = self._starts[self.number]
        self.number += groups * cycle
        places = np.arange(first, first + groups * cycle * each)
        return places.reshape(groups, cycle, each // block, block).swapaxes(1, 2).ravel()

    def refill(self, most: int, slots: Sequence[object]) -> bool:
        """Open more datasets; keep the elements of those in `slots`. Return False if they must be opened as usual."""
        opened = self._opens.next(most)
        if opened is None:
            return False
        pieces: list[Block] = []
        base = 0
        self._runs = []
        for slot in slots:
            if isinstance(slot, OpenedSlot) and slot.left and self._rows is not None:
                pieces.append(self._rows.cut(slot.at, slot.at + slot.left))
                self._runs.append((base, *slot.row()))
                slot.at = base
                base += slot.left
        self._runs.append((base, opened, 0))
        self._rows = concatenated([*pieces, opened.rows])
        self._starts, self._lengths = (opened.starts + base).tolist(), opened.lengths.tolist()
        self._opened, self.number = opened, 0
        return True

    def position(self) -> State | None:
        """Return the position of the first element whose dataset waits for a slot; None if none does."""
        if self._opened is None or self.number == len(self._starts):
            return None
        return self._opened.position(self.number)

    def picked(self, places: Positions) -> Block:
        """Return the elements that were picked."""
        assert self._rows is not None
        return self._rows.gather(places)

    def provenance(self, places: Positions) -> Provenance:
        """Look up elements that were picked."""
        runs = self._runs
        if all(opened.files is None for _, opened, _ in runs):
            return unknown_origin

        def found(index: int) -> RowOrigin | None:
            place = int(places[index])
            first, opened, row = next(run for run in reversed(runs) if run[0] <= place)
            return opened.origin(row + place - first)

        return found


@final
class Picks:
    """Elements that were picked from the slots of a pool, in order.

    Attributes:
        count: How many.
    """

    def __init__(self) -> None:
        self.count = 0
        self._pieces: list[Positions] = []
        self._starts: list[int] = []
        self._counts: list[int] = []

    def add(self, slot: OpenedSlot, count: int) -> None:
        """Pick the next elements of a slot."""
        self._starts.append(slot.use(count))
        self._counts.append(count)
        self.count += count

    def add_rounds(self, slots: Sequence[OpenedSlot], block: int, most: int) -> bool:
        """Pick whole rounds, a block of each slot in turn, as long as no slot ends. Return False if there are none."""
        rounds = min(*(slot.left for slot in slots), most // len(slots)) // block
        if rounds < 2:
            return False
        starts = np.array([slot.use(rounds * block) for slot in slots])
        within = np.arange(rounds * block).reshape(rounds, 1, block)
        return self.add_all((starts[:, None] + within).ravel())

    def add_all(self, places: Positions | None) -> bool:
        """Pick the elements at these places. Return False if there are none."""
        if places is None or not len(places):
            return False
        self._pieces += [self._runs(), places]
        self.count += len(places)
        return True

    def places(self) -> Positions:
        """Return the indices of the elements in the pool."""
        self._pieces.append(self._runs())
        return np.concatenate(self._pieces)

    def _runs(self) -> Positions:
        found = runs(np.array(self._starts, np.int64), np.array(self._counts, np.int64))
        self._starts, self._counts = [], []
        return found
