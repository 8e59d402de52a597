"""The operator for window."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, concatenated, cut_up
from evenfeed.core.conversion import Array
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.windows import Held, Window
from evenfeed.runtime.operator import Operator, State
from evenfeed.runtime.step import Step, runs


@final
@dataclass(slots=True)
class _Run:
    """Consecutive elements that are held, or one that failed."""

    rows: Block | Exception

    @property
    def length(self) -> int:
        return self.rows.length if isinstance(self.rows, Block) else 1


@runs(Window)
def _cut_windows(step: Step[Window]) -> Operator:
    return CutWindows(step.child, step.node)


@final
class CutWindows(Operator):
    """Holds the elements from the start of the next window on; windows are views of them.

    As in TensorFlow, an element that fails keeps its place: every window that contains it is an error. The state is
    the position of the read that the first held element came from, and how many elements to skip from there.

    Attributes:
        gives_arrays: Whether to return full windows as arrays of their elements if possible, and others as plans, instead
            of Datasets.
    """

    def __init__(self, child: Operator, node: Window) -> None:
        self._child = child
        self._node = node
        self._specs = flatten(node.child.element_spec, DATA)
        self.gives_arrays = False
        self._begin()

    @property
    def may_read_ahead(self) -> bool:
        """True if nobody can see how many windows are read. A window may be large, so others ask for few."""
        return self._child.reads_freely

    def _begin(self) -> None:
        self._held: deque[_Run] = deque()
        self._count = 0  # how many elements are held
        self._first = 0  # the index of the first element held
        # The reads that held elements came from: the index of the first element of each, and its position.
        self._reads: deque[tuple[int, State]] = deque()
        self._gap = 0  # elements to skip before the next window

    def read(self, most: int) -> Block | None:
        self._pass_gap()
        self._hold(self._node.span + self._node.shift * (most - 1))
        if self.gives_arrays and (arrays := self._arrays(most)) is not None:
            return arrays
        found: list[list[Any]] = []
        least = self._node.span if self._node.drop_remainder else 1
        while len(found) < most and self._count >= least:
            rows = self._rows()
            if isinstance(rows, Exception) and found:
                break
            self._drop(self._node.shift)
            if isinstance(rows, Exception):
                raise rows
            found.append(self._datasets(rows))
        if not found:
            return None
        return Block(tuple(map(list, zip(*found, strict=True))), len(found))

    def _arrays(self, most: int) -> Block | None:
        """Return full windows, each as an array; None if there is none, or the elements are not arrays."""
        node = self._node
        rows = self._held[0].rows if len(self._held) == 1 else None
        count = min(most, (self._count - node.span) // node.shift + 1)
        if not isinstance(rows, Block) or count < 1:
            return None
        parts = list(map(cut_up, rows.columns))
        if not all(type(part) is np.ndarray for part in parts):
            return None
        columns = tuple(self._windows(np.asarray(part), count) for part in parts)
        self._drop(node.shift * count)
        return Block(columns, count)

    def _windows(self, column: Array, count: int) -> Array:
        node, (first, *rest) = self._node, column.strides
        shape = (count, node.length, *column.shape[1:])
        strides = (node.shift * first, node.stride * first, *rest)
        return np.lib.stride_tricks.as_strided(column, shape, strides, writeable=False).copy()

    def _hold(self, count: int) -> None:
        """Read until `count` elements are held or the child ends."""
        while self._count < count:
            before = self._child.state()
            run = self._next_run(count - self._count)
            if run is None:
                break
            self._reads.append((self._first + self._count, before))
            self._held.append(run)
            self._count += run.length
        if len(self._held) > 1 and all(isinstance(run.rows, Block) for run in self._held):
            rows = concatenated([run.rows for run in self._held if isinstance(run.rows, Block)])
            self._held = deque([_Run(rows)])

    def _next_run(self, most: int) -> _Run | None:
        before = self._child.state()
        try:
            block = self._child.read(most)
        except Exception as error:
            if self._child.state() == before:  # every read would fail
                raise
            return _Run(error)
        return None if block is None else _Run(block)

    def _rows(self) -> Block | Exception:
        """Return the elements of the next window, or the first error among them."""
        pieces: list[Block] = []
        for rows in self._pieces():
            if isinstance(rows, Exception):
                return rows
            pieces.append(rows)
        return concatenated(pieces)

    def _pieces(self) -> Iterator[Block | Exception]:
        """Yield what the next window takes from each run."""
        start, span, stride = 0, self._node.span, self._node.stride
        for run in self._held:
            if span <= 0:
                return
            if start < min(run.length, span):
                rows = run.rows
                yield _strided(rows, start, span, stride) if isinstance(rows, Block) else rows
            start = (start - run.length) % stride if start < run.length else start - run.length
            span -= run.length

    def _datasets(self, rows: Block) -> list[Any]:
        parts = zip(self._specs, map(cut_up, rows.columns), strict=True)
        origin = self._node.origin
        nodes = [Held(spec, (column,), rows.length, origin=origin) for spec, column in parts]
        return list[Any](nodes) if self.gives_arrays else [self._node.face(node) for node in nodes]

    def _drop(self, count: int) -> None:
        """Skip elements, held ones first."""
        held = min(count, self._count)
        self._first += held
        self._count -= held
        self._gap = count - held
        while held and held >= self._held[0].length:
            held -= self._held.popleft().length
        if held:
            rows = self._held[0].rows
            assert isinstance(rows, Block)
            self._held[0] = _Run(rows.cut(held, rows.length))
        while self._reads and (not self._held or self._is_passed):
            self._reads.popleft()

    @property
    def _is_passed(self) -> bool:
        """True if nothing of the first read is held any more."""
        return len(self._reads) > 1 and self._reads[1][0] <= self._first

    def _pass_gap(self) -> None:
        """Skip the elements between windows, including those that fail."""
        while self._gap and (run := self._next_run(self._gap)) is not None:
            self._gap -= run.length
        self._gap = 0

    def state(self) -> State:
        if not self._held:
            return [self._child.state(), self._gap]
        number, before = self._reads[0]
        return [before, self._first - number]

    def restore(self, state: State) -> None:
        before, gap = state
        self._begin()
        self._child.restore(before)
        self._gap = gap

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


def _strided(rows: Block, start: int, stop: int, stride: int) -> Block:
    columns = tuple(None if c is None else c[start:stop:stride] for c in rows.columns)
    return Block(columns, len(range(start, min(stop, rows.length), stride)))
