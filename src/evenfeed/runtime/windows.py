"""The operator that cuts elements into windows."""

from collections import deque
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, concatenated
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.windows import Held, Window
from evenfeed.runtime.operator import Operator, State, read_full


@final
class CutWindows(Operator):
    """Holds the elements from the beginning of the next window on."""

    def __init__(self, child: Operator, node: Window) -> None:
        self._child = child
        self._node = node
        self._specs = flatten(node.child.element_spec, DATA)
        self._begin()

    def _begin(self) -> None:
        self._held: deque[tuple[State, Block]] = deque()
        self._used = 0  # of the first block held
        self._count = 0  # of all elements held and not used
        self._gap = 0  # elements to pass over before the next window

    def read(self, most: int) -> Block | None:
        """Return the next windows."""
        found: list[list[Any]] = []
        while len(found) < most and self._reach():
            found.append(self._window())
            self._advance()
        if not found:
            return None
        return Block(tuple(map(list, zip(*found, strict=True))), len(found))

    def _reach(self) -> bool:
        """Hold all of the next window; tell whether there is one."""
        for _ in read_full(self._child, self._gap):
            pass
        self._gap = 0
        span = self._node.span
        while self._count < span:
            before = self._child.state()
            block = self._child.read(span - self._count)
            if block is None:
                break
            self._held.append((before, block))
            self._count += block.length
        return self._count >= (span if self._node.drop_remainder else 1)

    def _window(self) -> list[Any]:
        held = concatenated([block for _, block in self._held])
        span = held.cut(self._used, self._used + self._node.span)
        rows = span.gather(np.arange(0, span.length, self._node.stride))
        parts = zip(self._specs, rows.columns, strict=True)
        origin = self._node.origin
        nodes = [Held(spec, (column,), rows.length, origin=origin) for spec, column in parts]
        return [self._node.face(node) for node in nodes]

    def _advance(self) -> None:
        shift = self._node.shift
        step = min(shift, self._count)
        self._gap = shift - step
        self._count -= step
        self._used += step
        while self._held and self._used >= self._held[0][1].length:
            self._used -= self._held.popleft()[1].length

    def state(self) -> State:
        """Return where the first element held came from, and how many to pass over."""
        before = self._held[0][0] if self._held else self._child.state()
        return [before, self._used, self._gap]

    def restore(self, state: State) -> None:
        """Take up a position."""
        before, used, gap = state
        self._begin()
        self._child.restore(before)
        self._gap = used + gap  # of used and gap, one is 0

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)
