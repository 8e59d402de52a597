"""Traces a user function with JAX and runs it on whole Blocks. The runtime uses JAX here and in `staging/` alone.

Everything is traced with 64-bit types, so that no id is truncated. JAX's defaults are then wider than TensorFlow's;
`_settled` decides which results keep 64 bits.
"""

# JAX is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false

import sys
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.concurrency.forked_jax import fork
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.handles import Handle
from evenfeed.core.lazy_jax import checkify, jax, jax_extend_core
from evenfeed.core.promotion import NARROWER
from evenfeed.runtime.functions.arithmetic.column_arithmetic import arithmetic_of
from evenfeed.runtime.functions.arithmetic.column_program import ColumnArithmetic
from evenfeed.runtime.functions.program_keys import SharedPrograms, key_of
from evenfeed.runtime.functions.staging.row_checks import needs_checks, with_checks
from evenfeed.runtime.functions.staging.row_failures import OUTSIDE
from evenfeed.runtime.functions.trace_facts import indexing, parts_read, rounds, work_of
from evenfeed.runtime.functions.trace_texts import comparable, text_of
from evenfeed.runtime.functions.width_origins import origins_of

# Maps the parts of an element to the structure of the result and its parts.
Call: TypeAlias = Callable[[list[Any]], tuple[Any, list[Any]]]

_WIDER: Final = {dtypes.int32: dtypes.int64, dtypes.uint32: dtypes.uint64}


@final
@dataclass(frozen=True, slots=True)
class Row:
    """The static shape and dtype of one part of an element, or of a variable that all elements share."""

    shape: tuple[int, ...]
    dtype: DType
    shared: bool = False


@final
@dataclass(frozen=True, slots=True)
class Traced:
    """The result of one trace of a function.

    Attributes:
        parts: For each part of the result a Row (computed), a Handle (passed through) or a constant.
        wider: The parts that need 64-bit integers internally, because TensorFlow divides in float64.
        text: Equal for two traces exactly if they did the same.
        indexes: Whether an index may be out of range; `fixed_index`, whether a constant one may be.
        work: Roughly how many numbers it computes.
        arithmetic: The same computation without JAX, if it is simple enough.
        calls_back: Whether compiled code would call Python, which must see each element exactly once.
        checks: Whether it divides integers by something that may be 0, or marks indices that it checks.
        is_exact: Whether another way to compute it, such as NumPy, gives the same to the last bit.
        key: Equal for two traces, also of different functions, if they compute the same; None if that is unknown.
        reads: The parts that it computes with.
        for_few: The same as `arithmetic` where compiling does not pay; it raises if an index is out of range.
        closed: The closed jaxpr, with captured values as they were; `closed_wide`, that for wider integers, if needed.
    """

    structure: Any
    parts: tuple[Any, ...]
    wider: frozenset[int] = field(default_factory=frozenset)
    text: str = ""
    indexes: bool = False
    fixed_index: bool = False
    work: int = 0
    arithmetic: ColumnArithmetic | None = None
    calls_back: bool = False
    checks: bool = False
    key: bytes | None = None
    reads: frozenset[int] = frozenset()
    is_exact: bool = True
    for_few: ColumnArithmetic | None = None
    closed: Any = field(default=None, repr=False)
    closed_wide: Any = field(default=None, repr=False)


@cache
def _host_settings() -> tuple[Any, Any, Any]:
    """Return JAX's settings for 64-bit types and for the default device, and the host CPU."""
    return jax.enable_x64, jax.default_device, jax.local_devices(backend="cpu")[0]


@final
class on_host:  # noqa: N801 - used like a function; a generator-based one would take twice as long
    """Runs JAX on the host CPU with 64-bit types, even if there are GPUs. JAX's context managers take five times as long."""

    __slots__ = ("_device", "_wide")

    def __enter__(self) -> None:
        wide, device, host = _host_settings()
        self._wide, self._device = wide.swap_local(True), device.swap_local(host)

    def __exit__(self, *_: object) -> None:
        wide, device, _host = _host_settings()
        device.set_local(self._device)
        wide.set_local(self._wide)


def is_array(value: object) -> bool:
    """Return True if `value` is a JAX array or a tracer."""
    return isinstance(value, jax.Array)


def is_tracer(value: object) -> bool:
    """Return True if JAX traces how `value` is computed."""
    return "jax" in sys.modules and isinstance(value, jax.core.Tracer)


def trace_state() -> object:
    """Return the current trace state of JAX; None while JAX is not loaded."""
    return jax_extend_core.get_opaque_trace_state() if "jax" in sys.modules else None


def trace_settings() -> Hashable | None:
    """Return JAX's settings that a trace depends on; None while JAX is not loaded."""
    config = sys.modules.get("jax._src.config")
    settings: Any = getattr(config, "trace_context", None)
    return None if settings is None else settings()


def stand_in(spec: Any) -> Any:
    """Return zeros for a spec of known shape; a tracer if JAX is tracing."""
    return jax.numpy.zeros(tuple(spec.shape), spec.dtype)


def typed_key(words: Any) -> Any:
    """Return a key for jax.random, made from two words. It is always threefry, whatever JAX's default."""
    # The words may arrive as wider integers, when `_divided` tries that out.
    return jax.random.wrap_key_data(jax.numpy.asarray(words, np.uint32), impl="threefry2x32")


def refuses_tracing(error: Exception) -> bool:
    """Return True if `error` says that the function needs concrete values, which a trace does not have."""
    kinds = jax.errors
    return isinstance(
        error,
        (
            kinds.ConcretizationTypeError,
            kinds.TracerArrayConversionError,
            kinds.TracerIntegerConversionError,
            kinds.NonConcreteBooleanIndexError,
            kinds.UnexpectedTracerError,
        ),
    )


def traced(call: Call, rows: Sequence[Row | None]) -> Traced:
    """Trace a function for elements of these shapes and dtypes; None marks parts that JAX cannot hold."""
    if not any(rows):  # nothing for JAX to do, so it is not loaded
        structure, leaves = call(_filled(rows, ()))
        return Traced(structure, tuple(leaves), text=repr([comparable(leaf) for leaf in leaves]))
    with on_host():
        found, closed = _jaxpr(call, rows)
        dtypes_kept, wider, closed_wide = _settled(call, rows, closed)
    kept = iter(dtypes_kept)
    parts = tuple(Row(p.shape, next(kept)) if isinstance(p, Row) else p for p in found.parts)
    indexes, fixed = indexing(closed.jaxpr)
    arithmetic, for_few = (
        None
        if wider
        else arithmetic_of(closed, dtypes_kept, shared_count(rows), avoids_compiling=x)
        for x in (False, True)
    )
    return Traced(
        found.structure,
        parts,
        wider,
        text_of(closed, found.parts),
        indexes,
        fixed,
        work_of(closed.jaxpr),
        arithmetic,
        bool(closed.effects),
        needs_checks(closed),
        None if wider or closed.effects else key_of(closed),
        parts_read(closed.jaxpr, [row is not None for row in rows]),
        arithmetic is not None or not rounds(closed.jaxpr),
        for_few,
        closed,
        closed_wide,
    )


def shared_count(rows: Sequence[Row | None]) -> int:
    """Return the number of trailing parts that all elements share."""
    return sum(row is not None and row.shared for row in rows)


def _jaxpr(call: Call, rows: Sequence[Row | None]) -> tuple[Traced, Any]:
    found: list[Traced] = []

    def flat(*arrays: Any) -> list[Any]:
        structure, leaves = _called(call, rows, arrays)
        found.append(Traced(structure, tuple(map(_part, leaves))))
        return [leaf for leaf in leaves if is_array(leaf)]

    specs = [jax.ShapeDtypeStruct(row.shape, row.dtype) for row in rows if row is not None]
    closed = jax.make_jaxpr(flat)(*specs)
    return found[-1], jax_extend_core.ClosedJaxpr(closed.jaxpr, list(map(_own, closed.consts)))


def _own(constant: Any) -> Any:
    """Return a copy of an array that the user could write to later."""
    is_users = isinstance(constant, np.ndarray) and constant.flags.writeable
    return np.array(constant, subok=True) if is_users else constant


def _part(leaf: Any) -> Any:
    return Row(tuple(leaf.shape), np.dtype(leaf.dtype)) if is_array(leaf) else leaf


def _called(call: Call, rows: Sequence[Row | None], arrays: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Call the function. Parts that it returns unchanged become handles, and are not computed."""
    parts = _filled(rows, arrays)
    structure, leaves = call(list(parts))
    own = parts[: len(parts) - shared_count(rows)]
    places = {id(part): index for index, part in enumerate(own)}
    return structure, [Handle(places[id(x)]) if id(x) in places else x for x in leaves]


def _filled(rows: Sequence[Row | None], arrays: Sequence[Any]) -> list[Any]:
    """Return the arrays, with handles for the parts that JAX does not get."""
    left = iter(arrays)
    return [Handle(i) if row is None else next(left) for i, row in enumerate(rows)]


# --- which results keep 64 bits -----------------------------------------------------------------


def _settled(
    call: Call, rows: Sequence[Row | None], closed: Any
) -> tuple[list[DType], frozenset[int], Any]:
    """Return the dtypes of the computed parts, which of them need wider integers, and the jaxpr for these.

    A 64-bit result that comes only from narrower parts and defaults gets TensorFlow's default dtype. It stays
    64-bit if it comes from a 64-bit part, a 64-bit constant or an explicit dtype.
    """
    origins = origins_of(closed)
    found = [np.dtype(aval.dtype) for aval in closed.out_avals]
    doubtful = any(
        origin == "default" and dtype in NARROWER and not aval.weak_type
        for origin, dtype, aval in zip(origins, found, closed.out_avals, strict=True)
    )
    asked = doubtful and _asks_for_64_bits(call, rows)
    settled: list[DType] = []
    for origin, dtype, aval in zip(origins, found, closed.out_avals, strict=True):
        keep = origin != "default" or (asked and not aval.weak_type)
        settled.append(dtype if keep else NARROWER.get(dtype, dtype))
    wider, closed_wide = _divided(call, rows, closed, settled)
    kept = [dtypes.float64 if i in wider else d for i, d in enumerate(settled)]
    return kept, wider, closed_wide if wider else None


def _divided(
    call: Call, rows: Sequence[Row | None], closed: Any, settled: list[DType]
) -> tuple[frozenset[int], Any]:
    """Find results of dividing 32-bit integers: float64 in TensorFlow and NumPy, float32 in JAX.

    Such a result is float64 when traced with 64-bit integers. A result that was cast is not.
    """
    narrow = any(row is not None and row.dtype in _WIDER for row in rows)
    if not narrow or dtypes.float32 not in settled:
        return frozenset(), None
    again = _jaxpr(call, [_with_dtype(row, _WIDER) for row in rows])[1]
    pairs = zip(closed.out_avals, again.out_avals, strict=True)
    return frozenset(
        i
        for i, (one, two) in enumerate(pairs)
        if one.dtype == dtypes.float32 and two.dtype == dtypes.float64 and not two.weak_type
    ), again


def _asks_for_64_bits(call: Call, rows: Sequence[Row | None]) -> bool:
    """Return True if the function names a 64-bit dtype: with x64 disabled, JAX and evenfeed warn about it."""
    with warnings.catch_warnings(record=True) as caught, jax.enable_x64(False):
        warnings.simplefilter("always")
        try:
            _jaxpr(call, [_with_dtype(row, NARROWER) for row in rows])
        except Exception:  # noqa: BLE001 - it traced with 64 bits, so it needs them
            return True
    texts = [str(warning.message) for warning in caught]
    return any("Explicitly requested dtype" in t or "was asked for" in t for t in texts)


def _with_dtype(row: Row | None, others: dict[DType, DType]) -> Row | None:
    return row and replace(row, dtype=others.get(row.dtype, row.dtype))


# --- running ------------------------------------------------------------------------------------


# The programs of all functions. They do not refer to user code.
_programs: Final = SharedPrograms()


@final
class BlockProgram:
    """A traced function compiled for elements of one shape: columns in, columns out.

    It runs no user code, which could see other values by now than it did when it was traced.

    Args:
        rows: The shapes of the parts of an element, then those of variables.
        found: The trace for these shapes.
        length: The number of rows, which is needed if there are no columns.
    """

    def __init__(
        self, rows: Sequence[Row | None], found: Traced, length: int | None = None
    ) -> None:
        self._rows = rows
        self._found = found
        self._length = length
        self._ready: Callable[..., Any] | None = None
        body = self._checked if found.indexes else self._unchecked
        axes = tuple(None if row.shared else 0 for row in rows if row is not None)
        # JAX is not loaded if it gets no arguments.
        run: Any = jax.jit(jax.vmap(body, axes, axis_size=length)) if axes else None
        self._run = run

    def start(self, columns: Sequence[Array], held: Sequence[Array] = ()) -> "Started":
        """Start the computation on columns and variables. The first call compiles it, unless it is known."""
        ready = self._ready or self.prepare()
        fork.check()
        with on_host():
            return Started(*ready(*columns, *held))

    def prepare(self) -> Callable[..., Any]:
        """Compile the program, unless it is known; one that reads variables is compiled in its first call."""
        fork.check()
        with on_host():
            self._ready = self._shared()
        return self._ready

    def _shared(self) -> Callable[..., Any]:
        """Return the compiled program; that of another function if it computes the same."""
        rows = [row for row in self._rows if row is not None]
        if self._found.key is None or self._length is None or shared_count(self._rows):
            return self._run
        kept = tuple(part for part in self._found.parts if isinstance(part, Row))
        key = self._found.key, tuple(self._rows), kept, self._found.indexes, self._length
        specs = [jax.ShapeDtypeStruct((self._length, *row.shape), row.dtype) for row in rows]
        return _programs.of(key, lambda: self._run.lower(*specs).compile())

    def _unchecked(self, *arrays: Any) -> tuple[list[Any], list[Any], list[Any]]:
        return [], *self._with_checks(*arrays)

    def _checked(self, *arrays: Any) -> tuple[list[Any], list[Any], list[Any]]:
        checked = checkify.checkify(self._with_checks, errors=checkify.index_checks)
        error, (failures, outputs) = checked(*arrays)
        # Only whether a row failed: the error details would be computed for every row.
        flags = [leaf for leaf in jax.tree.leaves(error) if leaf.dtype == np.bool_]
        return flags, failures, outputs

    def _with_checks(self, *arrays: Any) -> tuple[list[Any], list[Any]]:
        """Return why a row failed, if it may, and the results."""
        if not self._found.checks:
            return [], self._body(*arrays)
        outputs, failure = with_checks(self._body)(*arrays)
        return [failure], outputs

    def _body(self, *arrays: Any) -> list[Any]:
        outputs = jax_extend_core.jaxpr_as_fun(self._found.closed)(*arrays)
        if self._found.wider:
            widened = [a.astype(_WIDER.get(a.dtype, a.dtype)) for a in arrays]
            wide = jax_extend_core.jaxpr_as_fun(self._found.closed_wide)(*widened)
            outputs = [wide[i] if i in self._found.wider else o for i, o in enumerate(outputs)]
        kept = [part.dtype for part in self._found.parts if isinstance(part, Row)]
        return [output.astype(dtype) for output, dtype in zip(outputs, kept, strict=True)]


@final
@dataclass(frozen=True, slots=True)
class Started:
    """A computation in progress."""

    outside: Sequence[Any]
    failures: Sequence[Any]
    outputs: Sequence[Any]

    def wait(self) -> tuple[list[Array], Array | None]:
        """Return the computed columns, and which rows failed (None if none can): OUTSIDE or BY_ZERO."""
        flags = [np.where(flag, OUTSIDE, 0) for flag in self.outside]
        flags += map(np.asarray, self.failures)
        failed = np.maximum.reduce(flags) if flags else None
        return [np.asarray(output) for output in self.outputs], failed
