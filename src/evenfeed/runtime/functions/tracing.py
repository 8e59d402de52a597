"""Traces a user function to decide how it runs, and to find its output spec."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import Handle
from evenfeed.core.randomness.drawn_columns import DrawsVary
from evenfeed.core.randomness.random_bits import DrawsForElements
from evenfeed.core.side_effects import Effect, Effects, ProbeAbandoned
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec, spec_of
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.core.traced.kernel_stages import Computed, NewKernel
from evenfeed.runtime.functions.calls import (
    Calling,
    TraceArguments,
    as_argument,
    explained,
    host_rules,
)
from evenfeed.runtime.functions.compared_traces import ComparedTraces, Outcome, without_side_effects
from evenfeed.runtime.functions.compiled import Compiled, RowShapes
from evenfeed.runtime.functions.kernels import Kernels, shared_row
from evenfeed.runtime.functions.probing import NewVariables, looked_at
from evenfeed.runtime.functions.reach.captured_tensors import (
    key_of_straight_code,
    key_without_values,
    tensors_of,
)
from evenfeed.runtime.functions.reach.purity import uses_generator
from evenfeed.runtime.functions.reach.python_state import ReachableState, uses_iterator
from evenfeed.runtime.functions.reach.shared_findings import (
    Finding,
    is_worth_opening,
    key_of_trace,
    open_finding,
    share,
    share_open,
    shared_finding,
    why_untraceable,
)
from evenfeed.runtime.functions.staging.computed_first import computing_first
from evenfeed.runtime.functions.staging.row_failures import OUTSIDE
from evenfeed.runtime.functions.vectorise import Row, Traced, refuses_tracing

# Lengths to try for an unknown dimension. Dimensions of the result that change with it are unknown too. A short length
# shows slices (`x[:2]`); lengths with many divisors allow reshapes.
_LENGTHS: Final = (1, 12, 24)
# Lengths to try if none of these is accepted. A function that accepts only one of them wants just this one: a seed, say.
_WANTED_LENGTHS: Final = (2, 3, 4)

NEEDS_VALUES: Final = "it needs the values of its arguments while it runs"

# A function that needs more traces calls more kernels each time, in a loop over its own elements.
_MOST_TRACES: Final = 50


def finding_of(asked: TraceArguments) -> Finding:
    """Find out how a function runs, tracing it unless it must not be traced.

    A function that always does the same is traced once, as long as a dataset uses it.

    Raises:
        DrawsForElements: With `may_draw`, it draws random numbers that depend on the element's position.
    """
    key = key_of_trace(asked)
    key_of_others = None if key is not None else key_of_trace(asked, key_without_values)
    known = shared_finding(key) or open_finding(key_of_others, asked)
    if known is not None:
        return known
    key_of_steps = None if key is not None else key_of_trace(asked, key_of_straight_code)
    found = _newly_found(asked, why_untraceable(key if key is not None else key_of_steps))
    share(key, found)
    if found.why == NEEDS_VALUES:
        share(key_of_steps, found)
    if is_worth_opening(key_of_others):
        share_open(key_of_others, _with_open_tensors(asked), found)
    return found


def _with_open_tensors(asked: TraceArguments) -> Finding | None:
    """Trace a function with the tensors that it captures as arguments; None if it needs their values."""
    calling, kernels = _called_as(asked), _kernels_for(asked.input_spec)
    kernels = replace(kernels, tensors=tensors_of(asked.function))
    try:
        return _traced(_TraceRequest(asked, calling, kernels, Effects()))
    except (Exception, ProbeAbandoned):  # noqa: BLE001 - it is traced with their values
        return None


def _newly_found(asked: TraceArguments, known: str | None) -> Finding:
    calling, kernels = _called_as(asked), _kernels_for(asked.input_spec)
    if asked.returns_values:
        return Finding(calling, None, kernels, "it returns a dataset", None)
    request = _TraceRequest(asked, calling, kernels, Effects())
    untraced = asked.untraced or known or _why_values_are_needed(calling)
    found = _traced(request) if untraced is None else _untraced(request, untraced)
    return replace(found, output_spec=asked.returns) if found.output_spec is None else found


def _why_values_are_needed(calling: Calling) -> str | None:
    """Return why a function gets values instead of handles: kernels do not know sparse tensors."""
    sparse = (isinstance(spec, SparseTensorSpec) for spec in calling.specs)
    return "it gets a sparse tensor" if any(sparse) else None


def finding_elsewhere(
    asked: TraceArguments, spec: Any, effects: Effects, *, casts: bool
) -> Finding:
    """Return the finding for a function that was traced in another process, and runs per element in this one."""
    kernels = _kernels_for(asked.input_spec)
    return Finding(_called_as(asked), None, kernels, "processes=True", spec, effects, casts=casts)


def _called_as(asked: TraceArguments) -> Calling:
    return Calling(asked.function, asked.input_spec, spread=asked.spread)


@final
@dataclass(frozen=True, slots=True)
class _TraceRequest:
    """A function, and what is known about it so far: the kernels that it calls, and its effects."""

    asked: TraceArguments
    calling: Calling
    kernels: Kernels
    effects: Effects


def _traced(request: _TraceRequest) -> Finding:
    function, effects = request.calling.function, request.effects
    if not all(map(_has_rank, request.kernels.specs)):
        return _untraced(request, "the rank of an element is unknown")
    if uses_iterator(function):
        effects.add(Effect.PULLS)
        return _untraced(request, f"it {effects.text()}")
    state = ReachableState(function)
    is_compiled = False
    try:
        found = _traced_with_kernels(request, state)
        is_compiled = found.compiled is not None
    finally:
        if not is_compiled:  # per element, user code must see each call, and none before the first
            state.restore()
    return found


def _traced_with_kernels(request: _TraceRequest, state: ReachableState) -> Finding:
    """Restart the trace with each kernel or variable that it discovers."""
    given, effects = request.kernels, request.effects
    kernels = given
    why = "it works on text"
    for _ in range(_MOST_TRACES):
        request = replace(request, kernels=kernels)
        try:
            return _traced_once(request)
        except NewKernel as new:  # its results become parts of the element
            try:
                kernels = kernels.with_call(new.call)
            except NewVariables as read:
                kernels = kernels.with_variables(read.variables)
            except TypeError:  # it fails again when it runs, and says why
                break
        except Computed as wanted:
            kernels = kernels.with_computed(wanted.part)
        except NewVariables as read:  # their values become arguments
            kernels = kernels.with_variables(read.variables)
        except ProbeAbandoned as stop:
            why = stop.why
            break
        except DrawsVary:
            kernels = replace(given, draws_columns=False)
        except DrawsForElements:
            if request.asked.may_draw:
                raise
            effects.add(Effect.DRAWS)
            why = f"it {effects.text()}"
            break
        state.restore()
    return _untraced(replace(request, kernels=kernels), why)


def _traced_once(request: _TraceRequest) -> Finding:
    asked, calling, kernels, effects = (
        request.asked,
        request.calling,
        request.kernels,
        request.effects,
    )
    signature = asked.output_signature
    computing = computing_first(kernels, calling, effects)
    call, inputs = kernels.staged(calling, effects, computing), kernels.specs
    attempts = _attempts(kernels)
    watched = ComparedTraces(calling, call, effects)
    outcomes = [watched.trace(rows) for rows in attempts]
    done = [outcome for outcome in outcomes if isinstance(outcome, Traced)]
    if not done and len(attempts) > 1 and not any(map(_wants_values, outcomes)):
        wanted = [(rows, watched.trace(rows)) for rows in _attempts(kernels, _WANTED_LENGTHS)]
        done = [outcome for _, outcome in wanted if isinstance(outcome, Traced)]
        if done:
            attempts = [rows for rows, outcome in wanted if isinstance(outcome, Traced)]
    if not done:
        if (part := kernels.uncomputed()) is not None:  # JAX may be able to use an array
            raise Computed(part)
        error = next(outcome for outcome in outcomes if isinstance(outcome, Exception))
        if not kernels.hide_values and _fails_always(request, attempts[-1], outcomes):
            noted_error = explained(error, calling, asked.doing, asked.origin, None)
            raise noted_error from noted_error.__cause__
        text = kernels.hide_values and not kernels.in_rows
        why = "it works on text" if text else _reason(error)
        return _untraced(request, why)
    spec = _common_spec(done, inputs, len(attempts))
    compiled = Compiled(without_side_effects(call, calling.function))
    why = _why_per_element(effects, asked.vectorize) or _why_signature_differs(spec, signature)
    if len(attempts) == 1 and why is None:
        _check_fixed_index(compiled, attempts[0], done[0], kernels, asked.origin)
    if asked.vectorize is not False:
        _warn(calling.name, effects, asked.origin)
    if why is None:
        watched.restore_after_one_trace()
    if kernels.operations:
        effects.add(Effect.DRAWS_IN_TURN if why is None else Effect.DRAWS)
    output_spec = signature if signature is not None else spec
    return Finding(
        calling,
        None if why else compiled,
        kernels,
        why or "it traces",
        output_spec,
        effects,
        casts=True,
    )


def _kernels_for(input_spec: Any) -> Kernels:
    return Kernels((), tuple(flatten(input_spec, DATA)))


def _has_rank(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or spec.shape.rank is not None


def _wants_values(outcome: Outcome) -> bool:
    return isinstance(outcome, Exception) and refuses_tracing(outcome)


def _attempts(kernels: Kernels, lengths: tuple[int, ...] = _LENGTHS) -> list[RowShapes]:
    pairs = list(zip(kernels.specs, kernels.handles, strict=True))
    shapes = [spec.shape for spec, handle in pairs if isinstance(spec, TensorSpec) and not handle]
    lengths = lengths[:1] if all(s.is_fully_defined() for s in shapes) else lengths
    shared = list(map(shared_row, kernels.held()))
    return [
        (*(_row(spec, length, handle) for spec, handle in pairs), *shared) for length in lengths
    ]


def _row(spec: TypeSpec, length: int, handle: bool) -> Row | None:
    if handle or not isinstance(spec, TensorSpec):
        return None
    return Row(tuple(length if dim is None else dim for dim in spec.shape), spec.dtype)


def _untraced(request: _TraceRequest, why: str) -> Finding:
    signature, effects = request.asked.output_signature, request.effects
    # The trace may have stopped before the draw.
    if uses_generator(request.calling.function) or request.kernels.operations:
        effects.add(Effect.DRAWS)
    casts = signature is not None
    return Finding(request.calling, None, request.kernels, why, signature, effects, casts=casts)


def _reason(error: Exception) -> str:
    if refuses_tracing(error):
        return NEEDS_VALUES
    text = str(error).partition("\n")[0]
    return f"it does not trace: {type(error).__name__}: {text}"


def _fails_always(request: _TraceRequest, rows: RowShapes, outcomes: Sequence[Outcome]) -> bool:
    """Return True if a function that did not trace also fails for concrete values, whatever they are."""
    errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if any(refuses_tracing(e) or isinstance(e, OSError) for e in errors):
        return False
    if len(errors) > 1 and len({str(error) for error in errors}) > 1:
        return False  # the error depends on an unknown length
    own = rows[: len(request.kernels.inputs)]
    sample = [None if row is None else np.zeros(row.shape, row.dtype) for row in own]
    try:
        with host_rules(), looked_at(request.calling.function, request.effects):
            request.calling([as_argument(part) for part in sample])
    except (OSError, ProbeAbandoned):
        return False
    except Exception:  # noqa: BLE001 - any failure counts
        return True
    return False


def _common_spec(done: Sequence[Traced], inputs: Sequence[TypeSpec], attempts: int) -> Any:
    """Return the common spec of all traces. A dimension that differs between the traces is unknown."""
    columns = zip(*(found.parts for found in done), strict=True)
    specs = [_common([_part_spec(part, inputs) for part in parts]) for parts in columns]
    if len(done) < min(2, attempts):  # one length alone does not show what depends on it
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


def _why_signature_differs(spec: Any, signature: Any) -> str | None:
    """Return why an output_signature forces a function to run per element: it differs from the traced spec."""
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
    """Raise if a constant index in the function is out of range for every element."""
    program = compiled.add(rows, found)
    if not found.fixed_index:
        return
    own = [row for row in rows if row is not None and not row.shared]
    zeros = [np.zeros((1, *row.shape), row.dtype) for row in own]
    held = kernels.held()
    _, failed = program.run(zeros, 1, held=held)
    if failed is not None and np.any(failed == OUTSIDE) and _is_fixed(program, zeros, held):
        raise InvalidArgumentError(
            "An index is out of range for every element.",
            fix="index within the shape in element_spec.",
            origin=origin,
        )


def _is_fixed(program: Any, zeros: Sequence[Any], held: Sequence[Any]) -> bool:
    """Return True if other values fail too. Otherwise the index comes from the data."""
    _, failed = program.run([column + np.ones_like(column) for column in zeros], 1, held=held)
    return bool(np.any(failed == OUTSIDE))


def _warn(name: str, effects: Effects, origin: Origin | None) -> None:
    """Warn about a function that runs per element because it draws random numbers or its results vary."""
    if Effect.DRAWS in effects:
        text = (
            f"{name} draws random numbers, so it runs once per element: if it were compiled, all elements "
            "would get the same numbers. Call random_map instead: it passes the function a key, or a "
            "generator, derived from the seed and the element's position."
        )
    elif Effect.VARIES in effects:
        text = (
            f"{name} returns something else each time it is called, as a counter or a clock does, so it "
            "runs once per element: if it were compiled, it would be called only once. Number elements "
            "with enumerate, carry state with scan, or draw random numbers with random_map instead."
        )
    else:
        return
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    warnings.warn_explicit(text, UserWarning, filename, line)
