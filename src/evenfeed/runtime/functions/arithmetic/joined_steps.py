"""Joins the NumPy calls of several functions, each of which gets what the one before returns.

All calls keep their order and dtypes, so the results are the same to the last bit. But the values in between need no
columns of their own, and are computed in pieces that stay in the CPU cache.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.handles import Handle
from evenfeed.runtime.functions.arithmetic.column_program import ColumnArithmetic, ColumnBody, Kind
from evenfeed.runtime.functions.arithmetic.column_steps import ColumnStep, used


@final
class JoinedSteps:
    """The calls of functions in a row.

    Args:
        kinds: The shapes and dtypes of the columns of a Block; None for those that NumPy cannot compute with.

    Attributes:
        parts: Where each column comes from after the last function: a slot, a column that is passed through (a Handle),
            a constant, or None.
    """

    def __init__(self, kinds: Sequence[Kind | None]) -> None:
        numeric = [index for index, kind in enumerate(kinds) if kind is not None]
        self._slots = {index: slot for slot, index in enumerate(numeric)}
        self._given = [kind for kind in kinds if kind is not None]
        self._values: list[Any] = [None] * len(self._given)
        self._by_row = set(range(len(self._given)))
        self._kinds: dict[int, Kind] = {}
        self._steps: list[ColumnStep] = []
        self.parts: list[Any] = [Handle(index) for index in range(len(kinds))]
        self._results: dict[int, Kind] = {}

    def add(
        self, numeric: Sequence[int], arithmetic: ColumnArithmetic | None, parts: Sequence[Any]
    ) -> None:
        """Add a function.

        Args:
            numeric: The columns that it computes with.
            arithmetic: Its calls; None if it computes nothing.
            parts: What it returns for each column: a Handle, a constant, None, or else what it computes next.
        """
        computed = iter([] if arithmetic is None else self._added(numeric, arithmetic.body))
        self.parts = [
            self.parts[part.index]
            if isinstance(part, Handle)
            else part
            if part is None or isinstance(part, np.ndarray)
            else next(computed)
            for part in parts
        ]

    def joined(self) -> ColumnArithmetic | None:
        """Return the calls of all functions; None if they only arrange columns."""
        results = [(part, self._results[part]) for part in self.parts if isinstance(part, int)]
        if not results:
            return None
        steps = used(self._steps, [slot for slot, _ in results])
        by_row = frozenset(self._by_row)
        body = ColumnBody(self._values, by_row, self._kinds, steps, results, self._given)
        return body.placed()

    def _added(self, numeric: Sequence[int], body: ColumnBody) -> list[int]:
        """Add the calls of a function; return the slots of its results."""
        slots = {number: self._column(self.parts[index]) for number, index in enumerate(numeric)}
        for number in range(len(slots), len(body.values)):
            slots[number] = self._slot(body.values[number], by_row=number in body.by_row)
        self._kinds |= {slots[number]: kind for number, kind in body.kinds.items()}
        self._steps += [
            replace(step, sources=[slots[one] for one in step.sources], target=slots[step.target])
            for step in body.steps
        ]
        self._results |= {slots[number]: kind for number, kind in body.results}
        return [slots[number] for number, _ in body.results]

    def _column(self, part: Any) -> int:
        """Return the slot of a column that a function computes with; a value that all rows share is repeated."""
        if isinstance(part, Handle):
            return self._slots[part.index]
        slot = part if isinstance(part, int) else self._slot(part)
        if slot in self._by_row:
            return slot
        shape = self._results[slot][0] if isinstance(part, int) else part.shape
        found = self._slot(by_row=True)
        self._steps.append(ColumnStep(partial(_repeated, shape), [slot, 0], found))
        return found

    def _slot(self, value: Any = None, *, by_row: bool = False) -> int:
        self._values.append(value)
        if by_row:
            self._by_row.add(len(self._values) - 1)
        return len(self._values) - 1


def _repeated(shape: tuple[int, ...], value: Array, column: Array) -> Array:
    """Return a value once for each row of a column."""
    return np.broadcast_to(value, (len(column), *shape))
