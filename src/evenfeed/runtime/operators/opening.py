"""Inner datasets that are open: one by one, or several at a time if the function that makes them has a template."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated
from evenfeed.core.errors import DataLossError
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.node import Node
from evenfeed.runtime.file_digests import FileSet, files_of
from evenfeed.runtime.functions.finding_templates import template_of
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.operator import Operator, PushbackReader, State, read_full
from evenfeed.runtime.operators.expanding import Expanded, Expander, NotExpandable, read_whole, runs
from evenfeed.runtime.operators.files import ReadFiles
from evenfeed.runtime.operators.windows import CutWindows
from evenfeed.runtime.provenance import Provenance
from evenfeed.runtime.run import Inner, Run
from evenfeed.runtime.step import Step

# How many bytes of elements are read at a time.
_BYTES: Final = 1 << 20
_MOST_ELEMENTS: Final = 1 << 12

# If reading them at once fails so often in a row, the datasets of this pass are opened one by one.
_MOST_FAILURES: Final = 4


@final
@dataclass
class InnerSlot:
    """An inner dataset that is being read, and the position of its element in the child.

    Attributes:
        before: The position before the element in the child.
        inner: The dataset.
        held: Elements that were read together, some of which were used.
    """

    before: State
    inner: Inner
    held: Block | None = None
    _used: int = 0
    _before_held: State = None
    _failed: Exception | None = None  # the error that `hold` met: the next read raises it

    @property
    def reads_files(self) -> bool:
        """True if reading elements early, or twice, is unobservable."""
        return isinstance(self.inner.operator, ReadFiles)

    def hold(self, most: int) -> int:
        """Read ahead from files; return how many elements are ready, 0 if the next one fails or does not exist."""
        if self.held is None and self._failed is None:
            self._before_held = self.inner.state()
            try:
                self.held = self.inner.operator.read(most)
            except Exception as error:  # noqa: BLE001 - raised again when its turn comes
                self.inner.operator.close()
                self.inner.restore(self._before_held)
                self._failed = error
        return 0 if self.held is None else self.held.length - self._used

    def read(self, most: int) -> Block | None:
        """Return the next elements, starting with those held."""
        if self.held is None:
            failed, self._failed = self._failed, None
            block = self.inner.operator.read(most)
            if isinstance(failed, DataLossError):  # the file was replaced in between
                raise failed
            return block
        block = self.held.cut(self._used, self._used + most)
        self._used += block.length
        if self._used == self.held.length:
            self.held, self._used = None, 0
        return block

    def provenance(self, count: int) -> Provenance:
        """Look up the last `count` elements that were read."""
        unused = 0 if self.held is None else self.held.length - self._used
        return self.inner.operator.provenance(count + unused)

    def state(self) -> State:
        position = self.inner.state() if self.held is None else self._before_held
        return [self.before, position, self._used, self._files]

    @cached_property
    def _files(self) -> FileSet | None:
        return files_of(self.inner.plan)

    def restore(self, position: State, used: int, files: Any = None) -> None:
        """Restore a position, after checking that the files have not changed. None is the start."""
        if self._files is not None:
            self._files.check(files)
        if position is not None:
            self.inner.restore(position)
        for _ in read_full(self.inner.operator, used):
            pass


@final
@dataclass(frozen=True)
class Opened:
    """Datasets that were read at once.

    Attributes:
        before: The position before the first of their elements in the child.
        rows: The elements of all, one dataset after the other.
        starts: The index of the first element of each.
        lengths: The number of elements of each.
    """

    before: State
    rows: Block
    starts: Positions
    lengths: Positions

    @cached_property
    def is_even(self) -> bool:
        """True if all have the same number of elements."""
        return bool((self.lengths == self.lengths[0]).all())

    def position(self, number: int) -> State:
        """Return the position before the element from which a dataset was made."""
        child, used, first = self.before
        return [child, used + number, first + number]

    def state_of(self, number: int, used: int) -> State:
        """Return the state of a dataset of which some elements were used: it is opened again, and skips these."""
        return [self.position(number), None, used, None]


@final
class OpensAtOnce:
    """Opens the datasets of several elements, as many as nobody can notice.

    Args:
        feed: The elements.
        step: The step that opens the datasets.

    Attributes:
        is_at_end: Whether the last call of `next` found no more elements.
    """

    def __init__(self, feed: PushbackReader, step: Step[Any]) -> None:
        self.is_at_end = False
        self._feed = feed
        self._datasets: InnerDatasets = step.datasets
        self._build: Callable[[Node], Operator] = lambda node: step.build(node, Run(node))
        self._expander: Expander | None = None
        self._singly = 0  # how many of the next elements must be opened one by one
        self._failed = 0  # how often in a row the datasets could not be read at once
        self._ask = 1
        self._each: int | None = None  # how many elements each of the last datasets had

    def next(self, most: int) -> Opened | None:
        """Return the next datasets, of which `most` elements are wanted; None if one must be opened as usual."""
        self.is_at_end = False
        if self._singly or self._failed == _MOST_FAILURES:
            self._singly -= self._singly > 0
            return None
        expander = self._expanding()
        if expander is None:
            return None
        before, number = self._feed.state(), self._feed.number
        block = self._feed.read(self._wanted(most))
        if block is None:
            self.is_at_end = True
            return None
        try:
            found = expander(block)
            self._check(block, number, found)
        except Exception:  # noqa: BLE001 - opened one by one, it fails again at the bad one
            self._feed.give_back(block.length)
            self._singly, self._ask = block.length - 1, 1
            self._failed += 1
            return None
        self._failed = 0
        self._learn(block.length, found.rows, found.lengths)
        return Opened(before, found.rows, found.starts, found.lengths)

    def _check(self, block: Block, number: int, found: Expanded) -> None:
        """Compare the first dataset with the one that the function makes, until one with elements was the same.

        A function may have told the placeholders from an element, for example by `type`.

        Raises:
            NotExpandable: They differ. The function is then called for each element.
        """
        record = self._datasets.function.record
        if record.is_checked:
            return
        length = int(found.lengths[0])
        with closing(self._build(self._datasets.make(block.row(0), number))) as operator:
            made = list(read_full(operator, length + 1))  # it may be endless
        if not made and not length:
            return
        record.is_checked = bool(made) and concatenated(made).is_same(found.rows.cut(0, length))
        if not record.is_checked:
            record.template = self._expander = None
            raise NotExpandable

    def _all_of(self, node: Node) -> Block:
        return read_whole(self._build(node), len(flatten(node.element_spec, DATA)))

    def _expanding(self) -> Expander | None:
        if self._expander is None:
            template = template_of(self._datasets)
            if template is not None:
                self._expander = Expander(template, self._all_of)
                child = self._feed.child
                if isinstance(child, CutWindows):
                    child.gives_arrays = True
        return self._expander

    def _wanted(self, most: int) -> int:
        """Return how many elements to read: no more than are needed, unless reading ahead is unobservable."""
        child = self._feed.child
        if child.may_read_ahead if isinstance(child, CutWindows) else child.reads_freely:
            return self._ask
        return max(1, min(self._ask, most // self._each if self._each else 1))

    def _learn(self, count: int, rows: Block, lengths: Positions) -> None:
        first = int(lengths[0])
        self._each = first if (lengths == first).all() else None
        each = max(1, rows.nbytes) // count
        self._ask = max(1, min(2 * count, _BYTES // max(1, each), _MOST_ELEMENTS))


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

    def state(self) -> State:
        """Return how to open it again."""
        return self._opened.state_of(self._number, self._used)


@final
class SlotPool:
    """The elements of datasets that were opened at once, for slots that are read in turn."""

    def __init__(self, opens: OpensAtOnce) -> None:
        self._opens = opens
        self._rows: Block | None = None
        self._opened: Opened | None = None
        self._starts: list[int] = []  # of the datasets that were opened last
        self._lengths: list[int] = []
        self._number = 0  # of the next dataset that is not in a slot yet

    def next(self) -> OpenedSlot | None:
        """Return the next dataset that is not in a slot yet; None if there is none."""
        number = self._number
        if self._opened is None or number == len(self._starts):
            return None
        self._number += 1
        return OpenedSlot(self._opened, number, self._starts[number], self._lengths[number])

    def whole_groups(self, cycle: int, block: int, most: int) -> Positions | None:
        """Return the elements of as many groups of `cycle` datasets as are opened, a block of each in turn.

        None if there is no whole group, or the datasets have different lengths.
        """
        waiting = len(self._starts) - self._number
        each = self._lengths[self._number] if waiting >= cycle else 0
        if not each or each % block or self._opened is None or not self._opened.is_even:
            return None
        groups = min(waiting // cycle, most // (cycle * each))
        first = self._starts[self._number]
        self._number += groups * cycle
        places = np.arange(first, first + groups * cycle * each)
        return places.reshape(groups, cycle, each // block, block).swapaxes(1, 2).ravel()

    def refill(self, most: int, slots: Sequence[object]) -> bool:
        """Open more datasets; keep the elements of those in `slots`. Return False if they must be opened as usual."""
        opened = self._opens.next(most)
        if opened is None:
            return False
        pieces: list[Block] = []
        base = 0
        for slot in slots:
            if isinstance(slot, OpenedSlot) and slot.left and self._rows is not None:
                pieces.append(self._rows.cut(slot.at, slot.at + slot.left))
                slot.at = base
                base += slot.left
        self._rows = concatenated([*pieces, opened.rows])
        self._starts, self._lengths = (opened.starts + base).tolist(), opened.lengths.tolist()
        self._opened, self._number = opened, 0
        return True

    def position(self) -> State | None:
        """Return the position of the first element whose dataset waits for a slot; None if none does."""
        if self._opened is None or self._number == len(self._starts):
            return None
        return self._opened.position(self._number)

    def picked(self, picks: "Picks") -> Block:
        """Return the elements that were picked."""
        assert self._rows is not None
        return self._rows.gather(picks.places())


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
