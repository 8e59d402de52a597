"""Operators that read from several others."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import final

from evenfeed.core.block import Block
from evenfeed.runtime.operator import Feed, Operator, State
from evenfeed.runtime.rows import side_by_side
from evenfeed.runtime.whence import Whence, nowhere


@final
class ReadTogether(Operator):
    """Puts elements of several operators side by side, until one ends."""

    def __init__(self, children: Sequence[Operator]) -> None:
        self._feeds = [Feed(child) for child in children]

    def read(self, most: int) -> Block | None:
        """Return as many elements as all have."""
        blocks: list[Block] = []
        for feed in self._feeds:
            try:
                block = feed.read(most)
            except Exception:
                self._pass_one(blocks)
                raise
            if block is None:
                self._give_back(
                    blocks, 0
                )  # so that the end stays the end, whatever the others hold
                return None
            most = min(most, block.length)
            blocks.append(block)
        self._give_back(blocks, most)
        return side_by_side([block.cut(0, most) for block in blocks])

    def _give_back(self, read: list[Block], kept: int) -> None:
        for feed, block in zip(self._feeds, read, strict=False):
            feed.give_back(block.length - kept)

    def _pass_one(self, read: list[Block]) -> None:
        """Pass one element of every part, since that of one has failed: they stay side by side."""
        self._give_back(read, 1)
        for feed in self._feeds[len(read) + 1 :]:
            with suppress(Exception):  # the first error stands for the element
                feed.read(1)

    def state(self) -> State:
        """Return all positions."""
        return [feed.state() for feed in self._feeds]

    def restore(self, state: State) -> None:
        """Take up all positions."""
        for feed, inner in zip(self._feeds, state, strict=True):
            feed.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return all that are read."""
        return tuple(feed.child for feed in self._feeds)


@final
class ReadInTurn(Operator):
    """Reads one operator to its end, then the next, which is started only then.

    Args:
        start: Returns the operator whose turn it is, by its number; None behind the last.
    """

    def __init__(self, start: Callable[[int], Operator | None]) -> None:
        self._start = start
        self._turn = 0
        self._child = start(0)

    def read(self, most: int) -> Block | None:
        """Return elements of the one whose turn it is."""
        while self._child is not None:
            block = self._child.read(most)
            if block is not None:
                return block
            following = self._start(self._turn + 1)
            self._child.close()
            self._turn, self._child = self._turn + 1, following
        return None

    def whence(self, count: int) -> Whence:
        """Return where the elements of the one that is read come from."""
        return nowhere if self._child is None else self._child.whence(count)

    def state(self) -> State:
        """Return whose turn it is, and the position."""
        return None if self._child is None else [self._turn, self._child.state()]

    def restore(self, state: State) -> None:
        """Take up the position."""
        self.close()
        self._child = None
        if state is not None:
            self._turn, inner = state
            self._child = self._start(self._turn)
            assert self._child is not None
            self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return the one that is read."""
        return () if self._child is None else (self._child,)
