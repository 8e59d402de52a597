"""The contract of all operators: read, and say and take up a position."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, final

from evenfeed.core.block import Block
from evenfeed.runtime.provenance import Provenance, RowOrigin, completed, nowhere, of_text, placed

# What JSON can hold, small: numbers and the states of children.
State: TypeAlias = Any

# Enough that the work per Block is small against the work per element, little enough to stay in cache.
_BLOCK_BYTES: Final = 1 << 20


class Operator(ABC):
    """One step of a running plan, with its own position.

    A position counts what `read` has returned, never what was read ahead. An operator whose `read`
    raises has passed the element that failed, and goes on behind it. One that meets an error when it
    has elements already returns these, and raises at the next `read`.
    """

    @property
    def reads_freely(self) -> bool:
        """Whether nobody sees how far it was read: elements have positions, functions are pure and compiled."""
        return False

    @abstractmethod
    def read(self, most: int) -> Block | None:
        """Return the next elements, at least one and at most `most`; None at the end."""

    @abstractmethod
    def state(self) -> State:
        """Return the position behind all that was returned, for `restore`."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Take up a position that `state` of an operator of the same plan returned."""

    def provenance(self, count: int) -> Provenance:  # noqa: ARG002 - only some know
        """Return what says where the last `count` elements come from, all of which the last `read` returned."""
        return nowhere

    def close(self) -> None:
        """Stop the threads that run for this operator; it is not read any more."""
        for child in self.children():
            child.close()

    def children(self) -> "tuple[Operator, ...]":
        """Return the operators that this one reads from."""
        return ()


@final
class Ended(Operator):
    """Stands at the end for an operator that is let go of, with its files, threads and generators.

    Args:
        state: The position at the end.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def read(self, most: int) -> Block | None:  # noqa: ARG002 - there is nothing, however much is asked for
        """Return None."""
        return None

    def state(self) -> State:
        """Return the position at the end."""
        return self._state

    def restore(self, state: State) -> None:
        """Take up a position, which has no elements behind it either."""
        self._state = state


@final
class PushbackReader:
    """Reads from an operator and takes back what was not used, with a position in between.

    Attributes:
        child: The operator.
        number: How many elements were used, those that failed too: the number of the next.
    """

    def __init__(self, child: Operator) -> None:
        self.child = child
        self.number = 0
        self._block: Block | None = None
        self._before: State = None
        self._used = 0
        self._error: Exception | None = None

    @property
    def is_used_up(self) -> bool:
        """Whether the next read is one of the operator."""
        return self._block is None or self._used == self._block.length

    def read(self, most: int) -> Block | None:
        """Return the next elements, first those that were given back."""
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
        self._before = self.child.state()
        try:
            self._block = self.child.read(most)
        except Exception:
            self.number += 1
            raise
        self._used = 0

    def _use(self, count: int) -> None:
        self._used += count
        self.number += count

    def give_back(self, count: int) -> None:
        """Take back the last `count` elements of what was read last."""
        self._use(-count)

    def refuse(self, count: int, error: Exception) -> None:
        """Take back the last `count` elements, the first of which is an error: the next read raises it.

        Until then the position lies before that element, so that what came before can be delivered.
        """
        self.give_back(count)
        place = completed(self.provenance(0)(0), of_text(self._block, self._used, error))
        self._error = placed(error, place)

    def provenance(self, count: int) -> Provenance:
        """Return what says where the last `count` elements that were used come from, and those behind them."""
        unused = 0 if self._block is None else self._block.length - self._used
        return self.child.provenance(count + unused)

    def state(self) -> State:
        """Return the position behind the last element used."""
        if self.is_used_up:
            return [self.child.state(), 0, self.number]
        return [self._before, self._used, self.number]

    def restore(self, state: State) -> None:
        """Take up a position that `state` returned."""
        before, used, number = state
        self.child.restore(before)
        self._block, self._used, self._error = None, 0, None
        for _ in read_full(self, used):
            pass
        self.number = number


@final
class Watched:
    """Reads from an operator several times, and knows where all that was read comes from."""

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
        """Begin to count anew."""
        self._reads = []

    def provenance(self) -> Provenance:
        """Return what says where the elements come from that were read since."""
        reads = self._reads

        def found(index: int) -> RowOrigin | None:
            for length, provenance in reads:
                if index < length:
                    return provenance(index)
                index -= length
            return None

        return found


class Fed(Operator):
    """An operator whose position is that of what it reads from."""

    def __init__(self, child: Operator) -> None:
        self._feed = PushbackReader(child)

    def state(self) -> State:
        """Return the position behind the last element that was used."""
        return self._feed.state()

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._feed.restore(state)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._feed.child,)


class Replayed(Operator):
    """An operator that holds what has no position: to restore it, its child is read once more."""

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
        """Hold nothing, as before the first read."""

    @abstractmethod
    def _next(self, most: int) -> Block | None:
        """Return the next elements; None at the end."""

    def read(self, most: int) -> Block | None:
        """Return the next elements."""
        try:
            block = self._next(most)
        except Exception:
            self._failed += 1
            raise
        self._passed += 0 if block is None else block.length
        return block

    def state(self) -> State:
        """Return where the child began, and how many elements left and how many failed."""
        return [self._start, self._passed, self._failed]

    def restore(self, state: State) -> None:
        """Begin anew, and pass what was passed."""
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
        """Return the child."""
        return (self._child,)


Source: TypeAlias = Operator | PushbackReader | Watched


def read_before_error(source: Source, count: int) -> tuple[list[Block], list[Exception]]:
    """Return blocks of `count` elements or less, and the error that kept more from coming.

    What came before an error is delivered first: a user who catches it has all the rest.
    """
    blocks: list[Block] = []
    try:
        for block in read_full(source, count):
            blocks.append(block)  # noqa: PERF402 - what came before the error counts
    except Exception as error:  # noqa: BLE001 - it is raised when its turn comes
        return blocks, [error]
    return blocks, []


def all_blocks(source: Operator) -> Iterator[Block]:
    """Yield all elements, in blocks that grow from one element on."""
    ask = 1
    while True:
        block = source.read(ask)
        if block is None:
            return
        yield block
        ask = min(2 * ask, most_rows(block))


def most_rows(block: Block) -> int:
    """Return how many elements like these to read at a time."""
    return max(1, _BLOCK_BYTES // max(1, block.bytes_per_row))


def read_full(source: Source, count: int) -> Iterator[Block]:
    """Yield blocks until they hold `count` elements or the source ends."""
    while count > 0:
        block = source.read(count)
        if block is None:
            return
        count -= block.length
        yield block
