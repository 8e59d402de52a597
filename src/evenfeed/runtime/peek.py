"""The first elements of a plan, read before anybody iterates over it."""

from collections import deque
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.conversion import Array
from evenfeed.core.iteration import Owner
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.node import Node
from evenfeed.runtime.operator import Operator, State
from evenfeed.runtime.run import Build, Run, next_pass

# A function that fails at so many elements one after the other is not tried on more.
_MOST: Final = 16


@final
class Beginning:
    """Reads the first elements of a plan, to see what a function makes of them, and keeps them.

    They are for the first pass over the plan: a source that can be read only once, or slowly, is not
    read again for them. Later passes begin at the source, as they would have.
    """

    def __init__(self, plan: Node, build: Build) -> None:
        self._plan = plan
        self._build = build
        self._kept: _Begun | None = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Beginning, (self._plan, self._build)

    def __call__(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the numbers and the parts of the first elements, one by one; those that fail are passed over."""
        begun = self._swapped(None) or _Begun(self._plan, self._build)
        errors: list[Exception] = []
        whole = False
        try:
            for number in range(_MOST):
                whole = False  # an interrupted read has lost what it took
                found = begun.look(number)
                whole = True
                if isinstance(found, Exception):
                    errors.append(found)
                elif found is not None:
                    yield number, [_copied(part) for part in found.row(0)]
                else:
                    break
        finally:
            if whole:
                self._keep(begun)
            else:
                begun.close()
        if len(errors) == begun.count > 0:
            raise errors[0]

    def take(self, plan: Node, run: Run, epoch: int) -> Operator | None:
        """Return the operator that was begun, if it is that of this plan in this pass, to go on with."""
        if plan is not self._plan or epoch:
            return None
        begun = self._swapped(None)
        if begun is None:
            return None
        if run.agrees_with(begun.run, plan):
            run.adopt(begun.run)
            return begun
        begun.close()
        return None

    def _keep(self, begun: "_Begun") -> None:
        # What writes files would keep others from writing them.
        if any(map(_writes, self._plan.walk())):
            begun.close()
        else:
            self._swapped(begun)

    def _swapped(self, begun: "_Begun | None") -> "_Begun | None":
        with self._lock:
            old, self._kept = self._kept, begun
        # In a fork, those that the parent has begun wait for its threads.
        return old if old is None or old.owner.is_here else None


def _writes(node: Node) -> bool:
    return isinstance(node, Snapshot) or (isinstance(node, Cache) and node.filename != "")


@final
class BehindState:
    """The first elements of a plan behind a state: what a function that folds is given first."""

    def __init__(self, state: Sequence[Array], elements: Beginning) -> None:
        self._state = state
        self._elements = elements

    def __call__(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the number of an element, and the parts of the state and of the element."""
        return ((n, [*map(_copied, self._state), *parts]) for n, parts in self._elements())

    def take(self, plan: Node, run: Run, epoch: int) -> Operator | None:
        """Return the operator that the elements were read from, to go on with."""
        return self._elements.take(plan, run, epoch)


def _copied(part: Any) -> Any:
    # A function that writes into what it is given must not do so twice.
    return np.array(part) if type(part) is np.ndarray else part


@final
class _Begun(Operator):
    """An operator of which some elements were read one by one; they come once more.

    Its states are those of the operator itself, so that they can be taken up without a beginning.
    """

    def __init__(self, plan: Node, build: Build) -> None:
        self.owner = Owner()
        self.run = Run(plan, next_pass)
        self._operator = build(plan, self.run, 0)
        self._items: deque[tuple[State, Block | Exception]] = deque()

    @property
    def count(self) -> int:
        """How many elements were read, those that failed too."""
        return len(self._items)

    def look(self, number: int) -> Block | Exception | None:
        """Return an element, or what it failed with; None behind the last."""
        if number < len(self._items):
            return self._items[number][1]
        before = self._operator.state()
        try:
            found: Block | Exception | None = self._operator.read(1)
        except Exception as error:
            if self._operator.state() == before:  # it would fail without end
                raise
            found = error
        if found is not None:
            self._items.append((before, found))
        return found

    def read(self, most: int) -> Block | None:
        """Return what was read, and then more."""
        if not self._items:
            return self._operator.read(most)
        _, found = self._items.popleft()
        if isinstance(found, Exception):
            raise found
        return found

    def state(self) -> State:
        """Return the position behind what came once more."""
        return self._items[0][0] if self._items else self._operator.state()

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._items.clear()
        self._operator.restore(state)

    def children(self) -> tuple[Operator, ...]:
        """Return the operator itself."""
        return (self._operator,)
