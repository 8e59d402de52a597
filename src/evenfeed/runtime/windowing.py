"""Groups elements by key, and reads what full groups are reduced to."""

from collections import Counter
from functools import partial
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, cut_up, of_rows
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.side_effects import noted
from evenfeed.plan.node import Node
from evenfeed.plan.windowing import GroupByWindow
from evenfeed.plan.windows import Held
from evenfeed.runtime.calls import never_stopping
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.inner_elements import InnerElements, unlike_elements
from evenfeed.runtime.operator import Operator, Replayed
from evenfeed.runtime.run import Inner, Opener


@final
class ReadGroups(Replayed):
    """Collects elements by key and reads the dataset that each full group is reduced to.

    The groups that are not full have no position, so `restore` reads the elements once more.
    """

    def __init__(
        self,
        child: Operator,
        node: GroupByWindow,
        key: RowFunction,
        opens: Opener,
        drawn: Counter[Any],
    ) -> None:
        self._drawn = drawn
        self._node = node
        self._key = key
        self._opens = opens
        super().__init__(child)

    def _begin(self) -> None:
        self._number = 0
        self._opened = 0  # how many groups
        self._groups: dict[int, list[list[Any]]] = {}
        self._open: Inner | None = None
        self._elements = InnerElements(self._node.element_spec)

    def _next(self, most: int) -> Block | None:
        """Return elements of the group that is open, or of the next that fills up."""
        while True:
            if self._open is None:
                group = self._full_group()
                if group is None:
                    return None
                self._open = self._opens(self._opened, partial(self._reduced, *group))
                self._opened += 1
            block = self._open.operator.read(most)
            if block is not None and self._elements.match(self._open, block):
                return block
            self._open.operator.close()
            self._open = None
            if block is not None:
                raise unlike_elements()

    def _reduced(self, key: int, group: Held) -> Node:
        with (
            never_stopping("reduce_func", self._node.origin),
            noted(self._node.effects, self._drawn),
        ):
            return self._node.reduce(key, group)

    def _full_group(self) -> tuple[int, Held] | None:
        """Read until a group is full; at the end return those that are not, by their keys."""
        while (row := self._row()) is not None:
            key = int(np.asarray(self._key.one(row, self._number - 1)[0]))
            window = self._window(key)  # an element for which this fails is in no group
            self._groups.setdefault(key, []).append(row)
            if len(self._groups[key]) == window:
                return key, self._held(key)
        return next(((key, self._held(key)) for key in sorted(self._groups)), None)

    def _row(self) -> list[Any] | None:
        self._number += 1  # one that fails has a number too
        block = self._child.read(1)
        return None if block is None else block.row(0)

    def _window(self, key: int) -> int:
        with (
            never_stopping("window_size_func", self._node.origin),
            noted(self._node.effects, self._drawn),
        ):
            size = self._node.window_size(key)
        if size < 1:
            raise InvalidArgumentError(
                f"A window must hold at least 1 element, but for the key {key} it is to hold {size}.",
                fix="pass a window_size of at least 1, or return one from window_size_func.",
                origin=self._node.origin,
            )
        return size

    def _held(self, key: int) -> Held:
        rows = of_rows(self._groups.pop(key))
        columns = tuple(map(cut_up, rows.columns))
        return Held(self._node.child.element_spec, columns, rows.length)

    def children(self) -> tuple[Operator, ...]:
        """Return the child, and the group that is open."""
        return (self._child,) if self._open is None else (self._child, self._open.operator)
