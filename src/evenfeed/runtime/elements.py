"""Hands out the elements of a plan one by one."""

import weakref
from functools import cached_property
from threading import Lock
from typing import Any, final

from evenfeed.core import side_effects
from evenfeed.core.block import Block, Column
from evenfeed.core.iteration import Iterator, reading
from evenfeed.core.structure import DATA, packer
from evenfeed.core.tensor_types import host_tensor
from evenfeed.plan.node import Node
from evenfeed.runtime.build import build
from evenfeed.runtime.calls import instead_of_stop
from evenfeed.runtime.external_state import ExternalState
from evenfeed.runtime.fingerprint import check_state, fingerprint
from evenfeed.runtime.operator import most_rows, read_full
from evenfeed.runtime.reading_pace import Pace
from evenfeed.runtime.run import Run, with_own_shuffles

_VERSION = 1


@final
class ElementIterator(Iterator):
    """The elements of a dataset, one at a time.

    Reads grow 1, 2, 4, … up to a byte budget, so that the first element comes as soon as one element
    can, and a long run costs little more than its columns. With `tensors` the parts are what users
    expect of an element; the engine's own readers take them plain.
    """

    def __init__(self, plan: Node, *, tensors: bool = False) -> None:
        self.made_under = side_effects.here.watcher
        self._tensors = tensors
        self._plan = with_own_shuffles(plan)
        self._spec = plan.element_spec
        self._pack = packer(self._spec, DATA)
        self._run = Run(self._plan)
        # A thread may still read for an iterator that is forgotten: processes end without it.
        weakref.finalize(self, self._run.close)
        self._operator = build(self._plan, self._run)
        self._block: Block | None = None
        self._before: Any = None
        self._torn = False  # a read was interrupted: what it took from the source is taken again
        self._next_row = 0
        self._outside = ExternalState(self._plan)
        self._pace = Pace(self._plan, [called.effects for called in self._outside.called])
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
        with self._lock:  # several threads may share an iterator: each element goes to one of them
            block = self._block
            if block is None or self._next_row == block.length:
                block = self._read()
            elif self._may_be_stale and self._pace.is_stale():
                self._take_back()
                block = self._read()
            element = self._pack(block.row(self._next_row))
            self._next_row += 1
        return element

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
        return self.position()

    def position(self) -> dict[str, Any]:
        """Return the position, whatever functions keep elsewhere."""
        rest = self._torn or (self._block is not None and self._next_row < self._block.length)
        return {
            "version": _VERSION,
            "plan": self._fingerprint,
            "run": self._run.state(),
            "at": self._before if rest else self._operator.state(),
            "rows": self._next_row if rest and not self._torn else 0,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on behind the element at which `get_state` was called, in this or another process."""
        check_state(state, _VERSION, self._plan)
        self._outside.check()
        self._run.restore(state["run"])
        self._go_to(state["at"])
        for _ in read_full(self._operator, state["rows"]):
            pass

    def _go_to(self, position: Any) -> None:
        self._operator.close()
        self._operator = build(self._plan, self._run)
        self._operator.restore(position)
        self._block, self._torn = None, False

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self._plan)

    def close(self) -> None:
        """End the threads and processes that work for it; nothing is read any more."""
        self._operator.close()
        self._run.close()

    def _read(self) -> Block:
        if self._torn:
            self._go_to(self._before)
        self._pace.begin()
        self._before = self._operator.state()
        self._block, self._torn = None, True
        try:
            block = self._operator.read(self._pace.ask)
        except Exception as error:  # of an element, which is passed; Ctrl-C is none
            self._torn = False
            if isinstance(error, StopIteration):  # of code of the user's that no operator guards
                raise instead_of_stop(error, "Code that the data is read with", None) from error
            raise
        if block is None:
            self._torn = False
            raise StopIteration
        block = block.cut_up()
        if self._tensors:  # once for all rows of the Block: their views are tensors then
            block = Block(tuple(map(_of_tensors, block.columns)), block.length)
        # Nothing is called between these, so no Ctrl-C comes between.
        self._block, self._torn, self._next_row = block, False, 0
        self._pace.grow(most_rows(block))
        return block

    def _take_back(self) -> None:
        """Go back behind the last element that was handed out: what comes now was read for other variables."""
        handed_out = self._next_row
        self._operator.restore(self._before)
        for _ in read_full(self._operator, handed_out):
            pass
        self._pace.took_back()


def _of_tensors(column: Column) -> Column:
    return list(map(host_tensor, column)) if isinstance(column, list) else host_tensor(column)
