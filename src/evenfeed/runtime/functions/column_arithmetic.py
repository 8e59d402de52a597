"""Runs simple arithmetic on columns with NumPy: nothing is compiled, and no other thread is asked.

Only what has one right answer to the last bit is done here, so an element does not depend on the length
of its Block, and is the same as where the function runs per element.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType

_DTYPES: Final = frozenset(map(np.dtype, "?bhilqBHILQfd"))

# What does more is faster compiled: all that is done to a number is then done at once.
_MOST_STEPS: Final = 8

# A constant is stretched to the shape of a row up to so many numbers.
_MOST_NUMBERS: Final = 1 << 20

_UFUNCS: Final[dict[str, Callable[..., Array]]] = {
    "abs": np.absolute,
    "add": np.add,
    "and": np.bitwise_and,
    "ceil": np.ceil,
    "div": np.divide,
    "eq": np.equal,
    "floor": np.floor,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "sqrt": np.sqrt,
    "square": np.square,
    "sub": np.subtract,
    "xor": np.bitwise_xor,
}
_RESHAPES: Final = frozenset({"expand_dims", "reshape", "squeeze"})


# A row of so many bytes is computed by itself: with others it would not stay in the processor's cache.
_LARGE_ROW: Final = 1 << 17

# The shape and dtype of one row.
_Kind: TypeAlias = tuple[tuple[int, ...], DType]

# Returns memory for a column of results: the number of the result, and the kind of its rows.
Room: TypeAlias = Callable[[int, _Kind], Array]


@final
class _NotSimple(Exception):  # noqa: N818 - an answer, not an error
    """The function does something that is not done here."""


@final
@dataclass(frozen=True, slots=True)
class _Step:
    """One call: which values it takes, where the result goes, and whose memory it may take (-1: none's)."""

    apply: Callable[..., Array]
    sources: Sequence[int]
    target: int
    out: int = -1

    @property
    def writes(self) -> bool:
        """Whether it can write its result into memory that it is given."""
        return isinstance(self.apply, np.ufunc) or getattr(self.apply, "func", None) is _cast


@final
@dataclass(frozen=True, slots=True)
class ColumnArithmetic:
    """A function as NumPy calls, each on whole columns.

    Attributes:
        values: A place for each value on the way: first those of the columns, then those of variables,
            constants and results.
        steps: The calls.
        results: The places of the results, and the shapes and dtypes of their rows.
        roots: By its place, the value whose memory a result has in the end, and the number of the result.
    """

    values: Sequence[Any]
    steps: Sequence[_Step]
    results: Sequence[tuple[int, _Kind]]
    roots: dict[int, int]

    def run(
        self,
        columns: Sequence[Array | list[Array]],
        length: int,
        room: Room | None = None,
        held: Sequence[Array] = (),
    ) -> list[Array]:
        """Return the computed columns, which nobody may write to: two may have their memory in common.

        Args:
            columns: Those of the elements, or lists of their rows, which are alike.
            length: How many rows they have.
            room: Gives memory for the results.
            held: What variables hold, which all rows have in common.
        """
        with np.errstate(all="ignore"):
            if any(_bytes(kind) >= _LARGE_ROW for _, kind in self.results):
                return self._row_by_row(columns, held, length, room or partial(_new_room, length))
            values = self._computed([*map(in_one_piece, columns), *held], {})
        return [np.broadcast_to(values[at], (length, *kind[0])) for at, kind in self.results]

    def _row_by_row(
        self,
        columns: Sequence[Array | list[Array]],
        held: Sequence[Array],
        length: int,
        room: Room,
    ) -> list[Array]:
        """Do all that is done to a large row while it is near, and write the results to their places."""
        found = [room(number, kind) for number, (_, kind) in enumerate(self.results)]
        for row in range(length):
            outs = [column[row : row + 1] for column in found]
            memory = {root: outs[number] for root, number in self.roots.items()}
            values = self._computed([*(_row(column, row) for column in columns), *held], memory)
            for out, (at, _) in zip(outs, self.results, strict=True):
                if values[at] is not out:
                    out[...] = values[at]
        return found

    def _computed(self, columns: Sequence[Array], memory: dict[int, Array]) -> list[Any]:
        """Return all values on the way; some are to be written to memory that is given."""
        values = [*columns, *self.values[len(columns) :]]
        for step in self.steps:
            operands = [values[source] for source in step.sources]
            place = memory.get(step.target) if step.out < 0 else values[step.out]
            out = {} if place is None else {"out": place}
            values[step.target] = step.apply(*operands, **out)
        return values


def arithmetic_of(closed: Any, dtypes: Sequence[DType], shared: int = 0) -> ColumnArithmetic | None:
    """Return the NumPy calls for a function that JAX traced; None where it is not simple.

    Args:
        closed: What was traced, for one element.
        dtypes: What the results are converted to.
        shared: How many of the arguments, the last ones, are the same for all rows.
    """
    try:
        return _Reader().read(closed, dtypes, shared)
    except _NotSimple:
        return None


@final
class _Reader:
    """Turns equations into steps."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._by_row: set[int] = set()  # the values that each row has its own of
        self._uses = Counter[int]()
        self._steps: list[_Step] = []
        self._kinds: dict[int, _Kind] = {}  # of what has memory of its own
        self._calls = 0

    def read(self, closed: Any, dtypes: Sequence[DType], shared: int) -> ColumnArithmetic:
        """Return the whole function."""
        count = len(closed.jaxpr.invars)
        columns = [self._place(by_row=number < count - shared) for number in range(count)]
        found = self._body(closed, columns)
        avals = [var.aval for var in closed.jaxpr.outvars]
        kept = [
            place if aval.dtype == dtype else self._converted(place, aval, np.dtype(dtype))
            for place, aval, dtype in zip(found, avals, dtypes, strict=True)
        ]
        self._uses.update(kept)
        steps = [self._in_place(step) for step in self._steps]
        kinds = [(aval.shape, np.dtype(dtype)) for aval, dtype in zip(avals, dtypes, strict=True)]
        roots = self._roots({step.target: step for step in steps}, kept)
        return ColumnArithmetic(self._values, steps, list(zip(kept, kinds, strict=True)), roots)

    def _roots(self, steps: dict[int, _Step], results: Sequence[int]) -> dict[int, int]:
        """Return which values have the memory that results have in the end, if they can be given it."""
        found: dict[int, int] = {}
        for number, result in enumerate(results):
            place = result
            while place in steps and steps[place].out >= 0:
                place = steps[place].out
            if place in steps and place in self._by_row and steps[place].writes:
                found[place] = number
        return found

    def _body(self, closed: Any, arguments: Sequence[int]) -> list[int]:
        """Read the equations of a function, or of one within it; return where its results are."""
        jaxpr = closed.jaxpr
        places: dict[Any, int] = dict(zip(jaxpr.invars, arguments, strict=True))
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
            places[var] = self._constant(value, var.aval)
        for equation in jaxpr.eqns:
            sources = [self._source(var, places) for var in equation.invars]
            if equation.primitive.name in ("jit", "pjit"):
                results = self._body(equation.params["jaxpr"], sources)
            else:
                results = [self._result(equation, sources)]
            places.update(zip(equation.outvars, results, strict=True))
        return [self._source(var, places) for var in jaxpr.outvars]

    def _place(self, value: Any = None, *, by_row: bool = False) -> int:
        self._values.append(value)
        if by_row:
            self._by_row.add(len(self._values) - 1)
        return len(self._values) - 1

    def _constant(self, value: Any, aval: Any) -> int:
        if aval.dtype not in _DTYPES:
            raise _NotSimple
        return self._place(np.asarray(value, aval.dtype))

    def _source(self, var: Any, places: dict[Any, int]) -> int:
        literal = getattr(var, "val", None)  # a constant written into the equation itself
        return places[var] if literal is None else self._constant(literal, var.aval)

    def _result(self, equation: Any, sources: Sequence[int]) -> int:
        avals = [var.aval for var in equation.invars]
        if len(equation.outvars) != 1:
            raise _NotSimple  # a print, say
        result = equation.outvars[0].aval
        if any(aval.dtype not in _DTYPES for aval in (*avals, result)):
            raise _NotSimple
        name, kind = equation.primitive.name, (result.shape, np.dtype(result.dtype))
        if name == "convert_element_type":
            return self._converted(sources[0], avals[0], kind[1])
        if name in _RESHAPES or name == "broadcast_in_dim":
            return self._viewed(equation, sources[0])
        sources = [self._aligned(*one, kind[0]) for one in zip(sources, avals, strict=True)]
        if name == "select_n" and len(sources) == 3 and avals[0].dtype == np.bool_:
            return self._called(_chosen, sources, kind)
        if name == "integer_pow" and equation.params["y"] == 2:
            return self._called(np.square, sources, kind)
        if name not in _UFUNCS or (name == "div" and result.dtype.kind != "f"):
            raise _NotSimple  # whole numbers are not divided here: by zero, NumPy and XLA differ
        return self._called(_UFUNCS[name], sources, kind)

    def _aligned(self, source: int, aval: Any, shape: tuple[int, ...]) -> int:
        """Return a value that NumPy broadcasts as JAX does: one number for each row has axes behind it."""
        if aval.shape == shape or (aval.shape == () and source not in self._by_row):
            return source
        if _stretches(aval.shape, shape):
            return self._stretched(source, shape)
        if aval.shape != ():
            raise _NotSimple
        ones = (1,) * len(shape)
        return self._added(partial(_view_by_row, ones, ones), [source])

    def _stretched(self, source: int, shape: tuple[int, ...]) -> int:
        """Return a value that has the whole shape, where it is a constant: NumPy is slow at short axes."""
        value = self._values[source]
        if source in self._by_row or value is None or prod(shape) > _MOST_NUMBERS:
            return source  # NumPy stretches it each time
        return self._place(np.ascontiguousarray(np.broadcast_to(value, shape)))

    def _called(self, apply: Callable[..., Array], sources: Sequence[int], kind: _Kind) -> int:
        self._calls += 1
        if self._calls > _MOST_STEPS:
            raise _NotSimple
        target = self._added(apply, sources)
        self._kinds[target] = kind
        return target

    def _converted(self, source: int, aval: Any, dtype: DType) -> int:
        if aval.dtype.kind == "f" and dtype.kind in "iu":
            raise _NotSimple  # what does not fit has no right answer
        return self._called(partial(_cast, dtype), [source], (aval.shape, dtype))

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
        constant = self._values[source]
        if constant is not None:
            return self._place(_view(between, shape, constant))
        return self._added(partial(_view, between, shape), [source])

    def _added(self, apply: Callable[..., Array], sources: Sequence[int]) -> int:
        target = self._place(by_row=any(source in self._by_row for source in sources))
        self._uses.update(sources)
        self._steps.append(_Step(apply, sources, target))
        return target

    def _in_place(self, step: _Step) -> _Step:
        """Let a result take the memory of an operand that is used nowhere else."""
        if not isinstance(step.apply, np.ufunc):
            return step
        kind = self._kinds[step.target]
        free = [
            source
            for source in step.sources
            if self._kinds.get(source) == kind
            and self._uses[source] == 1
            and (source in self._by_row) == (step.target in self._by_row)
        ]
        return replace(step, out=free[0]) if free else step


def _stretches(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Tell whether a shape becomes another if its axes of length 1 are stretched."""
    return len(old) == len(new) and all(a in (1, b) for a, b in zip(old, new, strict=True))


def _chosen(which: Array, no: Array, yes: Array) -> Array:
    return np.where(which, yes, no)


def _cast(dtype: DType, column: Array, out: Array | None = None) -> Array:
    if out is None:
        return column.astype(dtype)
    np.copyto(out, column, casting="unsafe")
    return out


def _bytes(kind: _Kind) -> int:
    return prod(kind[0]) * kind[1].itemsize


def _new_room(length: int, _: int, kind: _Kind) -> Array:
    return np.empty((length, *kind[0]), kind[1])


def in_one_piece(column: Array | list[Array]) -> Array:
    """Return a column that may be a list of its rows, which are alike."""
    return np.stack(column) if isinstance(column, list) else column


def _row(column: Array | list[Array], row: int) -> Array:
    return column[row][None] if isinstance(column, list) else column[row : row + 1]


def _view(between: tuple[int, ...], shape: tuple[int, ...], column: Array) -> Array:
    return np.broadcast_to(column.reshape(between), shape)


def _view_by_row(between: tuple[int, ...], shape: tuple[int, ...], column: Array) -> Array:
    rows = len(column)
    return np.broadcast_to(column.reshape(rows, *between), (rows, *shape))
