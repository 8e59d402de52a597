"""Operators that choose elements and their order."""

from collections.abc import Callable

from evenfeed.runtime.block import Block
from evenfeed.runtime.operator import Operator


class PlayAgain(Operator):
    """Starts its child anew when it has ended."""

    __slots__ = ("_child", "_found", "_left", "_start")

    def __init__(self, start: Callable[[], Operator], count: int) -> None:
        self._start = start
        self._left = count
        self._child: Operator | None = None
        self._found = False

    def read(self, most: int) -> Block | None:
        """Return elements of this round; of the next one where this has none left."""
        while True:
            if self._child is None:
                if self._left == 0:
                    return None
                self._left -= 1
                self._child, self._found = self._start(), False
            block = self._child.read(most)
            if block is not None:
                self._found = True
                return block
            if not self._found:  # a round without elements: so will be all others
                self._left = 0
            self._child = None
