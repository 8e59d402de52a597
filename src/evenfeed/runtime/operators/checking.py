"""Operators for unique, ignore_errors and assert_cardinality."""

import logging
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Column, cut_up
from evenfeed.core.errors import FailedPreconditionError
from evenfeed.core.specs import INFINITE
from evenfeed.plan.checking import AssertCardinality, IgnoreErrors, Unique
from evenfeed.runtime.live_state import ignored_by
from evenfeed.runtime.operator import Operator, Replayed, State
from evenfeed.runtime.provenance import Provenance
from evenfeed.runtime.step import Step, runs

_logger: Final = logging.getLogger("evenfeed")


@runs(Unique)
def _drop_seen(step: Step[Unique]) -> Operator:
    return DropSeen(step.child)


@final
class DropSeen(Replayed):
    """Passes on only elements that did not occur before.

    The elements seen are not part of the state: `restore` starts over and reads up to the position again.
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


@runs(IgnoreErrors)
def _drop_failed(step: Step[IgnoreErrors]) -> Operator:
    return DropFailed(step.child, step.node)


@final
class DropFailed(Operator):
    """Skips elements that fail, and counts them."""

    def __init__(self, child: Operator, node: IgnoreErrors) -> None:
        self._child = child
        self._node = node
        self._count = 0
        self._consecutive = 0
        self._is_logged = False
        self._position: State = None  # if it was asked for since the last read

    def read(self, most: int) -> Block | None:
        while True:
            before = self._child.state() if self._position is None else self._position[-1]
            self._position = None
            try:
                block = self._child.read(most)
            except Exception as error:
                # If the position has not moved, every read would fail.
                if self._child.state() == before or self._is_limit_reached():
                    raise
                self._note(error)
                continue
            self._consecutive = 0
            if block is None:
                self._log_total()
            return block

    def provenance(self, count: int) -> Provenance:
        return self._child.provenance(count)

    def _is_limit_reached(self) -> bool:
        """Return True if one more error exceeds a limit."""
        total, consecutive = self._node.max_total, self._node.max_consecutive
        return (total is not None and self._count >= total) or (
            consecutive is not None and self._consecutive >= consecutive
        )

    def _note(self, error: Exception) -> None:
        self._count += 1
        self._consecutive += 1
        skipped = ignored_by(self._node).add(error)
        if self._node.log_warning:
            _logger.warning("ignore_errors skipped an element: %s", skipped.reason)

    def _log_total(self) -> None:
        if self._count and not self._is_logged:
            self._is_logged = True
            _logger.info("ignore_errors at %s skipped %d elements", self._node.origin, self._count)

    def state(self) -> State:
        if self._position is None:
            self._position = [self._count, self._consecutive, self._child.state()]
        return self._position

    def restore(self, state: State) -> None:
        self._count, self._consecutive, inner = state
        self._position = None
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


@runs(AssertCardinality)
def _count_promised(step: Step[AssertCardinality]) -> Operator:
    return CountPromised(step.child, step.node)


@final
class CountPromised(Operator):
    """Raises if there are more or fewer elements than asserted, after returning all that were asserted.

    It raises once and then ends, so that ignore_errors above it terminates.
    """

    calls_nothing = True

    def __init__(self, child: Operator, node: AssertCardinality) -> None:
        self._child = child
        self._node = node
        self._passed = 0
        self._ended = False

    def read(self, most: int) -> Block | None:
        if self._ended:
            return None
        promised = self._node.count
        left = most if promised == INFINITE else min(most, promised - self._passed)
        block = self._child.read(max(1, left))
        self._ended = block is None or left == 0
        if block is None and (promised == INFINITE or self._passed < promised):
            raise self._broken(f"it has {self._passed}")
        if block is not None and left == 0:
            raise self._broken("it has more")
        self._passed += 0 if block is None else block.length
        return block

    def _broken(self, found: str) -> FailedPreconditionError:
        promised = "infinitely many" if self._node.count == INFINITE else str(self._node.count)
        return FailedPreconditionError(
            f"The dataset was asserted to have {promised} elements, but {found}.",
            fix="pass the actual number of elements to assert_cardinality, or remove it.",
            origin=self._node.origin,
        )

    def state(self) -> State:
        return [self._passed, self._ended, self._child.state()]

    def restore(self, state: State) -> None:
        self._passed, self._ended, inner = state
        self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)
