"""Hands out the elements of a plan one by one."""

import sys
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final, TypeAlias, final

from evenfeed.core import side_effects
from evenfeed.core.block import Block, Column, cut_up
from evenfeed.core.iteration import Forkable, Iterator, Owner, interruption, reading
from evenfeed.core.structure import DATA, packer
from evenfeed.core.tensor_types import host_tensor
from evenfeed.plan.node import Node
from evenfeed.runtime.build import build
from evenfeed.runtime.file_digests import StateFiles, with_digests
from evenfeed.runtime.fingerprint import check_state, fingerprint
from evenfeed.runtime.functions.called_functions import ExternalState
from evenfeed.runtime.functions.calls import instead_of_stop
from evenfeed.runtime.operator import Ended, Operator, State, read_full
from evenfeed.runtime.reading_pace import Pace
from evenfeed.runtime.run import Run, begun_elsewhere
from evenfeed.runtime.thread_settings import ThreadSettings

_VERSION: Final = 2

# What is random in the pass, or None for what it is; where the operators are; and how many elements behind that.
_Position: TypeAlias = tuple[Any, State, int]


@final
class ElementIterator(Iterator, Forkable):
    """The elements of a dataset, one at a time.

    Reads grow 1, 2, 4, … within a budget of time and bytes, so that the first element comes as soon as one
    element can, and a long run costs little more than its columns. Python code of users is not called ahead.

    Ctrl-C loses no element. One that comes within a read leaves the position before it, from which the
    next call reads again. An element is counted in the last statement before it is returned: CPython
    looks for signals, and for other threads, behind calls and jumps only, and there is none in between.

    Args:
        plan: What is read.
        tensors: Whether the parts are what users expect of an element; the engine's own readers take
            them plain.
        form: Makes of an element what is handed out.
        begun: The state of a run that was begun elsewhere, which this pass is a part of.
    """

    def __init__(
        self,
        plan: Node,
        *,
        tensors: bool = False,
        form: Callable[[Any], Any] | None = None,
        begun: Any = None,
    ) -> None:
        self.made_under = side_effects.here.watcher
        self._owner = Owner(self)
        self._as_seen = _of_tensors if tensors else cut_up
        self._plan = plan
        self._spec = plan.element_spec
        self._pack = _packer(self._spec, form)
        self._run = Run(plan) if begun is None else begun_elsewhere(plan, begun)
        # A thread may still read for an iterator that is forgotten: processes end without it.
        weakref.finalize(self, self._run.close)
        self._operator: Operator = build(self._plan, self._run)
        self._block: Block | None = None
        self._before: State = None  # the position before the Block
        self._next_row = 0
        self._torn: _Position | None = None  # a read from here on was interrupted
        self._outside = ExternalState(self._plan)
        self._pace = Pace(self._plan, self._outside.called)
        self._may_be_stale = self._pace.depends
        self._lock = Lock()

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
                may_be_stale = False  # another thread may assign again and again
                continue
            element = self._pack(block.row(row))
            if self._block is block and self._next_row == row:  # no other thread was quicker
                try:
                    self._next_row = row + 1
                    return element
                except BaseException:  # only a debugger's trace function raises here
                    self._next_row = row
                    raise

    def get_state(self) -> dict[str, Any]:
        """Return the position behind the last element, as data that JSON can hold.

        Examples:
            >>> import evenfeed as tf
            >>> iterator = iter(tf.data.Dataset.range(5))
            >>> first, state = next(iterator), iterator.get_state()
            >>> again = iter(tf.data.Dataset.range(5))
            >>> again.set_state(state)
            >>> [int(x) for x in again]
            [1, 2, 3, 4]

        Raises:
            FailedPreconditionError: A function draws random numbers, assigns a variable or pulls an iterator,
                so that other elements would follow, and `experimental_external_state_policy` in the
                options does not allow that.
        """
        self._outside.check()
        return with_digests(self.position())

    def position(self) -> dict[str, Any]:
        """Return the position, whatever functions keep elsewhere."""
        run, at, rows = self._position()
        state = {"version": _VERSION, "plan": self._fingerprint, "run": run, "at": at, "rows": rows}
        files = self._files.told()
        return state | {"files": files} if files else state

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on behind the element at which `get_state` was called, in this or another process.

        Where that fails, the position stays.
        """
        check_state(state, _VERSION, self._plan)
        self._files.check(state.get("files"))
        self._outside.check()
        old, new = self._position(), (state["run"], state["at"], state["rows"])
        self._block, self._torn = None, new
        try:
            self._go_to(new)
        except Exception:
            self._torn = old
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
        """Take up a position: TensorFlow's name for `set_state`."""
        self.set_state(state)

    def _position(self) -> "_Position":
        self._owner.check()
        if self._torn is not None:
            run, at, rows = self._torn
            return self._run.state() if run is None else run, at, rows
        if self._block is not None and self._next_row < self._block.length:
            return self._run.state(), self._before, self._next_row
        return self._run.state(), self._operator.state(), 0

    def _go_to(self, position: "_Position") -> None:
        run, at, rows = position
        self._operator.close()
        if run is not None:
            self._run.restore(run)
        self._operator = build(self._plan, self._run)
        self._operator.restore(at)
        for _ in read_full(self._operator, rows):
            pass
        # An element that was ready before the one that hangs, or exits, now comes first.
        self._pace.ask = 1
        self._block = self._torn = None

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self._plan)

    @cached_property
    def _files(self) -> StateFiles:
        return StateFiles(self._plan)

    def close(self) -> None:
        """End the threads and processes that work for it; nothing is read any more."""
        if not self._owner.is_here:
            return
        self._operator.close()
        self._run.close()

    def after_fork(self) -> None:
        """Hand out nothing more: the parent hands out what was read."""
        self._block = None

    def _fill(self) -> None:
        """Read the next Block, unless another thread has."""
        self._owner.check()
        with self._lock:
            if self._may_be_stale and self._is_stale():
                self._torn, self._block = self._position(), None
                self._pace.took_back()
            if self._block is None or self._next_row == self._block.length:
                self._read()

    def _is_stale(self) -> bool:
        """Return True if a variable has changed since elements were read that have not been handed out."""
        block = self._block
        return block is not None and self._next_row < block.length and self._pace.is_stale()

    def _read(self) -> None:
        settings = ThreadSettings()
        try:
            if self._torn is not None:
                self._go_to(self._torn)
            block = self._next_block()
        except BaseException as error:
            if self._torn is not None:
                settings.restore(error)
            raise
        # Once for all rows of the Block: their views are tensors then.
        block = Block(tuple(map(self._as_seen, block.columns)), block.length)
        self._block, self._torn, self._next_row = block, None, 0
        self._pace.learn(block)

    def _next_block(self) -> Block:
        """Return the next Block; where that is interrupted, the read stays torn."""
        self._pace.begin()
        before = self._operator.state()
        handled = sys.exception()
        self._block, self._before, self._torn = None, before, (None, before, 0)
        try:
            block = self._operator.read(self._pace.ask)
        except StopIteration as stop:  # raised by user code that no operator guards
            error = instead_of_stop(stop, "Code that the data is read with", None)
            self._torn = None
            raise error from stop
        except Exception as error:  # of an element, which is passed; Ctrl-C is none
            stopped = interruption(error, handled)
            if stopped is not None:
                raise stopped from None
            self._torn = None
            raise
        if block is None:
            # Neither generators nor files stay open for an iterator that somebody keeps.
            self._operator = Ended(self._operator.state())
            self._torn = None
            raise StopIteration
        return block


def _packer(spec: Any, form: Callable[[Any], Any] | None) -> Callable[[Sequence[Any]], Any]:
    pack = packer(spec, DATA)
    return pack if form is None else lambda parts: form(pack(parts))


def _of_tensors(column: Column) -> Column:
    whole = cut_up(column)
    return list(map(host_tensor, whole)) if isinstance(whole, list) else host_tensor(whole)
