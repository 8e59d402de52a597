"""Groups elements by key, and reads what full groups are reduced to."""

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, of_rows
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.windowing import GroupByWindow
from evenfeed.plan.windows import Held
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.operator import Operator, State, read_full
from evenfeed.runtime.run import Build, Inner


@final
class ReadGroups(Operator):
    """Collects elements by key and reads the dataset that each full group is reduced to.

    The groups that are not full have no position, so `restore` reads the elements once more.
    """

    def __init__(
        self, child: Operator, node: GroupByWindow, key: RowFunction, build: Build
    ) -> None:
        self._child = child
        self._node = node
        self._key = key
        self._build = build
        self._begin(child.state())

    def _begin(self, start: State) -> None:
        self._start = start
        self._given = 0
        self._groups: dict[int, list[list[Any]]] = {}
        self._open: Inner | None = None
        self._full = self._full_groups()

    def read(self, most: int) -> Block | None:
        """Return elements of the group that is open, or of the next that fills up."""
        while True:
            if self._open is None:
                group = next(self._full, None)
                if group is None:
                    return None
                self._open = Inner(self._node.reduce(*group), self._build)
            block = self._open.operator.read(most)
            if block is not None:
                self._given += block.length
                return block
            self._open = None

    def _full_groups(self) -> Iterator[tuple[int, Held]]:
        while (block := self._child.read(1)) is not None:
            row = block.row(0)
            key = int(np.asarray(self._key.one(row)[0]))
            self._groups.setdefault(key, []).append(row)
            if len(self._groups[key]) == self._window(key):
                yield key, self._held(key)
        for key in sorted(self._groups):
            yield key, self._held(key)

    def _window(self, key: int) -> int:
        size = int(self._node.window_size(key))
        if size < 1:
            raise InvalidArgumentError(
                f"A window must hold at least 1 element, but for the key {key} it is to hold {size}.",
                fix="return a size of at least 1 from window_size_func.",
                origin=self._node.origin,
            )
        return size

    def _held(self, key: int) -> Held:
        rows = of_rows(self._groups.pop(key))
        return Held(self._node.child.element_spec, rows.columns, rows.length)

    def state(self) -> State:
        """Return where the child began, and how many elements came out."""
        return [self._start, self._given]

    def restore(self, state: State) -> None:
        """Begin anew and pass over what came out."""
        start, given = state
        self._child.restore(start)
        self._begin(start)
        for _ in read_full(self, given):
            pass

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)
