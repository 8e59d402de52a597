"""Converts simple traced functions to NumPy calls on whole columns: no compilation, no other threads.

Only operations with exactly one correct result, to the last bit, run here. So an element does not depend on
the length of its Block, and equals the result of the function run per element.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.runtime.functions.arithmetic.column_moves import (
    check_inside,
    move_of,
    picking_of,
    view_of,
)
from evenfeed.runtime.functions.arithmetic.column_operations import (
    apply_of,
    has_identity,
    joining_of,
    reduction_of,
)
from evenfeed.runtime.functions.arithmetic.column_program import (
    ColumnArithmetic,
    ColumnBody,
    Kind,
)
from evenfeed.runtime.functions.arithmetic.column_steps import (
    ColumnStep,
    cast,
    select,
    simplified,
)
from evenfeed.runtime.functions.trace_facts import CALLS, is_index_check

_DTYPES: Final = frozenset(map(np.dtype, "?bhilqBHILQfd"))

# Functions with more steps are faster compiled, because XLA fuses the steps.
_MOST_STEPS: Final = 8

# Functions with more operations than this have more steps, too: JAX writes up to ten for one.
_MOST_TRACED: Final = 100

# Constants are broadcast to the shape of a row up to this size.
_MOST_BROADCAST: Final = 1 << 20

_RESHAPES: Final = frozenset({"expand_dims", "reshape", "squeeze"})


@final
class _NotSimple(Exception):  # noqa: N818 - control flow, not an error
    """The function does something that this module does not support."""


def arithmetic_of(
    closed: Any, dtypes: Sequence[DType], shared: int = 0, *, avoids_compiling: bool = False
) -> ColumnArithmetic | None:
    """Return the NumPy calls for a traced function; None if it is not simple enough.

    Args:
        closed: The closed jaxpr for one element.
        dtypes: The dtypes that the results are cast to.
        shared: The number of trailing arguments that all rows share.
        avoids_compiling: Whether a compiled program would have too few rows to pay. The function may then have more
            steps, and raises IndexError if an index is out of range.
    """
    try:
        return _Reader(avoids_compiling=avoids_compiling).read(closed, dtypes, shared)
    except _NotSimple:
        return None


@final
class _Reader:
    """Converts the equations of a jaxpr into steps."""

    def __init__(self, *, avoids_compiling: bool) -> None:
        self._avoids_compiling = avoids_compiling
        self._most_steps = _MOST_TRACED if avoids_compiling else _MOST_STEPS
        self._values: list[Any] = []
        self._by_row: set[int] = set()  # the values that differ from row to row
        self._steps: list[ColumnStep] = []
        self._kinds: dict[int, Kind] = {}  # of the values that own their memory

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
        kinds = [(aval.shape, np.dtype(dtype)) for aval, dtype in zip(avals, dtypes, strict=True)]
        given = [_kind_of(var.aval) for var in closed.jaxpr.invars]
        body = ColumnBody(
            self._values,
            frozenset(self._by_row),
            self._kinds,
            self._few(kept),
            list(zip(kept, kinds, strict=True)),
            given,
        )
        return body.placed()

    def _few(self, kept: Sequence[int]) -> list[ColumnStep]:
        """Return the steps that the results need."""
        steps = simplified(self._steps, self._values, self._by_row, kept)
        if sum(step.target in self._kinds for step in steps) > self._most_steps:
            raise _NotSimple
        return steps

    def _body(self, closed: Any, arguments: Sequence[int]) -> list[int]:
        """Convert the equations of a jaxpr or an inner one; return the slots of its results."""
        jaxpr = closed.jaxpr
        slots: dict[Any, int] = dict(zip(jaxpr.invars, arguments, strict=True))
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
            slots[var] = self._constant(value, var.aval)
        for equation in jaxpr.eqns:
            sources = [self._source(var, slots) for var in equation.invars]
            if is_index_check(equation):
                results = [self._checked(sources)]
            elif equation.primitive.name in CALLS:
                results = self._body(equation.params["jaxpr"], sources)
            elif equation.primitive.name == "split":
                results = self._split(equation, sources[0])
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
        if equation.primitive.name == "iota":
            return self._numbered(equation.outvars[0].aval, equation.params["dimension"])
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
        if (moved := self._moved(equation, sources, kind)) is not None:
            return moved
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

    def _moved(self, equation: Any, sources: Sequence[int], kind: Kind) -> int | None:
        """Return rows in another order, or numbers that are picked from them; None if this is something else."""
        name, params = equation.primitive.name, equation.params
        avals = [var.aval for var in equation.invars]
        by_row = [source in self._by_row for source in sources]
        if name == "gather":
            pick = picking_of(params, avals, by_row)
            if pick is None or not self._avoids_compiling:
                raise _NotSimple
            return self._called(pick, sources, kind)
        move, view = move_of(name, params, avals), view_of(name, params)
        apply = move or view
        if apply is None:
            return None
        if not by_row[0] or any(by_row[1:]):
            raise _NotSimple
        return self._added(apply, sources) if move is None else self._called(apply, sources, kind)

    def _numbered(self, aval: Any, axis: int) -> int:
        if aval.dtype not in _DTYPES or prod(aval.shape) > _MOST_BROADCAST:
            raise _NotSimple
        shape, dtype = _kind_of(aval)
        alone = [n if number == axis else 1 for number, n in enumerate(shape)]
        numbers = np.arange(shape[axis]).astype(dtype).reshape(alone)
        return self._slot(np.ascontiguousarray(np.broadcast_to(numbers, shape)))

    def _split(self, equation: Any, source: int) -> list[int]:
        """Return the parts of each row along an axis, as views."""
        if source not in self._by_row:
            raise _NotSimple
        parts: list[int] = []
        before = (slice(None),) * (equation.params["axis"] + 1)
        start = 0
        for size in map(int, equation.params["sizes"]):
            cut = (*before, slice(start, start + size))
            parts.append(self._added(partial(_part, cut), [source]))
            start += size
        return parts

    def _checked(self, sources: Sequence[int]) -> int:
        """Return indices that raise if they are out of range."""
        if not self._avoids_compiling:
            raise _NotSimple
        return self._added(check_inside, sources)

    def _reduced(self, equation: Any, source: int, kind: Kind) -> int:
        reduce = reduction_of(equation.primitive.name, equation.params["axes"], kind[1])
        if reduce is None or source not in self._by_row:
            raise _NotSimple
        if not (has_identity(equation.primitive.name) or prod(equation.invars[0].aval.shape)):
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

    def _called(self, apply: Callable[..., Array], sources: Sequence[int], kind: Kind) -> int:
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


def _kind_of(aval: Any) -> Kind:
    """Return the shape and dtype of a traced value."""
    return aval.shape, np.dtype(aval.dtype)


def _broadcasts(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Return True if `old` broadcasts to `new` by its axes of length 1."""
    return len(old) == len(new) and all(a in (1, b) for a, b in zip(old, new, strict=True))


def _part(cut: tuple[slice, ...], column: Array) -> Array:
    return column[cut]


def _view(between: tuple[int, ...], shape: tuple[int, ...], column: Array) -> Array:
    return np.broadcast_to(column.reshape(between), shape)


def _view_by_row(between: tuple[int, ...], shape: tuple[int, ...], column: Array) -> Array:
    rows = len(column)
    return np.broadcast_to(column.reshape(rows, *between), (rows, *shape))
