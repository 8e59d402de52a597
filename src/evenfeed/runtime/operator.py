"""The operator contract: `read` elements, report the position with `state`, `restore` it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Final, TypeAlias, final

from evenfeed.core.block import Block
from evenfeed.runtime.provenance import (
    Provenance,
    RowOrigin,
    merged_origin,
    text_origin,
    unknown_origin,
    with_origin,
)

# A small JSON value: numbers and the states of children.
State: TypeAlias = Any

# Large enough to make the cost per Block negligible, small enough to stay in the CPU cache.
_BLOCK_BYTES: Final = 1 << 20
# A Block of large elements has some rows too, because between two Blocks the cache forgets what Python needs.
_LARGE_ROWS: Final = 4
_LARGE_BYTES: Final = 1 << 22
# With many columns, the cost for each of them counts: a call takes as long as the work on some thousand numbers.
_COLUMN_BYTES: Final = 1 << 15
_SLOW_SECONDS: Final = 0.5  # Blocks that take longer do not grow


class Operator(ABC):
    """One step of a running plan, with its own position.

    Every operator obeys these rules:

    - The position counts the elements that `read` has returned, never those it has read ahead.
    - When an element fails, `read` raises its error and the position moves past it. The next `read`
      returns the elements after it.
    - If elements precede a failed one, `read` returns these first, and the next `read` raises.
    - An error that no element caused, such as a process that cannot be started, does not move the position.
    """

    calls_nothing: ClassVar[bool] = False  # no code that could notice how far its children are read

    @property
    def reads_freely(self) -> bool:
        """True if reading ahead is unobservable: elements have positions, functions are pure and compiled."""
        return False

    @property
    def hides_reads(self) -> bool:
        """True if reading ahead is unobservable now. Unlike `reads_freely`, it may change: a cache becomes complete."""
        below = (child.hides_reads for child in self.children())
        return self.reads_freely or (self.calls_nothing and all(below))

    @abstractmethod
    def read(self, most: int) -> Block | None:
        """Return the next elements, at least one and at most `most`; None at the end."""

    @abstractmethod
    def state(self) -> State:
        """Return the position after the last element returned, for `restore`."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Restore a position that `state` returned, here or on another operator of the same plan."""

    def seek(self, count: int) -> None:
        """Move from the start to the position after `count` elements, including those that fail."""
        while count > 0:
            try:
                block = self.read(count)
            except Exception:  # noqa: BLE001 - the element was reported before the position was saved
                count -= 1
                continue
            if block is None:
                return
            count -= block.length

    def rewound(self, count: int) -> State | None:  # noqa: ARG002 - most operators do not know
        """Return the position `count` elements ago; None if it is known only by reading again.

        The last `read` must have returned these elements.
        """
        return None

    def provenance(self, count: int) -> Provenance:  # noqa: ARG002 - most operators do not know
        """Return a function that looks up the file row behind each of the last `count` elements.

        The last `read` must have returned all of them.
        """
        return unknown_origin

    def fill(self) -> tuple[int, int]:
        """Return how many elements its buffer holds, and its size. Only buffers define it; others have (0, 0)."""
        return 0, 0

    def close(self) -> None:
        """Stop the threads of this operator and close its children. It is not read again."""
        for child in self.children():
            child.close()

    def children(self) -> "tuple[Operator, ...]":
        """Return the operators that this one reads from; `close` closes them."""
        return ()


@final
class Ended(Operator):
    """Replaces an operator that reached its end, so that its files, threads and generators can be freed.

    Args:
        state: The position at the end.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def read(self, most: int) -> Block | None:  # noqa: ARG002 - there is nothing to read
        return None

    def state(self) -> State:
        return self._state

    def restore(self, state: State) -> None:
        self._state = state


@final
class PushbackReader:
    """Reads from an operator, and takes back elements that were not used. Positions can lie inside a Block.

    Attributes:
        child: The operator.
        number: The index of the next element: how many were used, including those that failed.
    """

    def __init__(self, child: Operator) -> None:
        self.child = child
        self.number = 0
        self._block: Block | None = None
        self._before: State = None
        self._used = 0
        self._error: Exception | None = None
        # The position, if it was asked for since the last read. Otherwise each of n steps that read one another would ask
        # all those below it, at every read.
        self._position: list[Any] | None = None

    @property
    def is_used_up(self) -> bool:
        """True if the next read must read the operator."""
        return self._block is None or self._used == self._block.length

    def read(self, most: int) -> Block | None:
        """Return the next elements, starting with those given back."""
        if self._error is not None:
            error, self._error = self._error, None
            self._use(1)
            raise error from error.__cause__
        if self.is_used_up:
            self._refill(most)
        if self._block is None:
            return None
        rows = self._block.cut(self._used, self._used + most)
        self._use(rows.length)
        return rows

    def _refill(self, most: int) -> None:
        self._before = self.child.state() if self._position is None else self._position[0]
        self._position = None
        try:
            self._block = self.child.read(most)
        except Exception:
            self.number += 1
            raise
        self._used = 0

    def _use(self, count: int) -> None:
        self._position = None
        self._used += count
        self.number += count

    def give_back(self, count: int) -> None:
        """Take back the last `count` elements of the last read."""
        self._use(-count)

    def give_back_failed(self, count: int, error: Exception) -> None:
        """Take back the last `count` elements, the first of which failed: the next read raises its error.

        Until then the position stays before that element, so that the elements before it can be delivered.
        """
        self.give_back(count)
        place = merged_origin(self.provenance(0)(0), text_origin(self._block, self._used, error))
        self._error = with_origin(error, place)

    def provenance(self, count: int) -> Provenance:
        """Look up the last `count` elements that were used, and those after them. See `Operator.provenance`."""
        unused = 0 if self._block is None else self._block.length - self._used
        return self.child.provenance(count + unused)

    def seek(self, count: int) -> None:
        """Move from the start to the position after `count` elements."""
        self.child.seek(count)
        self._block, self._used, self._error, self._position = None, 0, None, None
        self.number = count

    def state(self) -> State:
        """Return the position after the last element used."""
        if self.is_used_up:
            self._position = self._position or [self.child.state(), 0, self.number]
            return self._position
        return self.rewound(0) or [self._before, self._used, self.number]

    def rewound(self, count: int) -> State | None:
        """Return the position `count` elements ago; None if it is known only by reading again."""
        unused = 0 if self._block is None else self._block.length - self._used
        back = self.child.rewound(unused + count)
        return None if back is None else [back, 0, self.number - count]

    def restore(self, state: State) -> None:
        """Restore a position that `state` returned."""
        before, used, number = state
        self.child.restore(before)
        self._block, self._used, self._error, self._position = None, 0, None, None
        for _ in read_full(self, used):
            pass
        self.number, self._position = number, None


@final
class ProvenanceReader:
    """Reads from an operator several times, and can look up the provenance of everything it read."""

    def __init__(self, child: Operator) -> None:
        self._child = child
        self._reads: list[tuple[int, Provenance]] = []

    def read(self, most: int) -> Block | None:
        """Return the next elements."""
        block = self._child.read(most)
        if block is not None:
            self._reads.append((block.length, self._child.provenance(block.length)))
        return block

    def forget(self) -> None:
        """Forget all earlier reads."""
        self._reads = []

    def provenance(self) -> Provenance:
        """Return a function that looks up the elements read since `forget`."""
        reads = self._reads

        def found(index: int) -> RowOrigin | None:
            for length, provenance in reads:
                if index < length:
                    return provenance(index)
                index -= length
            return None

        return found


class PushbackOperator(Operator):
    """An operator whose position is that of its PushbackReader."""

    def __init__(self, child: Operator) -> None:
        self._feed = PushbackReader(child)

    def state(self) -> State:
        return self._feed.state()

    def restore(self, state: State) -> None:
        self._feed.restore(state)

    def children(self) -> tuple[Operator, ...]:
        return (self._feed.child,)


class Replayed(Operator):
    """An operator whose internal state cannot be saved. `restore` reads the child again from where it started.

    The state holds where the child started, and how many elements were returned and how many failed.
    """

    def __init__(self, child: Operator) -> None:
        self._child = child
        self._start: State = child.state()
        self._restart()

    def _restart(self) -> None:
        self._passed = 0
        self._failed = 0
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Reset to the state before the first read."""

    @abstractmethod
    def _next(self, most: int) -> Block | None:
        """Return the next elements; None at the end."""

    def read(self, most: int) -> Block | None:
        try:
            block = self._next(most)
        except Exception:
            self._failed += 1
            raise
        self._passed += 0 if block is None else block.length
        return block

    def state(self) -> State:
        return [self._start, self._passed, self._failed]

    def restore(self, state: State) -> None:
        self._start, passed, failed = state
        self._child.restore(self._start)
        self._restart()
        while self._passed < passed or self._failed < failed:
            try:
                ended = self.read(max(1, passed - self._passed)) is None
            except Exception:
                ended = False
                if self._failed > failed:
                    raise
            if ended:
                return

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


Source: TypeAlias = Operator | PushbackReader | ProvenanceReader


def read_before_error(source: Source, count: int) -> tuple[list[Block], list[Exception]]:
    """Read up to `count` elements; return them as Blocks, with the error that stopped the read, if any.

    Elements before an error are delivered first, so a caller who catches the error misses none.
    """
    blocks: list[Block] = []
    try:
        for block in read_full(source, count):
            blocks.append(block)  # noqa: PERF402 - keeps the Blocks read before the error
    except Exception as error:  # noqa: BLE001 - the caller raises it later
        return blocks, [error]
    return blocks, []


def all_blocks(source: Operator) -> Iterator[Block]:
    """Yield all elements in Blocks that grow from one element, unless a Block takes long."""
    ask = 1
    while True:
        started = time.monotonic()
        block = source.read(ask)
        if block is None:
            return
        is_slow = time.monotonic() - started > _SLOW_SECONDS
        yield block
        ask = ask if is_slow else min(2 * ask, rows_per_block(block))


def rows_per_block(block: Block) -> int:
    """Return how many elements like those of `block` to read at a time."""
    each = max(1, block.bytes_per_row)
    most = max(
        _BLOCK_BYTES, _COLUMN_BYTES * len(block.columns), min(_LARGE_ROWS * each, _LARGE_BYTES)
    )
    return max(1, most // each)


def read_full(source: Source, count: int) -> Iterator[Block]:
    """Yield Blocks until they hold `count` elements or the source ends."""
    while count > 0:
        block = source.read(count)
        if block is None:
            return
        count -= block.length
        yield block


@final
class FailedRow(Exception):  # noqa: N818 - not an error itself: it carries the user's exception
    """Raised if one row of a Block cannot be computed or read.

    Attributes:
        index: The index of the row.
        before: The results of the rows before it; None if it was the first.
        error: The user's exception, with its note.
        damaged: How many rows, from this one on, are lost to the same damage in a file, reported once; else 0.
    """

    def __init__(
        self, index: int, before: Block | None, error: Exception, *, damaged: int = 0
    ) -> None:
        super().__init__(index)
        self.index = index
        self.before = before
        self.error = error
        self.damaged = damaged
