"""The cache operator: stores the elements of one complete pass, and reads later passes from them."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, final

import numpy as np

from evenfeed.core.block import Block, concatenated, read_only
from evenfeed.runtime.live_state import Memory
from evenfeed.runtime.operator import Operator, State

# Small Blocks are joined up to this size, so that later passes read large Blocks.
_CHUNK_BYTES: Final = 1 << 22


class Source(Protocol):
    """The input of a cache in one epoch of a repeat above it.

    Attributes:
        size: The number of elements, or INFINITE or UNKNOWN.
        is_promised: Whether the size may be wrong, so that reading on raises.
    """

    size: int
    is_promised: bool

    def kept(self) -> Any:
        """Return which stored pass this epoch reads; None if it reads the input."""
        ...

    def origin(self) -> Any:
        """Return which pass over the input belongs to this epoch, as JSON data."""
        ...

    def start(self, origin: Any) -> Operator:
        """Return the operator that reads a pass over the input."""
        ...

    def complete(self, origin: Any) -> None:
        """Note that a pass was read to its end."""
        ...


class Content(ABC):
    """All elements of one pass.

    Attributes:
        origin: Which pass it was.
        is_clean: Whether the pass is known to have had no errors. They are not stored.
    """

    def __init__(self, origin: Any, *, is_clean: bool) -> None:
        self.origin = origin
        self.is_clean = is_clean

    @abstractmethod
    def read(self, start: int, most: int) -> Block | None:
        """Return elements from `start` on; None after the last one."""

    def behind(self, start: int) -> int:
        """Return the position after the unreadable elements that begin at `start`."""
        return start + 1


class Recording(ABC):
    """Records one pass."""

    @abstractmethod
    def add(self, block: Block) -> None:
        """Record more elements."""

    @abstractmethod
    def finish(self, origin: Any, *, is_clean: bool) -> None:
        """Store the recorded elements: the pass is complete."""

    @abstractmethod
    def discard(self) -> None:
        """Drop the recorded elements."""


class Store(ABC):
    """The place that a cache stores a pass in."""

    @abstractmethod
    def content(self) -> Content | None:
        """Return the stored pass; None until a pass is complete."""

    def origin(self) -> Any:
        """Return which pass is stored; None if there is none."""
        content = self.content()
        return None if content is None else content.origin

    @abstractmethod
    def record(self) -> Recording:
        """Start to record a pass."""

    def promise(self, origin: Any) -> None:  # noqa: B027 - files announce nothing before they exist
        """Announce to other iterators which pass is being read again, and will be stored."""


@final
class InMemory(Store):
    """Stores a pass in memory, for all iterators over one dataset."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def content(self) -> Content | None:
        return self._memory.content

    def record(self) -> Recording:
        """Start to record a pass. The first complete pass wins."""
        return _InMemoryRecording(self._memory)

    def origin(self) -> Any:
        """Return which pass is stored, or will be stored once it has been read again."""
        return self._memory.origin

    def promise(self, origin: Any) -> None:
        self._memory.promised = origin


@final
class _InMemoryContent(Content):
    def __init__(self, blocks: Sequence[Block], origin: Any, *, is_clean: bool) -> None:
        super().__init__(origin, is_clean=is_clean)
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

    def finish(self, origin: Any, *, is_clean: bool) -> None:
        with self._memory.lock:
            if self._memory.content is None:
                chunks = self._chunks.all()
                self._memory.content = _InMemoryContent(chunks, origin, is_clean=is_clean)

    def discard(self) -> None:
        self._chunks = Chunks()


@final
class Chunks:
    """Joins small Blocks into larger ones."""

    def __init__(self) -> None:
        self._done: list[Block] = []
        self._open: list[Block] = []
        self._bytes = 0

    def add(self, block: Block) -> None:
        """Add a Block."""
        self._open.append(block)
        self._bytes += block.bytes_per_row * block.length
        if self._bytes >= _CHUNK_BYTES:
            self._close()

    def all(self) -> list[Block]:
        """Return all elements as few Blocks."""
        self._close()
        return self._done

    def _close(self) -> None:
        if self._open:
            self._done.append(read_only(concatenated(self._open)))
        self._open, self._bytes = [], 0


@final
class KeepElements(Operator):
    """Reads the stored pass if there is one; otherwise reads the input and records it.

    A pass that was not read to its end is not stored, and the next one reads the input again. `restore`
    returns to the pass of the saved position; if that pass is not stored here, it is read again.

    Args:
        source: The input. If its size is known, the last element completes the pass.
        store: The place that the pass is stored in.
    """

    def __init__(self, source: Source, store: Store) -> None:
        self._source = source
        self._store = store
        self._recording: Recording | None = None
        self._child: Operator | None = None
        self._origin: Any = None  # which pass this is: its seeds and its epoch
        self._content: Content | None = None
        self._reads_again = False  # the pass was stored elsewhere, and is read again here
        self._started = self._ended = False
        self._passed = 0
        self._failed = 0  # how many elements failed so far
        self._is_unreadable = False  # the stored pass cannot be read
        self._unwritten: Block | None = None  # elements that could not be recorded

    @property
    def hides_reads(self) -> bool:
        return isinstance(self._content, _InMemoryContent)

    def read(self, most: int) -> Block | None:
        if self._is_unreadable:
            return None
        if not self._started:
            self._start()
        block = self._next_of_stored_pass(most) if self._reads_again else self._next(most)
        self._passed += 0 if block is None else block.length
        return block

    def _open_content(self) -> Content | None:
        """Return the stored pass. If it cannot be opened, that is the only error of this pass."""
        try:
            return self._store.content()
        except Exception:
            self._is_unreadable = True
            raise

    def _note_end(self) -> None:
        """Note in a pass that was stored at its last promised element that no error came after it."""
        content = self._store.content() if self._source.is_promised and not self._failed else None
        if content is not None and content.origin == self._origin:
            content.is_clean = True

    def _start(self) -> None:
        content = self._open_content()
        self._started = True
        kept = self._source.kept()
        self._origin = self._source.origin() if kept is None else kept
        is_usable = content is not None and (kept is not None or content.is_clean)
        if content is not None and is_usable and content.origin == self._origin:
            self._content = content
            return
        self._child = self._source.start(self._origin)
        self._reads_again = kept is not None
        if content is None:
            self._recording = self._store.record()
            if kept is not None:
                self._store.promise(kept)

    def _next_of_stored_pass(self, most: int) -> Block | None:
        """Return the next elements, and skip those that fail: a stored pass does not contain them."""
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
        with self._dropped_on_error(block):
            if self._recording is not None:
                self._recording.add(block)
        if self._passed + block.length == self._source.size:
            self._complete(block)
        return block

    def _read(self, most: int) -> Block | None:
        if self._content is not None:
            return self._read_stored(self._content, most)
        block = self._read_child(most)
        # Read-only, because the consumer must not change what is stored.
        return None if block is None else read_only(block)

    def _read_stored(self, content: Content, most: int) -> Block | None:
        try:
            return content.read(self._passed, most)
        except Exception:
            self._passed = content.behind(self._passed)
            raise

    def _read_child(self, most: int) -> Block | None:
        try:
            return None if self._child is None else self._child.read(most)
        except Exception:
            if not self._reads_again:  # a stored pass does not contain the failed elements
                self._failed += 1
            raise

    @contextmanager
    def _dropped_on_error(self, block: Block | None) -> Generator[None]:
        """If recording fails, store no pass. The elements come after the error."""
        try:
            yield
        except Exception:
            if self._recording is not None:
                self._recording.discard()
            self._recording, self._unwritten = None, block
            raise

    def _complete(self, last: Block | None = None) -> None:
        """Store the pass, unless another one was completed in the meantime."""
        with self._dropped_on_error(last):
            if self._recording is not None:
                is_sure = last is None or not self._source.is_promised
                self._recording.finish(self._origin, is_clean=is_sure and not self._failed)
                self._recording = None
            elif last is None and self._content is None and not self._reads_again:
                self._note_end()
        if not self._ended:
            self._source.complete(self._origin)
        self._ended = True

    def state(self) -> State:
        # How many elements were read, and how many failed.
        return [self._passed, self._failed] if self._started else None

    def restore(self, state: State) -> None:
        self.close()
        self._started = self._ended = False
        self._passed, self._failed = 0, 0
        self._content, self._reads_again = None, False
        self._is_unreadable, self._unwritten = False, None
        if state is None:
            return
        self._start()
        passed, failed = state
        if self._content is not None:
            self._passed = passed
            return
        while self._passed < passed or self._failed < failed:
            if not self._read_again(max(1, passed - self._passed)):
                return

    def _read_again(self, most: int) -> bool:
        """Read on towards a position. Elements that failed then fail now, and are skipped."""
        child = self._child
        before = None if child is None else child.state()
        try:
            return self.read(most) is not None
        except Exception:
            if child is None or child.state() == before:
                raise
            return True

    def close(self) -> None:
        if self._recording is not None:
            self._recording.discard()
        if self._child is not None:
            self._child.close()
        self._recording = self._child = None

    def children(self) -> tuple[Operator, ...]:
        return () if self._child is None else (self._child,)
