"""Operators that look at elements on their way and pass on those that hold."""

import logging
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Column, cut_up
from evenfeed.core.errors import FailedPreconditionError
from evenfeed.core.specs import INFINITE
from evenfeed.plan.checking import AssertCardinality, IgnoreErrors
from evenfeed.runtime.operator import Operator, Replayed, State
from evenfeed.runtime.provenance import Provenance

_logger: Final = logging.getLogger("evenfeed")


@final
class DropSeen(Replayed):
    """Passes on elements that did not come before.

    What came is not part of the state: `restore` starts over and reads up to the position again.
    """

    def _begin(self) -> None:
        self._seen: set[Any] = set()

    def _next(self, most: int) -> Block | None:
        while (block := self._child.read(most)) is not None:
            rows = self._new(block.columns[0])
            if rows:
                return block.gather(np.array(rows, np.int64))
        return None

    def _new(self, column: Column) -> list[int]:
        rows: list[int] = []
        for row, key in enumerate(_keys(column)):
            if key not in self._seen:
                self._seen.add(key)
                rows.append(row)
        return rows


def _keys(column: Column) -> list[Any]:
    column = cut_up(column)
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return column.tolist()
    rows = [] if column is None else list(column)
    return [(row.shape, *row.ravel().tolist()) for row in map(np.asarray, rows)]


@final
class DropFailed(Operator):
    """Goes on behind elements that fail, and counts them."""

    def __init__(self, child: Operator, node: IgnoreErrors) -> None:
        self._child = child
        self._node = node
        self._count = 0
        self._row = 0  # how many failed one behind the other
        self._said = False

    def read(self, most: int) -> Block | None:
        """Return the next elements that do not fail."""
        while True:
            before = self._child.state()
            try:
                block = self._child.read(most)
            except Exception as error:
                if self._child.state() == before or self._are_enough():
                    raise  # where the state is the same it would fail without end
                self._note(error)
                continue
            self._row = 0
            if block is None:
                self._say_how_many()
            return block

    def provenance(self, count: int) -> Provenance:
        """Return where the same elements of the child come from."""
        return self._child.provenance(count)

    def _are_enough(self) -> bool:
        """Tell whether one more error is too many."""
        total, row = self._node.max_total, self._node.max_consecutive
        return (total is not None and self._count >= total) or (
            row is not None and self._row >= row
        )

    def _note(self, error: Exception) -> None:
        self._count += 1
        self._row += 1
        skipped = self._node.ignored.add(error)
        if self._node.log_warning:
            _logger.warning("ignored an element that failed: %s", skipped.reason)

    def _say_how_many(self) -> None:
        if self._count and not self._said:
            self._said = True
            _logger.info("ignore_errors at %s left out %d", self._node.origin, self._count)

    def state(self) -> State:
        """Return how many failed, in all and at the end, and the child's position."""
        return [self._count, self._row, self._child.state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._count, self._row, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)


@final
class CountPromised(Operator):
    """Raises where there are more or fewer elements than promised, once all that were are out.

    It raises once and has then ended, so that one who ignores errors does not wait for ever.
    """

    def __init__(self, child: Operator, node: AssertCardinality) -> None:
        self._child = child
        self._node = node
        self._passed = 0
        self._ended = False

    def read(self, most: int) -> Block | None:
        """Return the next elements."""
        if self._ended:
            return None
        promised = self._node.count
        left = most if promised == INFINITE else min(most, promised - self._passed)
        block = self._child.read(max(1, left))
        self._ended = block is None or left == 0
        if block is None and (promised == INFINITE or self._passed < promised):
            raise self._broken(f"there were {self._passed}")
        if block is not None and left == 0:
            raise self._broken("there are more")
        self._passed += 0 if block is None else block.length
        return block

    def _broken(self, found: str) -> FailedPreconditionError:
        promised = "no end" if self._node.count == INFINITE else f"{self._node.count} elements"
        return FailedPreconditionError(
            f"The dataset was asserted to have {promised}, but {found}.",
            fix="assert the number that it has, or none.",
            origin=self._node.origin,
        )

    def state(self) -> State:
        """Return how many were passed on, whether that was all, and the child's position."""
        return [self._passed, self._ended, self._child.state()]

    def restore(self, state: State) -> None:
        """Take up a position."""
        self._passed, self._ended, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._child,)
