"""The iterator over a dataset's elements."""

import sys
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from threading import Lock, get_ident
from typing import Any, Final, TypeAlias

import numpy as np

from evenfeed.core import side_effects
from evenfeed.core.block import Block, Column, cut_up
from evenfeed.core.errors import FailedPreconditionError
from evenfeed.core.iteration import Forkable, Iterator, Owner, interruption, reading
from evenfeed.core.structure import DATA, packer
from evenfeed.core.tensor_types import host_tensor
from evenfeed.live.watching import watching
from evenfeed.plan.node import Node
from evenfeed.runtime.build import build
from evenfeed.runtime.explain import Explanation, explained_pass
from evenfeed.runtime.file_digests import StateFiles, with_digests
from evenfeed.runtime.fingerprint import check_state, fingerprint, sealed
from evenfeed.runtime.functions.called_functions import ExternalState
from evenfeed.runtime.functions.calls import instead_of_stop
from evenfeed.runtime.measuring.pipeline_stats import (
    PipelineMeasure,
    PipelineStats,
    not_measured,
)
from evenfeed.runtime.operator import Ended, Operator, State, read_full
from evenfeed.runtime.operators.parallel import unordered_map
from evenfeed.runtime.reading_pace import Pace
from evenfeed.runtime.run import Run, run_started_elsewhere
from evenfeed.runtime.thread_settings import restore_settings, thread_settings

# The version of new states, and the oldest that can be restored.
_VERSION: Final = 6
_OLDEST: Final = 2

# The state of the run, or None for the current one; the state of the operator; and how many elements to skip after it.
_Position: TypeAlias = tuple[Any, State, int]


class ElementIterator(Iterator, Forkable):
    """Iterates over the elements of a dataset.

    Reads grow 1, 2, 4, … within a budget of time and bytes: the first element arrives as soon as possible, and a long
    run costs little more than its columns. User code is not called ahead.

    Ctrl-C loses no element. If it interrupts a read, the position stays before that read, and the next call reads
    again. An element is counted in the last statement before it is returned: CPython checks for signals, and switches
    threads, only after calls and jumps, and there are none in between.

    Args:
        plan: The plan to read.
        tensors: Whether to return the tensors that users expect; internal readers take plain arrays.
        flat: Whether to return the parts of an element as a list, without their structure.
        form: Converts each element before it is returned.
        begun: The state of a run that was started elsewhere, and that this pass belongs to.
        unordered: Whether results of a map may overtake each other. Whoever saves a position and elements to read again
            must not allow it, nor workers that read the same rows.
    """

    def __init__(  # noqa: PLR0913 - keyword-only arguments
        self,
        plan: Node,
        *,
        tensors: bool = False,
        flat: bool = False,
        form: Callable[[Any], Any] | None = None,
        begun: Any = None,
        unordered: bool = False,
    ) -> None:
        reading.check_start(self)
        self.made_under = side_effects.here.watcher
        self._owner = Owner(self)
        self._as_seen = _of_tensors if tensors else Block.cut_up
        self._plan = plan
        self._spec = plan.element_spec
        self._pack = _as_they_are if flat else _packer(self._spec, form)
        self._run = Run(plan) if begun is None else run_started_elsewhere(plan, begun)
        self._run.unordered = unordered_map(plan) if unordered else None
        self._measure = PipelineMeasure(plan) if watching.is_on else None
        if self._measure is not None:
            self._run.meter = self._measure.meter
            self._measure.held = partial(_held_by, weakref.ref(self))
            if not flat:  # whoever reads parts shows the figures with its own
                watching.watch(self, self._measure)
        # A thread may keep a dropped iterator's operator alive; end its processes anyway.
        weakref.finalize(self, self._run.close)
        self._operator: Operator = self._built()
        self._block: Block | None = None
        self._before: State = None  # the position before the Block
        self._next_row = 0
        self._torn: _Position | None = None  # the position before an interrupted read
        self._outside = ExternalState(self._plan)
        # Of unordered elements, none are read again: a saved position may not lie within a Block.
        self._pace = Pace(plan, self._outside.called, singly=self._run.unordered is not None)
        self._may_be_stale = self._pace.depends
        self._lock = Lock()
        self._reader = 0  # the thread that has the lock; 0 if none says so

    @property
    def element_spec(self) -> Any:
        """The specs of an element's parts."""
        return self._spec

    def __next__(self) -> Any:
        if reading.instead is not None:
            found = reading.instead(self)
            if found is not None:
                return found
        may_be_stale = self._may_be_stale
        while True:
            block, row = self._block, self._next_row
            if block is None or row == block.length or (may_be_stale and self._is_stale()):
                self._fill()
                may_be_stale = False  # check once: another thread may keep assigning
                continue
            element = self._pack(block.row(row))
            if self._block is block and self._next_row == row:  # no other thread took it
                try:
                    self._next_row = row + 1
                    return element
                except BaseException:  # only a debugger's trace function raises here
                    self._next_row = row
                    raise

    def peek(self, most: int) -> Block:
        """Return the next elements, at least one and at most `most` of them. The position stays before them.

        Reads several at once only where the iterator does so on its own, and one if elements depend on variables: the
        consumer may assign these after each element. Raises what `next` would raise.
        """
        most = 1 if self._may_be_stale else most
        while True:
            block, row = self._block, self._next_row
            if block is None or row == block.length or (self._may_be_stale and self._is_stale()):
                self._pace.want(most)
                self._fill()
                continue
            return block.cut(row, row + most)

    def advance(self, count: int) -> None:
        """Count elements that `peek` returned as delivered."""
        self._next_row += count

    def get_state(self) -> dict[str, Any]:
        """Return the position after the last element, as JSON-compatible data.

        Examples:
            >>> import evenfeed as tf
            >>> iterator = iter(tf.data.Dataset.range(5))
            >>> first, state = next(iterator), iterator.get_state()
            >>> again = iter(tf.data.Dataset.range(5))
            >>> again.set_state(state)
            >>> [int(x) for x in again]
            [1, 2, 3, 4]

        Raises:
            FailedPreconditionError: A function draws random numbers, assigns a variable or pulls from an iterator,
                so that a restored iterator would return different elements, and
                `experimental_external_state_policy` in the options does not allow that.
        """
        self._outside.check()
        return sealed(with_digests(self.position()))

    def position(self) -> dict[str, Any]:
        """Return the position without checking for state outside the dataset."""
        run, at, rows = self._position()
        version = self._run.version or _VERSION
        plan = self._fingerprint if version == _VERSION else fingerprint(self._plan, version)
        state = {"version": version, "plan": plan, "run": run, "at": at, "rows": rows}
        files = self._files.file_sets()
        return state | {"files": files} if files else state

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume after the element at which `get_state` was called, in this or another process.

        If that fails, the position does not change.
        """
        check_state(state, range(_OLDEST, _VERSION + 1), self._plan)
        self._files.check(state.get("files"))
        self._outside.check()
        old, new = self._position(), (state["run"], state["at"], state["rows"])
        version, self._run.version = self._run.version, state["version"]
        self._count_dropped(self.held)
        self._block, self._torn = None, new
        try:
            self._go_to(new)
        except Exception:
            self._run.version, self._torn = version, old
            raise

    def save(self) -> dict[str, Any]:
        """Return the position: TensorFlow's name for `get_state`, on what `as_numpy_iterator` returns.

        Examples:
            >>> import evenfeed as tf
            >>> iterator = tf.data.Dataset.range(5).as_numpy_iterator()
            >>> first, state = next(iterator), iterator.save()
            >>> rest = list(iterator)
            >>> iterator.restore(state)
            >>> [int(x) for x in iterator]
            [1, 2, 3, 4]
        """
        return self.get_state()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a position: TensorFlow's name for `set_state`."""
        self.set_state(state)

    def stats(self) -> PipelineStats:
        """Return what each stage of the pipeline has done so far, and how long your program waited for elements.

        The figures are data classes; `as_dict()` makes them plain dicts, for example for JSON.

        Examples:
            >>> import evenfeed as tf
            >>> tf.experimental.enable_stats()
            >>> iterator = iter(tf.data.Dataset.range(100).map(lambda x: x + 1).prefetch(4))
            >>> tf.experimental.enable_stats(False)
            >>> first = next(iterator)
            >>> stats = iterator.stats()
            >>> stats.stages[1].name, stats.stages[1].elements > 0, stats.waited_seconds > 0
            ('map(<lambda>)', True, True)

        Raises:
            FailedPreconditionError: The iterator is not measured.
        """
        if self._measure is None:
            raise not_measured()
        return self._measure.stats()

    def explain(self) -> Explanation:
        """Describe how the pipeline runs, with the figures of `stats()` for each stage, and what to change."""
        return explained_pass(self._plan, self.stats())

    @property
    def measure(self) -> PipelineMeasure | None:
        """What measures the pipeline; None if nothing does."""
        return self._measure

    def _built(self) -> Operator:
        operator = build(self._plan, self._run)
        return operator if self._measure is None else self._measure.top(operator)

    def _position(self) -> "_Position":
        self._owner.check()
        if self._torn is not None:
            run, at, rows = self._torn
            return self._run.state() if run is None else run, at, rows
        if self._block is not None and self._next_row < self._block.length:
            back = self._operator.rewound(self._block.length - self._next_row)
            if back is not None:
                return self._run.state(), back, 0
            return self._run.state(), self._before, self._next_row
        return self._run.state(), self._operator.state(), 0

    def _go_to(self, position: "_Position") -> None:
        run, at, rows = position
        self._operator.close()
        if run is not None:
            self._run.restore(run)
        self._operator = self._built()
        self._operator.restore(at)
        for _ in read_full(self._operator, rows):
            pass
        self._count_dropped(rows)
        # Read one: an element that is ready must not wait for a later one that hangs or exits.
        self._pace.ask = 1
        self._block = self._torn = None

    @property
    def held(self) -> int:
        """How many elements of the Block are not delivered yet."""
        block = self._block
        return 0 if block is None else block.length - self._next_row

    def _count_dropped(self, count: int) -> None:
        if self._measure is not None:
            self._measure.dropped += count

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self._plan)

    @cached_property
    def _files(self) -> StateFiles:
        return StateFiles(self._plan)

    def close(self) -> None:
        """End the threads and processes that work for this iterator. It is not read again."""
        if not self._owner.is_here:
            return
        self._operator.close()
        self._run.close()

    def after_fork(self) -> None:
        """Return nothing more in a forked child: the parent returns the elements that were read."""
        self._block = None

    def _fill(self) -> None:
        """Read the next Block, unless another thread has done so."""
        self._owner.check()
        if self._lock.locked() and self._reader == get_ident():
            raise _waits_for_itself()
        with self._lock:
            self._reader = get_ident()
            try:
                if self._may_be_stale and self._is_stale():
                    self._count_dropped(self.held)
                    self._torn, self._block = self._position(), None
                    self._pace.took_back()
                if self._block is None or self._next_row == self._block.length:
                    self._read()
            finally:
                self._reader = 0  # another thread has the lock a moment before it says so

    def _is_stale(self) -> bool:
        """Return True if a variable has changed since the remaining elements were read."""
        block = self._block
        return block is not None and self._next_row < block.length and self._pace.is_stale()

    def _read(self) -> None:
        settings = thread_settings()
        try:
            if self._torn is not None:
                self._go_to(self._torn)
            block = self._next_block()
        except BaseException as error:
            if self._torn is not None:
                restore_settings(settings, error)
            raise
        block = self._as_seen(block)  # the whole Block once; its rows are then tensors
        self._block, self._torn, self._next_row = block, None, 0
        self._pace.learn(block, self._operator)

    def _next_block(self) -> Block:
        """Return the next Block. If the read is interrupted, `_torn` stays set."""
        self._pace.begin()
        before = self._operator.state()
        handled = sys.exception()
        self._block, self._before, self._torn = None, before, (None, before, 0)
        try:
            block = self._operator.read(self._pace.ask)
        except StopIteration as stop:  # raised by user code that no operator guards
            error = instead_of_stop(stop, "Code that reads the data", None)
            self._torn = None
            raise error from stop
        except Exception as error:
            # An element failed and is skipped, unless Ctrl-C caused the error.
            stopped = interruption(error, handled)
            if stopped is not None:
                raise stopped from None
            self._torn = None
            raise
        if block is None:
            # Close generators and files even if the iterator stays referenced.
            ended, self._operator = self._operator, Ended(self._operator.state())
            ended.close()  # at once: the next pass may need the lock of a cache that was not read to its end
            if self._measure is not None:
                self._measure.end()
            self._torn = None
            raise StopIteration
        return block


def _held_by(iterator: "weakref.ref[ElementIterator]") -> int:
    found = iterator()
    return 0 if found is None else found.held


def _waits_for_itself() -> FailedPreconditionError:
    """Return the error for code that runs for an element and asks for the next one."""
    return FailedPreconditionError(
        "A function or generator of this dataset asked the iterator for its next element, while "
        "the iterator waits for that function.",
        fix="begin another iterator in it: iter(dataset).",
    )


def _packer(spec: Any, form: Callable[[Any], Any] | None) -> Callable[[Sequence[Any]], Any]:
    pack = packer(spec, DATA)
    return pack if form is None else lambda parts: form(pack(parts))


def _as_they_are(parts: list[Any]) -> list[Any]:
    return parts


def _of_tensors(block: Block) -> Block:
    columns = [host_tensor(c) if type(c) is np.ndarray else _tensors(c) for c in block.columns]
    return Block(tuple(columns), block.length)


def _tensors(column: Column) -> Column:
    whole = cut_up(column)
    return list(map(host_tensor, whole)) if isinstance(whole, list) else host_tensor(whole)
