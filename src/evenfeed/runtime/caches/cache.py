"""Keeps the elements of a whole pass for those that follow."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, final

import numpy as np

from evenfeed.core.block import Block, concatenated, read_only
from evenfeed.plan.buffering import Memory
from evenfeed.runtime.operator import Operator, State

# Small blocks are joined up to this size: a later pass then reads long runs.
_CHUNK_BYTES: Final = 1 << 22


class Source(Protocol):
    """What is below a cache, in one round of a repetition above it.

    Attributes:
        size: How many elements there are, or INFINITE or UNKNOWN.
    """

    size: int

    def kept(self) -> Any:
        """Return which kept pass is read in this round; None where what is below is read."""
        ...

    def origin(self) -> Any:
        """Return which pass over what is below this round has, as data for JSON."""
        ...

    def start(self, origin: Any) -> Operator:
        """Return the operator of a pass."""
        ...

    def complete(self, origin: Any) -> None:
        """Take note that a pass was read to its end."""
        ...


class Content(ABC):
    """All elements of one pass.

    Attributes:
        origin: Which pass it was.
        failed: How many elements of it failed: they are not here.
    """

    def __init__(self, origin: Any, failed: int) -> None:
        self.origin = origin
        self.failed = failed

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
    def finish(self, origin: Any, failed: int) -> None:
        """Keep all that was taken down: the pass is complete."""

    @abstractmethod
    def discard(self) -> None:
        """Forget it."""


class Store(ABC):
    """Where a pass is kept."""

    @abstractmethod
    def content(self) -> Content | None:
        """Return what is kept; None while no pass was completed."""

    def origin(self) -> Any:
        """Return which pass is kept; None where none is."""
        content = self.content()
        return None if content is None else content.origin

    @abstractmethod
    def record(self) -> Recording:
        """Begin to take down a pass."""

    def promise(self, origin: Any) -> None:  # noqa: B027 - of files, others learn nothing before they are there
        """Tell other iterators which pass is kept, though it is being read again."""


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

    def origin(self) -> Any:
        """Return which pass is kept, or will be once it was read again."""
        return self._memory.origin

    def promise(self, origin: Any) -> None:
        """Tell other iterators over the dataset which pass is kept, though it is being read again."""
        self._memory.promised = origin


@final
class _InMemoryContent(Content):
    def __init__(self, blocks: Sequence[Block], origin: Any, failed: int) -> None:
        super().__init__(origin, failed)
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

    def finish(self, origin: Any, failed: int) -> None:
        with self._memory.lock:
            if self._memory.content is None:
                self._memory.content = _InMemoryContent(self._chunks.all(), origin, failed)

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

    A pass that was not read to its end is not kept, and the next one asks the child again. `restore` goes
    back to the pass that the position was taken in: where it is not kept here, it is read again.

    Args:
        source: What is below. Where it says how many elements there are, the last one completes the pass.
        store: Where a pass is kept.
    """

    def __init__(self, source: Source, store: Store) -> None:
        self._source = source
        self._store = store
        self._recording: Recording | None = None
        self._child: Operator | None = None
        self._origin: Any = None  # which pass: what was random in it
        self._content: Content | None = None
        self._reads_again = False  # a pass that is kept, though not here
        self._began = self._ended = False
        self._passed = 0
        self._failed = 0  # elements passed that were errors
        self._is_lost = False  # what is kept cannot be read
        self._unwritten: Block | None = None  # elements that could not be taken down

    def read(self, most: int) -> Block | None:
        """Return the next elements."""
        if self._is_lost:
            return None
        if not self._began:
            self._begin()
        block = self._next_of_kept_pass(most) if self._reads_again else self._next(most)
        self._passed += 0 if block is None else block.length
        return block

    def _found(self) -> Content | None:
        """Return what is kept. Where it cannot be read at all, that is the one error of the pass."""
        try:
            return self._store.content()
        except Exception:
            self._is_lost = True
            raise

    def _note_failure(self) -> None:
        """Note that elements failed behind the number that was promised, where the pass is kept already."""
        content = self._store.content() if self._ended else None
        if content is not None and content.origin == self._origin:
            content.failed = self._failed

    def _begin(self) -> None:
        content = self._found()
        self._began = True
        kept = self._source.kept()
        self._origin = self._source.origin() if kept is None else kept
        whole = content is not None and (kept is not None or not content.failed)
        if content is not None and whole and content.origin == self._origin:
            self._content = content
            return
        self._child = self._source.start(self._origin)
        self._reads_again = kept is not None
        if content is None:
            self._recording = self._store.record()
            if kept is not None:
                self._store.promise(kept)

    def _next_of_kept_pass(self, most: int) -> Block | None:
        """Return the next elements without those that fail: what is kept does not have them."""
        while True:
            before = None if self._child is None else self._child.state()
            try:
                return self._next(most)
            except Exception:
                if self._child is None or self._child.state() == before:
                    raise

    def _next(self, most: int) -> Block | None:
        block, self._unwritten = self._unwritten, None
        if block is not None:
            return block
        block = self._read(most)
        if block is None:
            self._complete()
            return None
        with self._taking_down(block):
            if self._recording is not None:
                self._recording.add(block)
        if self._passed + block.length == self._source.size:
            self._complete(block)
        return block

    def _read(self, most: int) -> Block | None:
        if self._content is not None:
            return self._kept(self._content, most)
        block = self._read_child(most)
        # Kept as it was: nobody who gets an element may write into it.
        return None if block is None else read_only(block)

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
            if not self._reads_again:  # what is kept does not have the elements that fail
                self._failed += 1
                self._note_failure()
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
        """Keep the pass, unless another was completed meanwhile."""
        with self._taking_down(last):
            if self._recording is not None:
                self._recording.finish(self._origin, self._failed)
                self._recording = None
        if not self._ended:
            self._source.complete(self._origin)
        self._ended = True

    def state(self) -> State:
        """Return how many elements were passed, those that failed too."""
        return [self._passed, self._failed] if self._began else None

    def restore(self, state: State) -> None:
        """Go to the position: in what is kept if that is the same pass, else by reading it again."""
        self.close()
        self._began = self._ended = False
        self._passed, self._failed = 0, 0
        self._content, self._reads_again = None, False
        self._is_lost, self._unwritten = False, None
        if state is None:
            return
        self._begin()
        passed, failed = state
        if self._content is not None:
            self._passed = passed
            return
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
