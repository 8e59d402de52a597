"""Reads the first elements of a plan before any iterator does, to learn what a function returns.

`Beginning` keeps the elements, and `FirstCalls` the results, for the pass that follows.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.conversion import Array
from evenfeed.core.iteration import Owner
from evenfeed.live.watching import watching
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import made_by_function
from evenfeed.runtime.measuring.stage_meters import PlanMeter
from evenfeed.runtime.operator import FailedRow, Operator, State
from evenfeed.runtime.run import Build, FirstElements, Run, next_pass

# The most elements to try a function on, if it keeps failing.
_MOST: Final = 16


@final
class Beginning:
    """Reads the first elements of a plan, to see what a function returns for them, and keeps them.

    The first pass over the plan uses them, so that a source that is slow or can be read only once is not read again.
    Later passes start at the source as usual.
    """

    def __init__(self, plan: Node, build: Build) -> None:
        self._plan = plan
        self._build = build
        self._kept: _EarlyOperator | None = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Beginning, (self._plan, self._build)

    def __call__(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the indices and the parts of the first elements one by one, skipping those that fail."""
        early = self._swapped(None) or _EarlyOperator(self._plan, self._build)
        errors: list[Exception] = []
        is_intact = False
        try:
            for number in range(_MOST):
                is_intact = False  # an interrupted read has lost its elements
                found = early.peek(number)
                is_intact = True
                if isinstance(found, Exception):
                    errors.append(found)
                elif found is not None:
                    yield number, [_copied(part) for part in found.row(0)]
                else:
                    break
        finally:
            if is_intact:
                self._keep(early)
            else:
                early.close()
        if len(errors) == early.count > 0:
            raise errors[0]

    def take(self, plan: Node, run: Run, epoch: int) -> Operator | None:
        """Return the early operator if it fits this plan and pass, to continue it; None otherwise."""
        if plan is not self._plan or epoch:
            return None
        early = self._swapped(None)
        if early is None:
            return None
        if run.agrees_with(early.run, plan):
            run.adopt(early.run)
            meter = run.meter if early.run.meter is None else None
            return early if meter is None else meter.measured(plan, early)
        early.close()
        return None

    def _keep(self, early: "_EarlyOperator") -> None:
        # An operator that writes files would block other writers.
        if any(node.facts.writes_files for node in self._plan.walk()):
            early.close()
        else:
            self._swapped(early)

    def _swapped(self, early: "_EarlyOperator | None") -> "_EarlyOperator | None":
        with self._lock:
            old, self._kept = self._kept, early
        # In a forked child, the parent's operators would wait for threads that do not exist here.
        return old if old is None or old.owner.is_here else None


@final
class BehindState:
    """The first elements of a plan, each preceded by the initial state of a scan."""

    def __init__(self, state: Sequence[Array], elements: Beginning) -> None:
        self._state = state
        self._elements = elements

    def __call__(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the index of each element, and the parts of the state and of the element."""
        return ((n, [*map(_copied, self._state), *parts]) for n, parts in self._elements())

    def take(self, plan: Node, run: Run, epoch: int) -> Operator | None:
        """Return the early operator, as `Beginning.take` does."""
        return self._elements.take(plan, run, epoch)


def _copied(part: Any) -> Any:
    # A function may write into its arguments; each call needs fresh ones.
    return np.array(part) if type(part) is np.ndarray else part


@final
class _EarlyOperator(Operator):
    """An operator from which some elements were read one by one; it returns them again.

    Its states are those of the underlying operator, so they can be restored without the early elements.
    """

    def __init__(self, plan: Node, build: Build) -> None:
        self.owner = Owner()
        self.run = Run(plan, next_pass)
        self.run.meter = PlanMeter() if watching.is_on else None
        self._operator = build(plan, self.run, 0)
        self._items: deque[tuple[State, Block | Exception]] = deque()

    @property
    def reads_freely(self) -> bool:
        return self._operator.reads_freely

    @property
    def hides_reads(self) -> bool:
        return self._operator.hides_reads

    @property
    def count(self) -> int:
        """How many elements were read, including those that failed."""
        return len(self._items)

    def peek(self, number: int) -> Block | Exception | None:
        """Return an element, or the error it failed with; None after the last."""
        if number < len(self._items):
            return self._items[number][1]
        before = self._operator.state()
        try:
            found: Block | Exception | None = self._operator.read(1)
        except Exception as error:
            if self._operator.state() == before:  # every read would fail
                raise
            found = error
        if found is not None:
            self._items.append((before, found))
        return found

    def read(self, most: int) -> Block | None:
        if not self._items:
            return self._operator.read(most)
        _, found = self._items.popleft()
        if isinstance(found, Exception):
            raise found
        return found

    def state(self) -> State:
        return self._items[0][0] if self._items else self._operator.state()

    def restore(self, state: State) -> None:
        self._items.clear()
        self._operator.restore(state)

    def children(self) -> tuple[Operator, ...]:
        return (self._operator,)


# The parts of a result, or the exception that the function raised.
Result: TypeAlias = list[Any] | Exception


@final
class FirstCalls:
    """Calls a function with the first elements, and keeps the results for the pass that follows.

    So a function with side effects is called once per element.
    """

    def __init__(self, results: dict[int, Result] | None = None) -> None:
        self._results: dict[int, Result] = results or {}

    def __bool__(self) -> bool:
        return bool(self._results)

    def make(
        self, call: Callable[[list[Any], int], list[Any]], elements: FirstElements | None
    ) -> Iterator[Result]:
        """Yield the result of one element after another."""
        self._results = {}
        for number, parts in elements() if elements else ():
            try:
                with made_by_function():
                    found: Result = call(parts, number)
            except Exception as error:  # noqa: BLE001 - the caller decides
                found = error
            self._results[number] = found
            yield found

    def errors(self) -> list[Exception]:
        """Return the exceptions among the results."""
        return [found for found in self._results.values() if isinstance(found, Exception)]

    def handed_over(self) -> "FirstCalls":
        """Hand all results over to a pass; only one pass gets them."""
        results, self._results = self._results, {}
        return FirstCalls(results)

    def answering(
        self, call: Callable[[Any], Any], first: int | Positions, done: list[Any]
    ) -> Callable[[Any], Any]:
        """Return a function like `call` that knows these results, and raises FailedRow for an error among them.

        Args:
            call: Calls the function.
            first: The number of the first element, or the numbers of all.
            done: What was returned so far.
        """

        def recalled(element: Any) -> Any:
            known = self.take(first, len(done))
            if isinstance(known, Exception):
                raise FailedRow(len(done), None, known)
            return call(element) if known is None else known

        return recalled

    def take(self, first: int | Positions | None, index: int = 0) -> Result | None:
        """Remove and return the result of an element by its number; None if there is no such result."""
        return self._results.pop(first + index, None) if isinstance(first, int) else None
