"""Processes several elements at a time, ahead of the reader."""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Protocol, final

from evenfeed.core.block import Block, Outcome, concatenated
from evenfeed.core.concurrency.waiting import Bell, Pending
from evenfeed.plan.elementwise import Map
from evenfeed.plan.node import Node
from evenfeed.plan.options import options_of
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import Operator, State, read_full
from evenfeed.runtime.provenance import (
    Provenance,
    RowOrigin,
    merged_origin,
    text_origin,
    unknown_origin,
    with_origin,
)
from evenfeed.runtime.run import Run

# The longest wait in seconds, whatever goes wrong.
_WAIT: Final = 0.05
# With a result ready for delivery, a slow child is not read for longer than this.
_PATIENCE: Final = 0.01


class Work(Protocol):
    """A run of elements that is processed elsewhere, such as a Pending list of outcomes."""

    def done(self) -> bool:
        """Return True if there are outcomes to deliver, or the work was cancelled."""
        ...

    def cancelled(self) -> bool:
        """Return True if the work was cancelled before it started."""
        ...

    def cancel(self) -> Any:
        """Process no further elements."""
        ...

    def result(self) -> list[Outcome]:
        """Return the outcomes so far that are not delivered. The caller removes what it delivers."""
        ...

    def exception(self) -> BaseException | None:
        """Return the error, if no element is to blame for it."""
        ...

    def when_done(self, call: Callable[[], object]) -> None:
        """Run `call` when there are outcomes."""
        ...


@final
@dataclass(slots=True)
class _Call:
    """A run of elements being processed.

    Attributes:
        number: The index of its first element that is not delivered.
        before: The position of the read that it came from.
        row: The row of that element within the read.
        block: The elements; None if the child failed instead.
        left: How many of them are not delivered.
        result: Their outcomes.
        provenance: Looks up the origin of a row.
    """

    number: int
    before: State
    row: int
    block: Block | None
    left: int
    result: Work
    provenance: Provenance = unknown_origin


class WorkAhead(Operator):
    """Reads elements and has them processed elsewhere, a few at a time.

    The state is the position of the first element not delivered, and which elements after it were delivered early.

    Args:
        child: The operator to read from.
        function: The function that processes elements, named in messages.
        in_order: Whether a result waits for the results of earlier elements.

    Attributes:
        asked: How many elements the consumer is waiting for.
    """

    def __init__(self, child: Operator, function: RowFunction, *, in_order: bool) -> None:
        self.asked = 0
        self._child = child
        self.function = function
        self._in_order = in_order
        self._calls: deque[_Call] = deque()
        self._next = 0  # the index of the next element to read
        self._at_work = 0
        self._done = Bell()  # rings when a call is done
        self._early: set[int] = set()  # the elements delivered before an earlier one
        self._ended = False
        self._failed = False

    @abstractmethod
    def start(self, block: Block, number: int) -> Work:
        """Start processing a few elements. If the result itself raises, no element is to blame."""

    @property
    @abstractmethod
    def ahead(self) -> int:
        """How many elements to read ahead of delivery."""

    @property
    @abstractmethod
    def together(self) -> int:
        """The largest number of elements to start in one call."""

    def hurry(self, works: Iterable[Work]) -> None:
        """Do more for runs that have been waited for in vain."""

    def read(self, most: int) -> Block | None:
        done: list[Block] = []
        self.asked = most
        self._try_again()
        self.begin()
        while self._calls and most > 0:
            call = self._turn(patient=not done)
            if call is None:
                break
            outcome = self._result(call)[0]
            if not isinstance(outcome, Block):
                if done:
                    break  # raised by the next read, after the elements before it
                raised = with_origin(outcome, _place(call, outcome))
                self._deliver(call, 1)
                raise raised from raised.__cause__
            rows = outcome.cut(0, most)
            most -= rows.length
            self.asked = most
            self._deliver(call, rows.length)
            done.append(rows)
            self.begin()
        return concatenated(done) if done else None

    def _turn(self, *, patient: bool) -> _Call | None:
        """Return the next call to deliver: the first, or any that is done; None if it would have to wait."""
        some = [self._calls[0]] if self._in_order else self._calls
        found = next((call for call in some if call.result.done()), None)
        if found is None and patient:
            self._wait(some)
            return self._turn(patient=patient)
        return found

    def _wait(self, some: Iterable[_Call]) -> None:
        try:
            while not any(call.result.done() for call in some):
                if not self._done.wait(_WAIT):
                    self.hurry([call.result for call in self._calls])
        except KeyboardInterrupt as stop:
            number, function = self._calls[0].number, self.function
            stop.add_note(
                f"while waiting for element {number} of {function.name}, asked for at {function.origin}"
            )
            raise

    def _result(self, call: _Call) -> list[Outcome]:
        """Return the outcomes of a call; if they are unknown, raise without moving the position."""
        if call.block is not None and call.result.cancelled():  # at exit
            call.result = self._started(call.block, call.number)
        try:
            return call.result.result()
        except Exception:
            self._failed = True
            raise

    def _try_again(self) -> None:
        """Restart calls that failed through no fault of their elements."""
        if self._failed:
            self._failed = False
            for call in self._calls:
                if call.block is not None and call.result.done() and call.result.exception():
                    call.result = self._started(call.block, call.number)

    def _deliver(self, call: _Call, count: int) -> None:
        outcomes = call.result.result()
        first = outcomes[0]
        if isinstance(first, Block) and count < first.length:
            outcomes[0] = first.cut(count, first.length)
        else:
            del outcomes[0]
        is_first = call is self._calls[0]
        if not is_first:
            self._early.update(range(call.number, call.number + count))
        call.number += count
        call.row += count
        call.left -= count
        self._at_work -= count
        if not call.left:
            self._calls.remove(call)
        if is_first and self._early:
            first_open = self._calls[0].number if self._calls else self._next
            self._early = {number for number in self._early if number > first_open}

    def split(self, work: Work, index: int) -> None:
        """Start the elements of a run from `index` on again, as a run of their own. The work on it ends before them."""
        place = next(place for place, call in enumerate(self._calls) if call.result is work)
        call = self._calls[place]
        assert call.block is not None
        delivered = call.block.length - call.left
        rest = call.block.cut(index, call.block.length)
        number, row = (start - delivered + index for start in (call.number, call.row))
        started = self._started(rest, number)
        apart = _Call(number, call.before, row, rest, rest.length, started, call.provenance)
        self._calls.insert(place + 1, apart)
        call.block, call.left = call.block.cut(0, index), index - delivered

    def fill(self) -> tuple[int, int]:
        return self._at_work, max(self._at_work, self.ahead)

    @property
    def is_idle(self) -> bool:
        """True if nothing is being processed or waits for delivery, and nothing was delivered early."""
        return not self._calls and not self._early

    @property
    def at_work(self) -> int:
        """How many elements were read and are not delivered."""
        return self._at_work

    @property
    def next_number(self) -> int:
        """The index of the next element to read."""
        return self._next

    def skip(self, count: int) -> None:
        """Count elements that were delivered as soon as they were read."""
        self._next += count

    def read_child(self, most: int) -> Block | None:
        """Read elements that are delivered at once. An element that fails is counted."""
        try:
            block = None if self._ended else self._child.read(most)
        except Exception:
            self._next += 1
            raise
        self._ended = block is None
        return block

    def begin(self) -> None:
        """Read and start elements until enough are being processed."""
        end = perf_counter() + _PATIENCE
        # Wait until a full call fits, or a consumer that reads a little at a time makes all calls small.
        while not self._ended and (free := self.ahead - self._at_work) >= self.together:
            before = self._child.state()
            try:
                block = self._child.read(free)
            except Exception as error:  # noqa: BLE001 - raised when its turn comes
                self.add_done(before, 0, None, [error])
                continue
            if block is None:
                self._ended = True
                return
            self.start_rows(before, block)
            if perf_counter() > end and self._calls and self._calls[0].result.done():
                return

    def add_done(self, before: State, row: int, block: Block | None, found: list[Outcome]) -> None:
        """Add elements that were processed already, or the error of the child in place of one."""
        done: Pending[list[Outcome]] = Pending()
        done.set_result(found)
        count = 1 if block is None else block.length
        provenance = self._child.provenance(count) if block else unknown_origin
        self._add(_Call(self._next, before, row, block, count, done, provenance), count)

    def start_rows(self, before: State, block: Block, row: int = 0) -> None:
        """Start the elements of a read, from a row on."""
        provenance = self._child.provenance(block.length)
        while row < block.length:
            if self._next in self._early:  # delivered before the state was taken
                self._next += 1
                row += 1
                continue
            count = self._run(min(self.together, block.length - row))
            part = block.cut(row, row + count)
            started = self._started(part, self._next)
            self._add(_Call(self._next, before, row, part, count, started, provenance), count)
            row += count

    def _started(self, block: Block, number: int) -> Work:
        started = self.start(block, number)
        started.when_done(self._done.ring)
        return started

    def _run(self, most: int) -> int:
        """Return how many of the next elements, at most `most`, were not delivered early."""
        if not self._early:
            return most
        return next((n for n in range(1, most) if self._next + n in self._early), most)

    def _add(self, call: _Call, count: int) -> None:
        self._calls.append(call)
        self._next += count
        self._at_work += count

    def state(self) -> State:
        if not self._calls:
            return [self._next, self._child.state(), 0, []]
        first = self._calls[0]
        return [first.number, first.before, first.row, sorted(self._early)]

    def restore(self, state: State) -> None:
        self.drop()
        self._ended = False
        self._next, before, row, early = state
        self._early = set(early)
        self._child.restore(before)
        for _ in read_full(self._child, row):
            pass

    def seek(self, count: int) -> None:
        self.drop()
        self._child.seek(count)
        self._ended, self._next, self._early = False, count, set()

    def drop(self) -> None:
        """Cancel everything that is being processed."""
        for call in self._calls:
            call.result.cancel()
        self._calls.clear()
        self._at_work = 0
        self._failed = False

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


def _place(call: _Call, error: BaseException) -> RowOrigin | None:
    """Return the origin of the call's next element, which failed."""
    index = 0 if call.block is None else call.block.length - call.left
    return merged_origin(call.provenance(call.row), text_origin(call.block, index, error))


def keeps_order(node: Map, run: Run) -> bool:
    """Return True if a result waits for those of earlier elements."""
    return node is not run.unordered


def unordered_map(plan: Node) -> Map | None:
    """Return the map of a plan whose results may overtake each other, for a reader that asks for single elements.

    Its order is not repeated after a state is restored. So no step above it may save a state from which it reads
    elements again: that would lose some and repeat others.
    """
    node = plan
    while node.facts.saves_at_delivery and node.facts.same_elements:
        node = node.children[0]
    # Batches ask for several elements at a time, so only the map itself may follow.
    if node.facts.saves_at_delivery:
        node = node.children[0]
    return node if isinstance(node, Map) and wants_no_order(node, plan) else None


def wants_no_order(node: Map, plan: Node) -> bool:
    """Return True if a map works ahead and need not keep its order: as the step says, or else the options."""
    function = node.function
    on_blocks = isinstance(function, RowFunction) and function.is_vectorised
    if not node.processes and (on_blocks or not node.facts.works_ahead):
        return False
    asked = node.deterministic
    return (options_of(plan).deterministic if asked is None else asked) is False
