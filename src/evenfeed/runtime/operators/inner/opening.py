"""Inner datasets that are open: one by one, or several at a time if the function that makes them has a template."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated
from evenfeed.core.errors import DataLossError, EvenfeedError
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.files import Files
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.node import Node
from evenfeed.plan.templates import RowsOfFile, file_hole
from evenfeed.runtime.file_digests import FileSet, files_of
from evenfeed.runtime.functions.finding_templates import template_of
from evenfeed.runtime.functions.inner_datasets import InnerDatasets, InnerElements
from evenfeed.runtime.measuring.stage_meters import MeasuredOperator
from evenfeed.runtime.operator import Operator, PushbackReader, State, read_full
from evenfeed.runtime.operators.combining import ReadTogether
from evenfeed.runtime.operators.elementwise import CountElements
from evenfeed.runtime.operators.files import ReadFiles
from evenfeed.runtime.operators.inner.expanded import (
    Expanded,
    NotExpandable,
    TooManyRows,
    is_small,
)
from evenfeed.runtime.operators.inner.expanding import Expander, read_whole
from evenfeed.runtime.operators.ordering import TakeSome
from evenfeed.runtime.operators.windows import CutWindows
from evenfeed.runtime.provenance import Provenance, RowOrigin
from evenfeed.runtime.run import Inner, Run
from evenfeed.runtime.step import Step

# How many bytes of elements are read at a time.
_BYTES: Final = 1 << 20
_MOST_ELEMENTS: Final = 1 << 12

# If the template fails for so many elements in a row, the datasets of this pass are opened one by one.
_MOST_FAILURES: Final = 4
# If reading several datasets at once fails, this fraction of them is tried.
_FEWER: Final = 8

# They pass on what they read, with other parts beside it.
_PASSING: Final = (CountElements, MeasuredOperator, ReadTogether, TakeSome)


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
    def reads_freely(self) -> bool:
        """True if reading elements early, or twice, is unobservable."""
        operator = self.inner.operator
        return isinstance(operator, ReadFiles) or operator.reads_freely

    def hold(self, most: int) -> int:
        """Read ahead; return how many elements are ready, 0 if the next one fails or does not exist."""
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
        files: The files that they were read from, if any.
    """

    before: State
    rows: Block
    starts: Positions
    lengths: Positions
    files: "OpenedFiles | None" = None

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
        files = None if self.files is None else self.files.file_set(number)
        return [self.position(number), None, used, files]

    def state_at(self, row: int) -> State:
        """Return the state of a flat_map before one of their elements, or after the last."""
        number = int(np.searchsorted(self.starts, row, "right")) - 1
        used = row - int(self.starts[number])
        return [self.state_of(number, used), self.position(number + 1)]

    def origin(self, row: int) -> RowOrigin | None:
        """Return the origin of an element, given its index in `rows`."""
        if self.files is None:
            return None
        number = int(np.searchsorted(self.starts, row, "right")) - 1
        return self.files.origin(number, row - int(self.starts[number]))


@final
class OpenedFiles:
    """The small files that datasets were read from at once, one for each dataset.

    Args:
        hole: Where the path of each is.
        elements: The elements from which the datasets were made.
        open_again: Opens the dataset of one of them.
    """

    def __init__(
        self, hole: RowsOfFile, elements: Block, open_again: Callable[[int], Operator]
    ) -> None:
        self._hole = hole
        self._paths = elements.columns[hole.source]
        self._open_again = open_again
        self._sets: dict[int, FileSet | None] = {}

    def file_set(self, number: int) -> FileSet | None:
        """Return the files of a dataset, for its state."""
        if number not in self._sets:
            (file,) = self._hole.files(Block((self._paths,), 1).row(number))
            self._sets[number] = files_of(Files((file,), None))
        return self._sets[number]

    def origin(self, number: int, index: int) -> RowOrigin | None:
        """Return the origin of an element of a dataset, which is read again up to there."""
        try:
            with closing(self._open_again(number)) as operator:
                for _ in read_full(operator, index + 1):
                    pass
                return operator.provenance(1)(0)
        except (EvenfeedError, OSError):  # the file was changed or removed since
            return None


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
        self._file_hole: RowsOfFile | None = None
        self._failed = 0  # how many elements in a row need the function itself
        self._ask = 1
        self._most = _MOST_ELEMENTS  # more have too many rows together
        self._each: int | None = None  # how many elements each of the last datasets had

    def next(self, most: int) -> Opened | None:
        """Return the next datasets, of which `most` elements are wanted; None if one must be opened as usual."""
        self.is_at_end = False
        while self._failed < _MOST_FAILURES:
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
            except Exception as error:  # noqa: BLE001 - opened one by one, it fails again at the bad one
                self._feed.give_back(block.length)
                self._ask = max(1, block.length // _FEWER)
                if isinstance(error, TooManyRows) and block.length > 1:
                    self._most = max(1, block.length // 2)
                if block.length > 1:
                    continue
                self._failed += 1
                return None
            self._failed = 0
            self._learn(block.length, found.rows, found.lengths)
            files = self._files(block, number)
            return Opened(before, found.rows, found.starts, found.lengths, files)
        return None

    def _files(self, block: Block, number: int) -> OpenedFiles | None:
        if self._file_hole is None:
            return None

        def open_again(index: int) -> Operator:
            return self._build(self._datasets.make(block.row(index), number + index))

        return OpenedFiles(self._file_hole, block, open_again)

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
            self._datasets.kept.template = self._expander = None
            raise NotExpandable

    def _all_of(self, node: Node) -> Block:
        return read_whole(self._build(node), len(flatten(node.element_spec, DATA)))

    def _expanding(self) -> Expander | None:
        if self._expander is None:
            template = template_of(self._datasets)
            if template is not None:
                self._expander = Expander(template, self._all_of)
                self._file_hole = file_hole(template)
                for cut in _windows_in(self._feed.child):
                    cut.gives_arrays = True
        return self._expander

    def _wanted(self, most: int) -> int:
        """Return how many elements to read: no more than are needed, unless reading ahead is unobservable."""
        if _may_read_ahead(self._feed.child):
            return self._ask
        return max(1, min(self._ask, most // self._each if self._each else 1))

    def _learn(self, count: int, rows: Block, lengths: Positions) -> None:
        first = int(lengths[0])
        self._each = first if (lengths == first).all() else None
        each = max(1, rows.nbytes) // count
        if count >= self._most and is_small(rows):
            # One large dataset, for which fewer were read together, says little about those behind it.
            self._most = min(2 * self._most, _MOST_ELEMENTS)
        self._ask = max(1, min(2 * count, _BYTES // max(1, each), self._most))


def _windows_in(operator: Operator) -> Iterator[CutWindows]:
    """Yield what cuts the windows that are parts of an operator's elements."""
    if isinstance(operator, CutWindows):
        yield operator
    elif isinstance(operator, _PASSING):
        for child in operator.children():
            yield from _windows_in(child)


def _may_read_ahead(operator: Operator) -> bool:
    if isinstance(operator, CutWindows):
        return operator.may_read_ahead
    if isinstance(operator, _PASSING):
        return all(map(_may_read_ahead, operator.children()))
    return operator.reads_freely


class OpensInner(Operator):
    """Opens an inner dataset for each element of a child."""

    def __init__(self, step: Step[FlatMap] | Step[Interleave]) -> None:
        make, opens = step.datasets.make, step.opens
        self._start: Callable[[list[Any], int], Inner] = lambda parts, number: opens(
            number, lambda: make(parts, number)
        )
        self._feed = PushbackReader(step.child)
        self._elements = InnerElements(step.node.element_spec)
        self._opens = OpensAtOnce(self._feed, step)

    def _open_next(self) -> InnerSlot | None:
        before, number = self._feed.state(), self._feed.number
        block = self._feed.read(1)
        return None if block is None else InnerSlot(before, self._start(block.row(0), number))

    def _open_again(self, state: State) -> InnerSlot | None:
        if state is None:
            return None
        before, *inside = state  # states of older versions have no files
        self._feed.restore(before)
        slot = self._open_next()
        if slot is not None:
            slot.restore(*inside)
        return slot
