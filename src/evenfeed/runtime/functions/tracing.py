"""Decides, by tracing it, how a user's function runs and what it returns."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import numpy as np

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import Computed, Handle, NewKernel
from evenfeed.core.random_bits import DrawsForElements
from evenfeed.core.side_effects import Effect, Effects, ProbeAbandoned
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec, spec_of
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.runtime.functions.calls import Calling, as_argument, explained, host_rules
from evenfeed.runtime.functions.compared_traces import ComparedTraces, Outcome, unseen
from evenfeed.runtime.functions.compiled import Compiled, RowShapes
from evenfeed.runtime.functions.kernels import Kernels, shared_row
from evenfeed.runtime.functions.probing import NewVariables, looked_at
from evenfeed.runtime.functions.purity import uses_generator
from evenfeed.runtime.functions.python_state import PythonState, uses_iterator
from evenfeed.runtime.functions.vectorise import Row, Traced, refuses_tracing, shared_count

# Lengths to try where one is not known. What follows them in the result is not known either. Short
# ones show slices (`x[:2]`), those with many divisors allow reshapes.
_LENGTHS: Final = (1, 12, 24)

# A function that needs more calls ever more kernels, in a loop over elements of its own.
_MOST_TRACES: Final = 50


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of a function before it runs.

    Attributes:
        calling: The function, and how it is called.
        compiled: Its programs; None where it runs per element.
        kernels: What is done before it runs on a Block, and the specs of the parts that it gets then.
        why: Why it runs that way.
        output_spec: What it returns; None where only a first element can tell.
        effects: What it reads and changes besides its arguments, as far as it is known.
        casts: Whether results are converted to the spec, instead of compared with it.
    """

    calling: Calling
    compiled: Compiled | None
    kernels: Kernels
    why: str
    output_spec: Any
    effects: Effects = field(default_factory=Effects)
    casts: bool = False


def found_by_tracing(  # noqa: PLR0913 - what a user says of a function
    calling: Calling,
    input_spec: Any,
    origin: Origin | None,
    *,
    vectorize: bool | None,
    signature: Any,
    doing: str,
    may_draw: bool = False,
) -> Finding:
    """Trace a function for elements of `input_spec`, and say how it runs.

    Raises:
        DrawsForElements: It draws random numbers that follow from positions, with `may_draw`.
    """
    kernels, effects = kernels_for(input_spec), Effects()
    if not all(map(_has_rank, kernels.specs)):
        return _untraced(
            calling, kernels, "the rank of an element is not known", signature, effects
        )
    if uses_iterator(calling.function):
        effects.add(Effect.PULLS)
        return _untraced(calling, kernels, f"it {effects.text()}", signature, effects)
    asked = _Asked(calling, kernels, origin, vectorize, signature, doing, effects)
    state = PythonState(calling.function)
    is_compiled = False
    try:
        found = _found_with_kernels(asked, state, may_draw=may_draw)
        is_compiled = found.compiled is not None
    finally:
        if not is_compiled:  # whoever calls it per element sees each call, and none before
            state.put_back()
    return found


def _found_with_kernels(asked: "_Asked", state: PythonState, *, may_draw: bool) -> Finding:
    """Trace a function anew as often as it shows that more must be known before it runs."""
    kernels, effects = asked.kernels, asked.effects
    why = "it works on text"
    for _ in range(_MOST_TRACES):
        try:
            return _found(replace(asked, kernels=kernels))
        except NewKernel as new:  # its results become parts of the element, and all begins anew
            try:
                kernels = kernels.with_call(new.call)
            except TypeError:  # it fails where it runs, and says why there
                break
        except Computed as wanted:
            kernels = kernels.with_computed(wanted.part)
        except NewVariables as read:  # their values become arguments
            kernels = kernels.with_variables(read.variables)
        except ProbeAbandoned as stop:
            why = stop.why
            break
        except DrawsForElements:
            if may_draw:
                raise
            effects.add(Effect.DRAWS)
            why = f"it {effects.text()}"
            break
        state.put_back()
    return _untraced(asked.calling, kernels, why, asked.signature, effects)


@final
@dataclass(frozen=True, slots=True)
class _Asked:
    """What a user said of a function, and the kernels that it is known to call."""

    calling: Calling
    kernels: Kernels
    origin: Origin | None
    vectorize: bool | None
    signature: Any
    doing: str
    effects: Effects


def _found(asked: _Asked) -> Finding:
    calling, kernels, signature, effects = (
        asked.calling,
        asked.kernels,
        asked.signature,
        asked.effects,
    )
    call, inputs = kernels.staged(calling, effects), kernels.specs
    attempts = _attempts(kernels)
    watched = ComparedTraces(calling, call, effects)
    outcomes = [watched.trace(rows) for rows in attempts]
    done = [outcome for outcome in outcomes if isinstance(outcome, Traced)]
    if not done:
        if (part := kernels.uncomputed()) is not None:  # JAX may know what to do with an array
            raise Computed(part)
        error = next(outcome for outcome in outcomes if isinstance(outcome, Exception))
        if not kernels.hide_values and _fails_always(asked, attempts[-1], outcomes):
            told = explained(error, calling, asked.doing, asked.origin, None)
            raise told from told.__cause__
        text = kernels.hide_values and not kernels.in_rows
        why = "it works on text" if text else _reason(error)
        return _untraced(calling, kernels, why, signature, effects)
    spec = _common_spec(done, inputs, len(attempts))
    compiled = Compiled(unseen(call, calling.function))
    why = _why_per_element(effects, asked.vectorize) or _why_not_signed(spec, signature)
    if len(attempts) == 1 and why is None:
        _check_fixed_index(compiled, attempts[0], done[0], kernels, asked.origin)
    if asked.vectorize is not False:
        _warn(calling.name, effects, asked.origin)
    if why is None:
        watched.leave_one_trace()
    said = signature if signature is not None else spec
    return Finding(
        calling,
        None if why else compiled,
        kernels,
        why or "it traces",
        said,
        effects,
        casts=True,
    )


def not_traced(calling: Calling, input_spec: Any, why: str, signature: Any) -> Finding:
    """Say of a function that it runs per element, without looking at what it does."""
    return _untraced(calling, kernels_for(input_spec), why, signature, Effects())


def kernels_for(input_spec: Any) -> Kernels:
    """Return no kernels, for a function of elements of `input_spec`."""
    return Kernels((), tuple(flatten(input_spec, DATA)))


def _has_rank(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or spec.shape.rank is not None


def _attempts(kernels: Kernels) -> list[RowShapes]:
    pairs = list(zip(kernels.specs, kernels.handles, strict=True))
    shapes = [spec.shape for spec, handle in pairs if isinstance(spec, TensorSpec) and not handle]
    lengths = _LENGTHS[:1] if all(s.is_fully_defined() for s in shapes) else _LENGTHS
    shared = list(map(shared_row, kernels.held()))
    return [
        (*(_row(spec, length, handle) for spec, handle in pairs), *shared) for length in lengths
    ]


def _row(spec: TypeSpec, length: int, handle: bool) -> Row | None:
    if handle or not isinstance(spec, TensorSpec):
        return None
    return Row(tuple(length if dim is None else dim for dim in spec.shape), spec.dtype)


def _untraced(
    calling: Calling, kernels: Kernels, why: str, signature: Any, effects: Effects
) -> Finding:
    if uses_generator(calling.function):  # tracing may not have come so far
        effects.add(Effect.DRAWS)
    return Finding(calling, None, kernels, why, signature, effects, casts=signature is not None)


def _reason(error: Exception) -> str:
    if refuses_tracing(error):
        return "it needs the values of its arguments while it runs"
    text = str(error).partition("\n")[0]
    return f"it does not trace: {type(error).__name__}: {text}"


def _fails_always(asked: _Asked, rows: RowShapes, outcomes: Sequence[Outcome]) -> bool:
    """Tell whether a function that did not trace fails for real values too, whatever they are."""
    errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if any(refuses_tracing(e) or isinstance(e, OSError) for e in errors):
        return False
    if len(errors) > 1 and len({str(error) for error in errors}) > 1:
        return False  # it depends on a length that is not known yet
    own = rows[: len(rows) - shared_count(rows)]
    sample = [None if row is None else np.zeros(row.shape, row.dtype) for row in own]
    try:
        with host_rules(), looked_at(asked.calling.function, asked.effects):
            asked.calling([as_argument(part) for part in sample])
    except (OSError, ProbeAbandoned):
        return False
    except Exception:  # noqa: BLE001 - the question was whether it fails
        return True
    return False


def _common_spec(done: Sequence[Traced], inputs: Sequence[TypeSpec], attempts: int) -> Any:
    """Return the spec that all traces have in common: a dimension that follows a length is unknown."""
    columns = zip(*(found.parts for found in done), strict=True)
    specs = [_common([_part_spec(part, inputs) for part in parts]) for parts in columns]
    if len(done) < min(2, attempts):  # one length alone does not show what follows it
        specs = [_without_lengths(spec) for spec in specs]
    structure = done[0].structure
    return specs[0] if structure is None else pack(structure, specs, DATA)


def _part_spec(part: Any, inputs: Sequence[TypeSpec]) -> TypeSpec:
    match part:
        case None:
            return NoneTensorSpec()
        case Handle():
            return inputs[part.index]
        case Row():
            return TensorSpec(part.shape, part.dtype)
        case _:
            return spec_of(part)


def _common(specs: Sequence[TypeSpec]) -> TypeSpec:
    found = specs[0].most_specific_common_supertype(specs[1:])
    return specs[0] if found is None else found


def _without_lengths(spec: TypeSpec) -> TypeSpec:
    return (
        TensorSpec([None] * len(spec.shape), spec.dtype) if isinstance(spec, TensorSpec) else spec
    )


def _why_per_element(effects: Effects, vectorize: bool | None) -> str | None:
    others = [effect for effect in effects if effect is not Effect.READS]
    if others:
        return f"it {effects.text(*others)}"
    return "vectorize=False" if vectorize is False else None


def _why_not_signed(spec: Any, signature: Any) -> str | None:
    """Say why a signature keeps a function from running on Blocks: each result is converted to it."""
    if signature is None:
        return None
    assert_same(signature, spec, DATA, names=("output_signature", "result"))
    pairs = zip(flatten(signature, DATA), flatten(spec, DATA), strict=True)
    unlike = next(
        (f"{one}, not {two}" for one, two in pairs if not one.is_compatible_with(two)), None
    )
    return None if unlike is None else f"output_signature says {unlike}"


def _check_fixed_index(
    compiled: Compiled, rows: RowShapes, found: Traced, kernels: Kernels, origin: Origin | None
) -> None:
    """Raise where an index that is written in the function is out of range for every element."""
    program = compiled.add(rows, found)
    if not found.fixed_index:
        return
    own = [row for row in rows if row is not None and not row.shared]
    zeros = [np.zeros((1, *row.shape), row.dtype) for row in own]
    held = kernels.held()
    _, failed = program.run(zeros, 1, held=held)
    if failed is not None and failed.any() and _is_fixed(program, zeros, held):
        raise InvalidArgumentError(
            "An index is out of range for every element.",
            fix="index within the shape that element_spec says.",
            origin=origin,
        )


def _is_fixed(program: Any, zeros: Sequence[Any], held: Sequence[Any]) -> bool:
    """Tell whether other values fail as well: an index may also come from the data."""
    _, failed = program.run([column + np.ones_like(column) for column in zeros], 1, held=held)
    return bool(failed.any())


def _warn(name: str, effects: Effects, origin: Origin | None) -> None:
    """Warn of a function that runs per element though nobody asked for it: by chance, or for a change unseen."""
    if Effect.DRAWS in effects:
        text = (
            f"{name} draws random numbers, so it runs once for each element: compiled, it would draw "
            "them once for all. Call random_map instead: its function gets a key, or a generator, made "
            "of the seed and the element's position."
        )
    elif Effect.VARIES in effects:
        text = (
            f"{name} returns something else each time it is called, as a counter or a clock does, so it "
            "runs once for each element: compiled, it would be called once for all. Number elements "
            "with enumerate, carry a state with scan, or draw random numbers with random_map instead."
        )
    else:
        return
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    warnings.warn_explicit(text, UserWarning, filename, line)
