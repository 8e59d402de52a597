"""The steps of a simple function, each a NumPy call, and how to take fewer of them.

JAX expands the remainder and the quotient of integers into seven operations or more. If the divisor is constant, one
to three NumPy calls give the same bits.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType


@final
@dataclass(frozen=True, slots=True)
class ColumnStep:
    """One NumPy call.

    Attributes:
        apply: What is called.
        sources: The slots of its operands.
        target: The slot of its result.
        out: The operand whose memory it writes to; -1 for none.
        operands: Returns its operands, from all values.
    """

    apply: Callable[..., Array]
    sources: Sequence[int]
    target: int
    out: int = -1
    operands: Callable[[Sequence[Any]], Sequence[Any]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # A call takes as long as some thousand numbers, so its operands are found fast.
        several = len(self.sources) > 1
        found = itemgetter(*self.sources) if several else partial(_single, self.sources[0])
        object.__setattr__(self, "operands", found)

    @property
    def writes(self) -> bool:
        """Whether the call accepts an `out` array."""
        return isinstance(self.apply, np.ufunc) or getattr(self.apply, "func", None) is cast


def computed(
    steps: Sequence[ColumnStep],
    columns: Sequence[Array],
    others: Sequence[Any],
    memory: dict[int, Array],
) -> list[Any]:
    """Return all values, with those of the columns; write those with a slot in `memory` there."""
    values = [*columns, *others[len(columns) :]]
    for step in steps:
        if step.out >= 0:
            values[step.target] = step.apply(*step.operands(values), out=values[step.out])
        elif step.target in memory:
            values[step.target] = step.apply(*step.operands(values), out=memory[step.target])
        else:
            values[step.target] = step.apply(*step.operands(values))
    return values


def _single(place: int, values: Sequence[Any]) -> tuple[Any]:
    return (values[place],)


def simplified(
    steps: Sequence[ColumnStep], values: list[Any], by_row: Collection[int], results: Sequence[int]
) -> list[ColumnStep]:
    """Return steps with the same results: fewer for `%` and `//`, and none that nothing uses.

    Args:
        steps: The steps in order.
        values: A slot for each value; those of constants are filled. Slots may be appended.
        by_row: The slots of values that differ from row to row.
        results: The slots of the results.
    """
    short = _Divisions(values, by_row)
    return used([short.of(step) for step in steps], results)


def in_place(
    steps: Sequence[ColumnStep],
    kinds: Mapping[int, Hashable],
    by_row: Collection[int],
    results: Sequence[int],
) -> list[ColumnStep]:
    """Let steps reuse the memory of an operand that nothing else uses.

    Args:
        steps: The steps in order.
        kinds: The shapes and dtypes of the values whose memory may be reused.
        by_row: The slots of values that differ from row to row.
        results: The slots of the results.
    """
    uses = Counter(results)
    for step in steps:
        uses.update(step.sources)

    def placed(step: ColumnStep) -> ColumnStep:
        if not isinstance(step.apply, np.ufunc):
            return step
        free = [
            source
            for source in step.sources
            if kinds.get(source) == kinds[step.target]
            and uses[source] == 1
            and (source in by_row) == (step.target in by_row)
        ]
        return replace(step, out=free[0]) if free else step

    return [placed(step) for step in steps]


def used(steps: Sequence[ColumnStep], results: Sequence[int]) -> list[ColumnStep]:
    """Return the steps that the results depend on."""
    needed = set(results)
    found: list[ColumnStep] = []
    for step in reversed(steps):
        if step.target in needed:
            needed.update(step.sources)
            found.append(step)
    return found[::-1]


@final
class _Divisions:
    """Finds the expansions of `%` and `//` of integers by constants.

    Every value gets a number, and equal expressions get the same one. So an expansion is found by comparing the number
    of its last value with that of the expression that JAX writes.
    """

    def __init__(self, values: list[Any], by_row: Collection[int]) -> None:
        self._values = values
        self._by_row = by_row
        self._steps: dict[int, ColumnStep] = {}
        self._numbers: dict[Hashable, int] = {}
        self._of_slots: dict[int, int] = {}

    def of(self, step: ColumnStep) -> ColumnStep:
        """Return a step with the same result: a shorter one, if this is the last of an expansion."""
        self._steps[step.target] = step
        self._of_slots[step.target] = self._call(step.apply, *map(self._slot, step.sources))
        if step.apply is not select:
            return step
        return self._remainder(step) or self._quotient(step) or step

    def _remainder(self, step: ColumnStep) -> ColumnStep | None:
        """Match select(((r < 0) != (d < 0)) & (r != 0), r, r + d), where r is fmod(a, d)."""
        divided = self._steps.get(step.sources[1])
        divisor = None if divided is None else self._divisor(divided, np.fmod)
        if divided is None or divisor is None:
            return None
        r, d = self._slot(divided.target), self._slot(divided.sources[1])
        zero = self._constant(np.zeros((), divisor.dtype))
        is_below = self._call(np.less, r, zero)
        has_other_sign = self._call(np.not_equal, is_below, self._constant(divisor < 0))
        is_not_zero = self._call(np.not_equal, r, zero)
        which = self._call(np.bitwise_and, has_other_sign, is_not_zero)
        if self._slot(step.target) != self._call(select, which, r, self._call(np.add, r, d)):
            return None
        return self._short_remainder(replace(step, sources=divided.sources), divisor)

    def _short_remainder(self, step: ColumnStep, divisor: Array) -> ColumnStep:
        if divisor.ndim:
            return replace(step, apply=np.remainder)
        number = int(divisor)
        if number <= 0 or number & (number - 1):
            return replace(step, apply=_floored_remainder)
        self._values.append(np.asarray(number - 1, divisor.dtype))
        # The low bits are the remainder by a power of two, also of negative numbers.
        return replace(step, apply=np.bitwise_and, sources=[step.sources[0], len(self._values) - 1])

    def _quotient(self, step: ColumnStep) -> ColumnStep | None:
        """Match select((sign(a) != sign(d)) & (fmod(a, d) != 0), q, q - 1), where q is a / d without its fraction."""
        divided = self._steps.get(step.sources[1])
        divisor = None if divided is None else self._divisor(divided, truncated_quotient)
        if divided is None or divisor is None:
            return None
        a, d = map(self._slot, divided.sources)
        q = self._slot(divided.target)
        zero, one = (self._constant(np.asarray(n, divisor.dtype)) for n in (0, 1))
        sign = self._constant(np.sign(divisor))
        has_other_sign = self._call(np.not_equal, self._call(np.sign, a), sign)
        has_rest = self._call(np.not_equal, self._call(np.fmod, a, d), zero)
        which = self._call(np.bitwise_and, has_other_sign, has_rest)
        if self._slot(step.target) != self._call(select, which, q, self._call(np.subtract, q, one)):
            return None
        return replace(step, apply=np.floor_divide, sources=divided.sources)

    def _divisor(self, step: ColumnStep, apply: Callable[..., Array]) -> Array | None:
        """Return the constant integers that a step of this kind divides by."""
        if step.apply is not apply or self._is_variable(step.sources[1]):
            return None
        divisor = np.asarray(self._values[step.sources[1]])
        return divisor if divisor.dtype.kind in "iu" else None

    def _is_variable(self, slot: int) -> bool:
        return slot in self._by_row or self._values[slot] is None

    def _slot(self, slot: int) -> int:
        if slot not in self._of_slots:
            variable = self._is_variable(slot)
            number = self._number(slot) if variable else self._constant(self._values[slot])
            self._of_slots[slot] = number
        return self._of_slots[slot]

    def _constant(self, value: Any) -> int:
        array = np.asarray(value)
        return self._number((array.dtype, array.shape, array.tobytes()))

    def _call(self, apply: Callable[..., Array], *operands: int) -> int:
        return self._number((apply, *operands))

    def _number(self, what: Hashable) -> int:
        return self._numbers.setdefault(what, len(self._numbers))


def select(which: Array, no: Array, yes: Array) -> Array:
    """Return `yes` where a condition holds, else `no`."""
    return np.where(which, yes, no)


def cast(dtype: DType, column: Array, out: Array | None = None) -> Array:
    """Return a column of another dtype."""
    if out is None:
        return column.astype(dtype)
    np.copyto(out, column, casting="unsafe")
    return out


def truncated_quotient(column: Array, divisor: Array) -> Array:
    """Return the quotients of integers without their fractions, as XLA does; NumPy rounds them down."""
    quotient = np.floor_divide(column, divisor)
    if divisor.dtype.kind == "u":
        return quotient
    return quotient + (((column < 0) != (divisor < 0)) & (quotient * divisor != column))


def _floored_remainder(column: Array, divisor: Array) -> Array:
    """Return remainders with the sign of the divisor: NumPy divides by one number faster than it takes remainders."""
    multiple = np.floor_divide(column, divisor)
    np.multiply(multiple, divisor, out=multiple)
    return np.subtract(column, multiple, out=multiple)
