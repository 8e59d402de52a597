"""Keeps the elements of a whole pass for those that follow."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.block import Block, concatenated, read_only
from evenfeed.core.cardinality import UNKNOWN
from evenfeed.plan.buffering import Memory
from evenfeed.runtime.operator import Operator, State

# Small blocks are joined up to this size: a later pass then reads long runs.
_CHUNK_BYTES: Final = 1 << 22

Start: TypeAlias = Callable[[Any], tuple[Operator, Any]]


class Content(ABC):
    """All elements of one pass, and which pass it was."""

    def __init__(self, origin: Any) -> None:
        self.origin = origin

    @abstractmethod
    def read(self, start: int, most: int) -> Block | None:
        """Return elements from `start` on; None behind the last."""

    def behind(self, start: int) -> int:
        """Return the place behind elements that cannot be read, of which the first is at `start`."""
        return start + 1


class Recording(ABC):
    """Takes down one pass."""

    @abstractmethod
    def add(self, block: Block) -> None:
        """Take down more elements."""

    @abstractmethod
    def finish(self, origin: Any) -> None:
        """Keep all that was taken down: the pass is complete."""

    @abstractmethod
    def discard(self) -> None:
        """Forget it."""


class Store(ABC):
    """Where a pass is kept."""

    @abstractmethod
    def content(self) -> Content | None:
        """Return what is kept; None while no pass was completed."""

    @abstractmethod
    def record(self) -> Recording:
        """Begin to take down a pass."""


@final
class InMemory(Store):
    """Keeps a pass in the memory of the process, for all iterators over one dataset."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def content(self) -> Content | None:
        """Return what is kept."""
        return self._memory.content

    def record(self) -> Recording:
        """Begin to take down a pass; the first that is complete stays."""
        return _InMemoryRecording(self._memory)


@final
class _InMemoryContent(Content):
    def __init__(self, blocks: Sequence[Block], origin: Any) -> None:
        super().__init__(origin)
        self._blocks = blocks
        self._ends = np.cumsum([block.length for block in blocks]).tolist()

    def read(self, start: int, most: int) -> Block | None:
        place = bisect_right(self._ends, start)
        if place == len(self._blocks):
            return None
        first = start - (self._ends[place] - self._blocks[place].length)
        return self._blocks[place].cut(first, first + most)


@final
class _InMemoryRecording(Recording):
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._chunks = Chunks()

    def add(self, block: Block) -> None:
        self._chunks.add(block)

    def finish(self, origin: Any) -> None:
        with self._memory.lock:
            if self._memory.content is None:
                self._memory.content = _InMemoryContent(self._chunks.all(), origin)

    def discard(self) -> None:
        self._chunks = Chunks()


@final
class Chunks:
    """Joins small blocks into larger ones as they come."""

    def __init__(self) -> None:
        self._done: list[Block] = []
        self._open: list[Block] = []
        self._bytes = 0

    def add(self, block: Block) -> None:
        """Take a block."""
        self._open.append(block)
        self._bytes += block.bytes_per_row * block.length
        if self._bytes >= _CHUNK_BYTES:
            self._close()

    def all(self) -> list[Block]:
        """Return all that came, as few blocks."""
        self._close()
        return self._done

    def _close(self) -> None:
        if self._open:
            self._done.append(read_only(concatenated(self._open)))
        self._open, self._bytes = [], 0


@final
class KeepElements(Operator):
    """Reads a kept pass where there is one; else the child, taking it down.

    A pass that was not read to its end is not kept, and the next one asks the child again. Where `size`
    says how many elements there are, the last one completes the pass. `restore` goes back to the pass that
    the position was taken in: where it is not kept here, it is read again.
    """

    def __init__(self, start: Start, store: Store, size: int = UNKNOWN) -> None:
        self._start = start
        self._store = store
        self._size = size
        self._recording: Recording | None = None
        self._child: Operator | None = None
        self._origin: Any = None  # which pass: what was random in it
        self._content: Content | None = None
        self._began = False
        self._passed = 0
        self._failed = 0  # elements passed that were errors
        self._is_lost = False  # what is kept cannot be read
        self._unwritten: Block | None = None  # elements that could not be taken down

    def read(self, most: int) -> Block | None:
        """Return the next elements."""
        if self._is_lost:
            return None
        if not self._began:
            self._begin(self._found(), None)
        block = self._next(most)
        self._passed += 0 if block is None else block.length
        return block

    def _found(self) -> Content | None:
        """Return what is kept. Where it cannot be read at all, that is the one error of the pass."""
        try:
            return self._store.content()
        except Exception:
            self._is_lost = True
            raise

    def _begin(self, content: Content | None, origin: Any) -> None:
        self._began = True
        self._content = content
        if content is None:
            self._child, self._origin = self._start(origin)
            if self._store.content() is None:
                self._recording = self._store.record()
        else:
            self._origin = content.origin

    def _next(self, most: int) -> Block | None:
        if self._content is not None:
            return self._kept(self._content, most)
        block, self._unwritten = self._unwritten, None
        if block is not None:
            return block
        block = self._read_child(most)
        if block is None:
            self._complete()
            return None
        # Kept as it was: nobody who gets an element may write into it.
        block = read_only(block)
        with self._taking_down(block):
            if self._recording is not None:
                self._recording.add(block)
        if self._passed + block.length == self._size:
            self._complete(block)
        return block

    def _kept(self, content: Content, most: int) -> Block | None:
        try:
            return content.read(self._passed, most)
        except Exception:
            self._passed = content.behind(self._passed)
            raise

    def _read_child(self, most: int) -> Block | None:
        try:
            return None if self._child is None else self._child.read(most)
        except Exception:
            self._failed += 1
            raise

    @contextmanager
    def _taking_down(self, block: Block | None) -> Generator[None]:
        """Where elements cannot be taken down, keep no pass: the elements come after the error."""
        try:
            yield
        except Exception:
            if self._recording is not None:
                self._recording.discard()
            self._recording, self._unwritten = None, block
            raise

    def _complete(self, last: Block | None = None) -> None:
        with self._taking_down(last):
            if self._recording is not None:
                self._recording.finish(self._origin)
                self._recording = None

    def state(self) -> State:
        """Return how many elements were passed, those that failed too, and in which pass."""
        return [self._passed, self._failed, self._origin] if self._began else None

    def restore(self, state: State) -> None:
        """Go to the position: in what is kept if that is the same pass, else by reading it again."""
        self.close()
        self._began, self._passed, self._failed = False, 0, 0
        self._is_lost, self._unwritten = False, None
        if state is None:
            return
        passed, failed, origin = state
        content = self._store.content()
        if content is not None and content.origin == origin:
            self._begin(content, origin)
            self._passed = passed
            return
        self._begin(None, origin)
        while self._passed < passed or self._failed < failed:
            if not self._read_again(max(1, passed - self._passed)):
                return

    def _read_again(self, most: int) -> bool:
        """Read on towards a position; an element that failed was passed then, and is passed now."""
        child = self._child
        before = None if child is None else child.state()
        try:
            return self.read(most) is not None
        except Exception:
            if child is None or child.state() == before:
                raise
            return True

    def close(self) -> None:
        """Stop the child, and forget a pass that is not complete."""
        if self._recording is not None:
            self._recording.discard()
        if self._child is not None:
            self._child.close()
        self._recording = self._child = None

    def children(self) -> tuple[Operator, ...]:
        """Return the child, while it is read."""
        return () if self._child is None else (self._child,)
