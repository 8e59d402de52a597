"""Gives all workers the same number of steps: they exchange shapes ahead of the steps, off the devices."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from evenfeed.core.batch_split import Flow, Share
from evenfeed.core.block import Block, without_rows
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import AbortedError
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding import composite_rows
from evenfeed.feeding.alike_steps import alike_steps, are_even
from evenfeed.feeding.composite_rows import (
    CompositeRowsSpec,
    row_count,
    shape_of,
    stays_on_host,
)
from evenfeed.feeding.conversation import Talk
from evenfeed.feeding.host_steps import Column, HostSteps, Pieces, pieces_of
from evenfeed.runtime.elements import ElementIterator

# The largest number of steps in one exchange, and the memory limit for those of one worker.
_MOST_STEPS: Final = 64
_MOST_BYTES: Final = 1 << 25

# A worker's report on a step: for each of its replicas, the shapes of all components; an error text; or None if
# no replica gets rows and the step may be skipped.
_Report: TypeAlias = list[list[list[int]]] | str | None


@final
@dataclass
class _Step:
    """A step of this worker: the position before it, and its columns or its error."""

    before: Any
    columns: list[Column] | None = None
    error: Exception | None = None


@final
class AgreedSteps(HostSteps):
    """Gives every worker as many steps as the longest one. A worker that has run out gets no rows.

    If the row counts of all workers are known, the steps follow by arithmetic. Otherwise the workers exchange
    the shapes that they have read, many steps at a time. A column is a single array only if the pieces of all
    replicas, on all workers, have one shape. If a step fails on one worker, it fails on all.

    Args:
        steps: This worker's steps.
        spec: The spec of the elements, a component for each column.
        share: This worker.
        talk: Starts a conversation with the other workers. Called again after each `restore`.
        flow: The row counts of all workers, if they are known.
        skips: Whether to skip steps in which no replica of any worker gets rows.
    """

    def __init__(  # noqa: PLR0913 - keyword-only arguments
        self,
        steps: HostSteps,
        spec: Any,
        share: Share,
        *,
        talk: Callable[[], Talk],
        flow: Flow | None = None,
        skips: bool = False,
    ) -> None:
        self._steps = steps
        self._skips = skips
        self._specs: list[TypeSpec] = flatten(spec, DATA)
        self._share = share
        self._start_talk = talk
        self._talk: Talk | None = None
        self._flow = flow
        self._full_steps = 0 if flow is None else flow.full_steps
        self._full = [] if flow is None else [flow.batch // share.everyone] * share.everyone
        self._first = share.worker * share.replicas
        self._reset()

    def _reset(self) -> None:
        self._ready: deque[_Step] = deque()
        self._window = 1  # one step at first, so that it is available soon
        self._is_dry = False  # this worker has no more steps
        self._is_over = False  # no worker has more steps
        self._number = 0

    def read(self) -> list[Column]:
        if self._flow is not None:
            return self._read_known(self._flow)
        while not self._ready:
            if self._is_over:
                raise StopIteration
            self._agree()
        step = self._ready.popleft()
        if step.error is not None:
            raise step.error
        assert step.columns is not None
        return step.columns

    def peek(self, most: int) -> list[Array | None] | None:
        """Return the columns of next steps that are even on all workers, which are at the same step now."""
        if self._flow is not None:
            return self._peek_known(self._flow, most)
        while len(self._ready) < most and not self._is_over:
            self._agree()
        if not self._ready:
            raise StopIteration
        return _columns_of_alike(list(islice(self._ready, most)))

    def _peek_known(self, flow: Flow, most: int) -> list[Array | None] | None:
        left = self._full_steps - self._number if self._share.divides(flow.batch) else 0
        if left < 1:
            return None
        try:
            columns = self._steps.peek(min(most, left))
        except StopIteration:  # `read` says which rows are missing
            return None
        lengths = {column.shape[1] for column in columns or () if column is not None}
        return columns if lengths == {flow.batch // self._share.workers} else None

    def advance(self, count: int) -> None:
        if self._flow is not None:
            self._steps.advance(count)
            self._number += count
            return
        for _ in range(count):
            self._ready.popleft()

    def _read_known(self, flow: Flow) -> list[Column]:
        """Return the next step if the row counts of all steps are known."""
        while self._number < self._full_steps or not flow.is_over(self._number):
            counts, is_even = self._expected(flow)
            step = self._read_own()
            if step.error is not None:
                raise step.error
            self._number += 1
            pieces = self._pieces(step)
            _check_rows(pieces, counts[self._first : self._first + self._share.replicas])
            if any(counts):
                return [self._counted(column, counts, is_even=is_even) for column in pieces]
        raise StopIteration

    def _counted(
        self, column: list[Array] | None, counts: Sequence[int], *, is_even: bool
    ) -> Column:
        if column is None or (is_even and _can_be_one(column)):
            return None if column is None else _one_array(column)
        return pieces_of(column, self._share, counts)

    def _expected(self, flow: Flow) -> tuple[list[int], bool]:
        """Return the number of rows of each replica, over all workers, and whether all are equal."""
        if self._number < self._full_steps and self._share.divides(flow.batch):
            return self._full, True
        counts = flow.counts(self._number).tolist()
        return counts, len(set(counts)) == 1

    def _read_own(self) -> _Step:
        step = _Step(self._steps.state())
        try:
            if not self._is_dry:
                step.columns = self._steps.read()
        except StopIteration:
            self._is_dry = True
        except Exception as error:  # noqa: BLE001 - raised after the other workers know of it
            step.error = error
        return step

    def _agree(self) -> None:
        """Read some steps, and exchange reports on them with the other workers."""
        own: list[_Step] = []
        while len(own) < self._window and not self._is_dry:
            step = self._read_own()
            if not self._is_dry:
                own.append(step)
        messages = [_decoded(text) for text in self._exchange(own)]
        self._window = min(message.window for message in messages)
        self._is_over = all(message.is_dry for message in messages)
        if self._is_over:
            self._close_talk()
        for number in range(max(len(message.steps) for message in messages)):
            mine = own[number] if number < len(own) else _Step(self._steps.state())
            reports = [m.steps[number] if number < len(m.steps) else None for m in messages]
            self._ready.extend(self._agreed(mine, reports))

    def _exchange(self, own: Sequence[_Step]) -> list[str]:
        self._talk = self._talk or self._start_talk()
        steps = [self._report(step) for step in own]
        runs = [[len(list(same)), step] for step, same in groupby(steps)]
        return self._talk.exchange(json.dumps([runs, self._is_dry, self._next_window(own)]))

    def _report(self, step: _Step) -> _Report:
        if step.error is not None:
            return f"{type(step.error).__name__}: {shortened(str(step.error))}"
        columns = [column for column in self._pieces(step) if column is not None]
        if self._skips and columns and not any(map(row_count, columns[0])):
            return None
        replicas = range(self._share.replicas)
        return [[list(shape_of(column[replica])) for column in columns] for replica in replicas]

    def _next_window(self, own: Sequence[_Step]) -> int:
        size = max(map(_bytes, own), default=0)
        return max(1, min(2 * self._window, _MOST_STEPS, _MOST_BYTES // max(1, size)))

    def _agreed(self, mine: _Step, reports: Sequence[_Report]) -> list[_Step]:
        """Return the step that all workers take, or no step if nobody gets rows."""
        for worker, report in enumerate(reports):
            if isinstance(report, str):
                return [_Step(mine.before, error=mine.error or _failed(worker, report))]
        if not any(reports):
            return []
        known: Any = [piece for report in reports for piece in report or ()]
        empty = self._empty_pieces(max(known, key=_rows))
        empty_shapes = [[list(shape_of(piece)) for piece in empty if piece is not None]]
        rows = [
            piece for report in reports for piece in (report or empty_shapes * self._share.replicas)
        ]
        shapes = zip(*rows, strict=True)
        own = self._pieces(mine, empty)
        columns = [None if c is None else _with_shapes(c, next(shapes)) for c in own]
        return [_Step(mine.before, columns)]

    def _empty_pieces(self, other: Sequence[Sequence[int]] = ()) -> list[Array | None]:
        """Return pieces without rows, with the row shapes of another replica's pieces."""
        shapes = iter(other)
        return [_empty_piece(spec, shapes) for spec in self._specs]

    def _pieces(
        self, step: _Step, empty: Sequence[Array | None] | None = None
    ) -> list[list[Array] | None]:
        """Return the pieces of this worker's replicas, without rows if it has run out."""
        if step.columns is None:
            count = self._share.replicas
            pieces = self._empty_pieces() if empty is None else empty
            return [None if piece is None else [piece] * count for piece in pieces]
        return [
            column if column is None or isinstance(column, list) else [column]
            for column in step.columns
        ]

    def iterators(self) -> Sequence[ElementIterator]:
        return self._steps.iterators()

    def state(self) -> Any:
        return self._ready[0].before if self._ready else self._steps.state()

    def restore(self, state: Any) -> None:
        """Restore a position. The number of remaining rows is then unknown."""
        self._steps.restore(state)
        self._close_talk()
        self._talk, self._flow = None, None
        self._reset()

    def close(self) -> None:
        self._close_talk()
        self._steps.close()

    def _close_talk(self) -> None:
        if self._talk is not None:
            self._talk.close()


def _empty_piece(spec: TypeSpec, shapes: Iterator[Any]) -> Any:
    if isinstance(spec, CompositeRowsSpec):
        next(shapes, None)
        return composite_rows.without_rows(spec)
    return without_rows(spec, next(shapes, None)) if isinstance(spec, TensorSpec) else None


class _Message(NamedTuple):
    """A worker's reports on some steps."""

    steps: list[_Report]
    is_dry: bool
    window: int


def _decoded(text: str) -> _Message:
    runs, is_dry, window = json.loads(text)
    return _Message([step for count, step in runs for _ in range(count)], is_dry, window)


def _rows(shapes: Sequence[Sequence[int]]) -> int:
    """Return the number of rows of pieces with these shapes."""
    return max((shape[0] for shape in shapes if shape), default=0)


def _with_shapes(column: list[Array], shapes: Sequence[Sequence[int]]) -> Column:
    """Return a column from this worker's pieces and the shapes of all workers' pieces."""
    pieces = Pieces(column, shapes)
    is_even = len(set(pieces.shapes)) == 1
    return _one_array(column) if is_even and _can_be_one(column) else pieces


def _can_be_one(column: list[Array]) -> bool:
    """Return True if pieces of one shape can be joined on the host. Scalars are joined on the devices."""
    return not stays_on_host(column[0]) and column[0].size > 0 and column[0].ndim > 0


def _one_array(column: list[Array]) -> Array:
    return column[0] if len(column) == 1 else np.concatenate(column)


def _columns_of_alike(steps: Sequence[_Step]) -> list[Array | None] | None:
    """Return the columns of the first steps that have one shape, with a leading axis; None if the first is uneven."""
    found: list[list[Column]] = []
    for step in steps:
        if step.columns is None or any(isinstance(column, list) for column in step.columns):
            break
        found.append(step.columns)
    if not found:
        return None
    columns = alike_steps([None if c[0] is None else list(c) for c in zip(*found, strict=True)])
    return columns if are_even(columns, 1) else None


def _bytes(step: _Step) -> int:
    return Block(tuple(step.columns or ()), 1).nbytes


def _failed(worker: int, what: str) -> AbortedError:
    return AbortedError(
        f"Worker {worker} failed at this step: {what}",
        fix="see the output of that worker; the following steps can still be read.",
    )


def _check_rows(columns: Sequence[list[Array] | None], counts: list[int]) -> None:
    """Raise if rows are missing. The other workers rely on them; programs of different shapes would hang."""
    parts = next((column for column in columns if column is not None), None)
    found = counts if parts is None else list(map(row_count, parts))
    if found != counts:
        raise AbortedError(
            f"The replicas of this worker should get {counts} rows at this step, but got {found}.",
            fix="the dataset has fewer elements than its cardinality, perhaps because some failed: "
            "start over, with ignore_errors() before batch().",
        )
