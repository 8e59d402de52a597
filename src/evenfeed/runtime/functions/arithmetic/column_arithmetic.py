"""Runs simple traced functions as NumPy calls on whole columns: no compilation, no other threads.

Only operations with exactly one correct result, to the last bit, run here. So an element does not depend on
the length of its Block, and equals the result of the function run per element.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.runtime.functions.arithmetic.column_operations import (
    apply_of,
    joining_of,
    reduction_of,
)
from evenfeed.runtime.functions.arithmetic.column_steps import (
    ColumnStep,
    cast,
    computed,
    in_place,
    select,
    simplified,
)

_DTYPES: Final = frozenset(map(np.dtype, "?bhilqBHILQfd"))

# Functions with more steps are faster compiled, because XLA fuses the steps.
_MOST_STEPS: Final = 8

# Functions with more operations than this have more steps, too: JAX writes up to ten for one.
_MOST_TRACED: Final = 100

# Constants are broadcast to the shape of a row up to this size.
_MOST_BROADCAST: Final = 1 << 20

_RESHAPES: Final = frozenset({"expand_dims", "reshape", "squeeze"})


# A row of this many bytes is computed alone: several would not fit in the CPU cache.
_LARGE_ROW: Final = 1 << 17

# The shape and dtype of one row.
_Kind: TypeAlias = tuple[tuple[int, ...], DType]

# Allocates a result column, from the number of the result and the kind of its rows.
Allocate: TypeAlias = Callable[[int, _Kind], Array]


@final
class _NotSimple(Exception):  # noqa: N818 - control flow, not an error
    """The function does something that this module does not support."""


@final
@dataclass(frozen=True, slots=True)
class ColumnArithmetic:
    """A function as NumPy calls, each on whole columns.

    Attributes:
        values: A slot for each value: first the columns, then variables, constants and results.
        steps: The calls.
        results: The slots of the results, and the shapes and dtypes of their rows.
        roots: For each slot whose memory ends up as a result, the number of that result.
        over: The same calls, but all write over columns; `steps` if some need other memory.
        overwritten: The columns that they write over.
    """

    values: Sequence[Any]
    steps: Sequence[ColumnStep]
    results: Sequence[tuple[int, _Kind]]
    roots: dict[int, int]
    over: Sequence[ColumnStep]
    overwritten: frozenset[int]

    def run(
        self,
        columns: Sequence[Array | list[Array]],
        length: int,
        allocate: Allocate | None = None,
        held: Sequence[Array] = (),
        free: Collection[int] = (),
    ) -> list[Array]:
        """Return the computed columns. They must not be written to, because two may share memory.

        Args:
            columns: The columns of the elements, or lists of rows of one shape.
            length: The number of rows.
            allocate: Allocates the result columns.
            held: The values of the variables, shared by all rows.
            free: The columns that are not needed any more: results are written over them where that takes no memory.
        """
        with np.errstate(all="ignore"):
            if any(_bytes(kind) >= _LARGE_ROW for _, kind in self.results):
                return self._row_by_row(
                    columns, held, length, allocate or partial(_allocated, length)
                )
            steps = self.over if self.overwritten.issubset(free) else self.steps
            values = computed(steps, [*map(in_one_piece, columns), *held], self.values, {})
        return [np.broadcast_to(values[at], (length, *kind[0])) for at, kind in self.results]

    def of_row(self, columns: Sequence[Array]) -> list[Array]:
        """Return the computed columns for columns of one row. The caller silences NumPy's warnings."""
        values = computed(self.steps, columns, self.values, {})
        return [
            found if found.ndim > len(kind[0]) else np.broadcast_to(found, (1, *kind[0]))
            for found, kind in ((values[at], kind) for at, kind in self.results)
        ]

    def _row_by_row(
        self,
        columns: Sequence[Array | list[Array]],
        held: Sequence[Array],
        length: int,
        allocate: Allocate,
    ) -> list[Array]:
        """Run all steps on one large row at a time, while it is in the CPU cache."""
        found = [allocate(number, kind) for number, (_, kind) in enumerate(self.results)]
        for row in range(length):
            outs = [column[row : row + 1] for column in found]
            memory = {root: outs[number] for root, number in self.roots.items()}
            rows = [_row(column, row) for column in columns]
            values = computed(self.steps, [*rows, *held], self.values, memory)
            for out, (at, _) in zip(outs, self.results, strict=True):
                if values[at] is not out:
                    out[...] = values[at]
        return found


def arithmetic_of(closed: Any, dtypes: Sequence[DType], shared: int = 0) -> ColumnArithmetic | None:
    """Return the NumPy calls for a traced function; None if it is not simple enough.

    Args:
        closed: The closed jaxpr for one element.
        dtypes: The dtypes that the results are cast to.
        shared: The number of trailing arguments that all rows share.
    """
    try:
        return _Reader().read(closed, dtypes, shared)
    except _NotSimple:
        return None


@final
class _Reader:
    """Converts the equations of a jaxpr into steps."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._by_row: set[int] = set()  # the values that differ from row to row
        self._steps: list[ColumnStep] = []
        self._kinds: dict[int, _Kind] = {}  # of the values that own their memory

    def read(self, closed: Any, dtypes: Sequence[DType], shared: int) -> ColumnArithmetic:
        """Convert a closed jaxpr."""
        count = len(closed.jaxpr.invars)
        columns = [self._slot(by_row=number < count - shared) for number in range(count)]
        found = self._body(closed, columns)
        avals = [var.aval for var in closed.jaxpr.outvars]
        kept = [
            slot if aval.dtype == dtype else self._converted(slot, aval, np.dtype(dtype))
            for slot, aval, dtype in zip(found, avals, dtypes, strict=True)
        ]
        short = self._few(kept)
        steps = in_place(short, self._kinds, self._by_row, kept)
        kinds = [(aval.shape, np.dtype(dtype)) for aval, dtype in zip(avals, dtypes, strict=True)]
        roots = self._roots({step.target: step for step in steps}, kept)
        results = list(zip(kept, kinds, strict=True))
        over = self._over(closed, short, kept) or steps
        overwritten = frozenset(step.out for step in over if 0 <= step.out < count)
        return ColumnArithmetic(self._values, steps, results, roots, over, overwritten)

    def _over(
        self, closed: Any, steps: Sequence[ColumnStep], kept: Sequence[int]
    ) -> list[ColumnStep] | None:
        """Return steps that all write over columns; None if one needs other memory.

        Only these cannot fail after a column was changed: if memory is short, the function runs element by element.
        """
        columns = {
            slot: _kind_of(var.aval)
            for slot, var in enumerate(closed.jaxpr.invars)
            if slot in self._by_row
        }
        over = in_place(steps, self._kinds | columns, self._by_row, kept)
        return over if all(step.out >= 0 for step in over if step.target in self._kinds) else None

    def _few(self, kept: Sequence[int]) -> list[ColumnStep]:
        """Return the steps that the results need."""
        steps = simplified(self._steps, self._values, self._by_row, kept)
        if sum(step.target in self._kinds for step in steps) > _MOST_STEPS:
            raise _NotSimple
        return steps

    def _roots(self, steps: dict[int, ColumnStep], results: Sequence[int]) -> dict[int, int]:
        """Return the steps whose output memory ends up as a result, if they accept an `out` array."""
        found: dict[int, int] = {}
        for number, result in enumerate(results):
            slot = result
            while slot in steps and steps[slot].out >= 0:
                slot = steps[slot].out
            if slot in steps and slot in self._by_row and steps[slot].writes:
                found[slot] = number
        return found

    def _body(self, closed: Any, arguments: Sequence[int]) -> list[int]:
        """Convert the equations of a jaxpr or an inner one; return the slots of its results."""
        jaxpr = closed.jaxpr
        slots: dict[Any, int] = dict(zip(jaxpr.invars, arguments, strict=True))
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
            slots[var] = self._constant(value, var.aval)
        for equation in jaxpr.eqns:
            sources = [self._source(var, slots) for var in equation.invars]
            if equation.primitive.name in ("jit", "pjit"):
                results = self._body(equation.params["jaxpr"], sources)
            else:
                results = [self._result(equation, sources)]
            slots.update(zip(equation.outvars, results, strict=True))
        return [self._source(var, slots) for var in jaxpr.outvars]

    def _slot(self, value: Any = None, *, by_row: bool = False) -> int:
        self._values.append(value)
        if by_row:
            self._by_row.add(len(self._values) - 1)
        return len(self._values) - 1

    def _is_constant(self, slot: int) -> bool:
        """Return True if a value is known before any row is: it is neither a column nor a variable."""
        return slot not in self._by_row and self._values[slot] is not None

    def _constant(self, value: Any, aval: Any) -> int:
        if aval.dtype not in _DTYPES:
            raise _NotSimple
        return self._slot(np.asarray(value, aval.dtype))

    def _source(self, var: Any, slots: dict[Any, int]) -> int:
        literal = getattr(var, "val", None)  # a literal in the equation
        return slots[var] if literal is None else self._constant(literal, var.aval)

    def _result(self, equation: Any, sources: Sequence[int]) -> int:
        avals = [var.aval for var in equation.invars]
        if len(equation.outvars) != 1 or not avals:
            raise _NotSimple  # a debug print, or a count, for example
        result = equation.outvars[0].aval
        if any(aval.dtype not in _DTYPES for aval in (*avals, result)):
            raise _NotSimple
        name, kind = equation.primitive.name, _kind_of(result)
        if name == "convert_element_type":
            return self._converted(sources[0], avals[0], kind[1])
        if name in _RESHAPES or name == "broadcast_in_dim":
            return self._viewed(equation, sources[0])
        if name == "slice":
            return self._cut(equation, sources[0])
        join = joining_of(name, equation.params, [source in self._by_row for source in sources])
        if join is not None:
            return self._called(join, sources, kind)
        if "axes" in equation.params:
            return self._reduced(equation, sources[0], kind)
        sources = [self._aligned(*one, kind[0]) for one in zip(sources, avals, strict=True)]
        if name == "select_n" and len(sources) == 3 and avals[0].dtype == np.bool_:
            return self._called(select, sources, kind)
        is_known = len(sources) > 1 and self._is_constant(sources[1])
        second = self._values[sources[1]] if is_known else None
        apply = apply_of(name, equation.params, avals[0].dtype, second)
        if apply is None:
            raise _NotSimple
        return self._called(apply, sources, kind)

    def _reduced(self, equation: Any, source: int, kind: _Kind) -> int:
        reduce = reduction_of(equation.primitive.name, equation.params["axes"], kind[1])
        if reduce is None or source not in self._by_row or not prod(equation.invars[0].aval.shape):
            raise _NotSimple
        return self._called(reduce, [source], kind)

    def _aligned(self, source: int, aval: Any, shape: tuple[int, ...]) -> int:
        """Return a value that NumPy broadcasts as JAX does: a scalar per row gets trailing axes."""
        if aval.shape == shape or (aval.shape == () and source not in self._by_row):
            return source
        if _broadcasts(aval.shape, shape):
            return self._broadcast_constant(source, shape)
        if aval.shape != ():
            raise _NotSimple
        ones = (1,) * len(shape)
        return self._added(partial(_view_by_row, ones, ones), [source])

    def _broadcast_constant(self, source: int, shape: tuple[int, ...]) -> int:
        """Return a constant broadcast to the full shape, because NumPy is slow on short axes."""
        if not self._is_constant(source) or prod(shape) > _MOST_BROADCAST:
            return source  # NumPy broadcasts it in each call
        return self._slot(np.ascontiguousarray(np.broadcast_to(self._values[source], shape)))

    def _called(self, apply: Callable[..., Array], sources: Sequence[int], kind: _Kind) -> int:
        if (
            all(self._is_constant(source) for source in sources)
            and prod(kind[0]) <= _MOST_BROADCAST
        ):
            with np.errstate(all="ignore"):
                return self._slot(apply(*(self._values[source] for source in sources)))
        if len(self._steps) > _MOST_TRACED:
            raise _NotSimple
        target = self._added(apply, sources)
        self._kinds[target] = kind
        return target

    def _converted(self, source: int, aval: Any, dtype: DType) -> int:
        if aval.dtype.kind == "f" and dtype.kind in "iu":
            raise _NotSimple  # the result is undefined for values that do not fit
        return self._called(partial(cast, dtype), [source], (aval.shape, dtype))

    def _viewed(self, equation: Any, source: int) -> int:
        shape = equation.outvars[0].aval.shape
        between = shape
        if equation.primitive.name == "broadcast_in_dim":
            axes = equation.params["broadcast_dimensions"]
            old = dict(zip(axes, equation.invars[0].aval.shape, strict=True))
            between = tuple(old.get(axis, 1) for axis in range(len(shape)))
        elif equation.params.get("dimensions") is not None and equation.primitive.name == "reshape":
            raise _NotSimple
        if source in self._by_row:
            return self._added(partial(_view_by_row, between, shape), [source])
        if self._is_constant(source):
            return self._slot(_view(between, shape, self._values[source]))
        return self._added(partial(_view, between, shape), [source])

    def _cut(self, equation: Any, source: int) -> int:
        """Return a part of each row: a view with constant bounds."""
        given = equation.params
        steps = given["strides"] or [1] * len(given["start_indices"])
        bounds = zip(given["start_indices"], given["limit_indices"], steps, strict=True)
        cut = tuple(slice(*one) for one in bounds)
        if source in self._by_row:
            return self._added(partial(_part, (slice(None), *cut)), [source])
        if self._is_constant(source):
            return self._slot(self._values[source][cut])
        return self._added(partial(_part, cut), [source])

    def _added(self, apply: Callable[..., Array], sources: Sequence[int]) -> int:
        target = self._slot(by_row=any(source in self._by_row for source in sources))
        self._steps.append(ColumnStep(apply, sources, target))
        return target


def _kind_of(aval: Any) -> _Kind:
    """Return the shape and dtype of a traced value."""
    return aval.shape, np.dtype(aval.dtype)


def _broadcasts(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Return True if `old` broadcasts to `new` by its axes of length 1."""
    return len(old) == len(new) and all(a in (1, b) for a, b in zip(old, new, strict=True))


def _bytes(kind: _Kind) -> int:
    return prod(kind[0]) * kind[1].itemsize


def _allocated(length: int, _: int, kind: _Kind) -> Array:
    return np.empty((length, *kind[0]), kind[1])


def in_one_piece(column: Array | list[Array]) -> Array:
    """Return a column as one array; stack it if it is a list of rows."""
    return np.stack(column) if isinstance(column, list) else column


def _row(column: Array | list[Array], row: int) -> Array:
    return column[row][None] if isinstance(column, list) else column[row : row + 1]


def _part(cut: tuple[slice, ...], column: Array) -> Array:
    return column[cut]


def _view(between: tuple[int, ...], shape: tuple[int, ...], column: Array) -> Array:
    return np.broadcast_to(column.reshape(between), shape)


def _view_by_row(between: tuple[int, ...], shape: tuple[int, ...], column: Array) -> Array:
    rows = len(column)
    return np.broadcast_to(column.reshape(rows, *between), (rows, *shape))
