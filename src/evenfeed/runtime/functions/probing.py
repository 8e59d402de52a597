"""Probes a user function: calls it with stand-ins to find its output spec, and undoes its side effects.

`Probe` answers for variables and iterators meanwhile, `looked_at` restores Python objects and random generators, and
`spec_without_values` and `spec_of_first` find the spec of the results.
"""

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import to_array
from evenfeed.core.errors import described
from evenfeed.core.optional import ElementOptional, OptionalSpec
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.randomness.seeds import CallSeeds
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import (
    Effect,
    Effects,
    ProbeAbandoned,
    Watcher,
    short_name,
    watched_by,
)
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.specs import CompositeSpec, TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.core.tensor_types import trial
from evenfeed.runtime.functions.calls import Calling, as_argument, host_rules, on_the_host
from evenfeed.runtime.functions.reach.purity import RandomStates
from evenfeed.runtime.functions.reach.python_state import ReachableState, uses_iterator
from evenfeed.runtime.functions.vectorise import stand_in, trace_state

# A function that pulls one iterator more often loops over it, and a stand-in never ends.
_MOST_PULLS: Final = 64

_ITERATES: Final = "it iterates over a dataset"


@final
class NewVariables(BaseException):
    """The function read variables that the trace did not know, so the trace must restart with them."""

    def __init__(self, variables: Iterable[Any]) -> None:
        super().__init__()
        self.variables = tuple(variables)


@final
class Probe(Watcher):
    """Answers for variables and iterators while a function is probed.

    Args:
        effects: Collects the function's side effects.
        held: The tracers for the variables that the function is known to read; None if the function is not
            traced, but called with stand-ins.
        declares: Whether Python code that needs values is replaced by the dtypes that it declares. Otherwise the
            probe stops there.
        draws_columns: Whether random operations draw numbers for whole Blocks.

    Attributes:
        new: The other variables that the function read.
    """

    inlines = True

    def __init__(
        self,
        effects: Effects,
        held: dict[Any, Any] | None = None,
        *,
        declares: bool = False,
        draws_columns: bool = False,
    ) -> None:
        self.rest = trace_state()
        self.seeds = CallSeeds(effects.seed, Counter())
        self.declares = declares
        self.draws_columns = draws_columns
        self.new: list[Any] = []
        self._effects = effects
        self._is_traced = held is not None
        self._held = dict(held or {})
        self._pulls = Counter[int]()

    def read(self, variable: Any) -> Any:
        """Return the value that the function assigned, the variable's tracer, or its current value."""
        own = variable.made_under is self
        if variable not in self._held:
            self._held[variable] = variable.at_rest()
            self.new += [] if own else [variable]
        if not own:
            self._effects.add(Effect.READS, short_name(variable))
        return self._held[variable]

    def traps(self, variable: Any) -> bool:
        """Keep all assignments away from the real variables."""
        if variable.made_under is not self:
            self._effects.add(Effect.ASSIGNS, short_name(variable))
        return True

    def write(self, variable: Any, value: Any) -> None:
        """Keep the value for later reads in this call."""
        self._held[variable] = value

    def pull(self, iterator: Any) -> Any:
        """Return zeros like the next element, without advancing the iterator."""
        if iterator.made_under is self:
            if self._is_traced:
                raise ProbeAbandoned(_ITERATES)
            return None
        self._effects.add(Effect.PULLS)
        self._pulls[id(iterator)] += 1
        specs: list[TypeSpec] = flatten(iterator.element_spec, DATA)
        if self._pulls[id(iterator)] > _MOST_PULLS or not all(map(_is_known, specs)):
            raise ProbeAbandoned(self._effects.text(Effect.PULLS))
        return pack(iterator.element_spec, list(map(stand_in, specs)), DATA)

    def call(self, what: str) -> None:
        """Stop the probe before Python code with side effects."""
        raise ProbeAbandoned(f"{what} needs values")

    def draw(self) -> None:
        self._effects.add(Effect.DRAWS)

    def show(self) -> None:
        """Stop a trace before a tracer becomes text, as in `f"{x}.png"`: all elements would get the same text."""
        if self._is_traced:
            raise ProbeAbandoned("it turns an element into text")


def _is_known(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype.kind != "O" and _is_defined(spec.shape)


def _is_defined(shape: TensorShape) -> bool:
    return shape.rank is not None and shape.is_fully_defined()


@contextmanager
def looked_at(function: object, effects: Effects, *, declares: bool = False) -> Generator[None]:
    """Probe a user function in this context, and undo its side effects afterwards.

    Raises:
        ProbeAbandoned: It needs values, or it takes elements from a Python iterator, which cannot be undone.
    """
    if uses_iterator(function):
        effects.add(Effect.PULLS)
        raise ProbeAbandoned(effects.text(Effect.PULLS))
    state, random_states = ReachableState(function), RandomStates.around(function)
    was_trial, trial.is_on = trial.is_on, True
    try:
        with watched_by(Probe(effects, declares=declares)):
            yield
    finally:
        trial.is_on = was_trial
        state.restore()
        if random_states.have_changed():
            effects.add(Effect.DRAWS)
            random_states.restore()


def spec_without_values(calling: Calling, effects: Effects) -> Any:
    """Return the output spec of a function; None if it cannot run without values.

    `py_function` and similar calls only declare dtypes, so shapes are unknown then. Lengths that depend on unknown
    lengths of arguments are unknown too. Calls with different lengths show which these are.
    """
    found = _probe(calling, effects, length=1)
    if found is None:
        return None
    structure, specs = found
    if any(map(_has_known_length, specs)) and any(map(_has_unknown_length, calling.specs)):
        other = _probe(calling, effects, length=2)
        if other is not None and len(other[1]) == len(specs):
            specs = [_agreed_spec(*pair) for pair in zip(specs, other[1], strict=True)]
    return specs[0] if structure is None else pack(structure, specs, DATA)


def _probe(calling: Calling, effects: Effects, length: int) -> tuple[Any, list[TypeSpec]] | None:
    """Call a function with zeros, of `length` along each axis of unknown length."""
    for declares in (False, True):
        try:
            with host_rules(), looked_at(calling.function, effects, declares=declares):
                arguments = [as_argument(zeros(spec, length)) for spec in calling.specs]
                structure, leaves, promises = calling.promising(arguments, stand_ins=declares)
        except (Exception, ProbeAbandoned):  # noqa: BLE001, S112 - zeros may have too few values to be reshaped
            continue
        widen = of_any_rank if declares else of_any_length
        own = [_spec_of(leaf, calling, arguments) or widen(_value_spec(leaf)) for leaf in leaves]
        own = own if declares else _without_varying_ranks(own, calling, arguments, effects)
        pairs = zip(own, promises, strict=True)
        return structure, [
            _narrowed(spec, promise.likely, promise.given) for spec, promise in pairs
        ]
    return None


def spec_of_first(
    calling: Calling, arguments: list[Any], effects: Effects
) -> tuple[Any, Any, list[Any]]:
    """Call a function with its first element; return the output spec, and the structure and parts of the result.

    The next element may have other lengths, except those that the function promises. Promised lengths may come
    from this element's values, so a probe without values must confirm them if the function can run that way.
    """
    structure, leaves, promises = calling.promising(arguments)
    leaves = [on_the_host(leaf) for leaf in leaves]
    own = [
        _spec_of(leaf, calling, arguments) or of_any_length(_value_spec(leaf)) for leaf in leaves
    ]
    own = _without_varying_ranks(own, calling, arguments, effects)
    known = [promise.sure for promise in promises]
    if any(promise.says_a_length for promise in promises):
        again: list[TypeSpec] = flatten(spec_without_values(calling, effects), DATA)
        if again != [None] and len(again) == len(promises):
            pairs = zip(promises, again, strict=True)
            known = [_agreed_shape(promise.likely, other) for promise, other in pairs]
    given = [promise.given for promise in promises]
    found = [_narrowed(*each) for each in zip(own, known, given, strict=True)]
    return found[0] if structure is None else pack(structure, found, DATA), structure, leaves


def _value_spec(leaf: Any) -> TypeSpec:
    return type_spec_from_value(on_the_host(leaf))


def _spec_of(leaf: Any, calling: Calling, arguments: list[Any]) -> TypeSpec | None:
    """Return the spec of a ragged or sparse argument that a function returns unchanged; None for other results."""
    pairs = zip(arguments, calling.specs, strict=True)
    known = (spec for value, spec in pairs if value is leaf and isinstance(spec, BatchableSpec))
    return next(known, None)


def _without_varying_ranks(
    found: list[TypeSpec], calling: Calling, arguments: list[Any], effects: Effects
) -> list[TypeSpec]:
    """Drop the ranks of results that follow an argument of unknown rank: the next element may have another rank.

    To find these results, call the function with one more axis on such arguments. If it fails, keep all ranks.
    """
    if all(map(_has_rank, calling.specs)):
        return found
    deeper = [
        argument if _has_rank(spec) else as_argument(to_array(argument)[None])
        for argument, spec in zip(arguments, calling.specs, strict=True)
    ]
    try:
        with host_rules(), looked_at(calling.function, effects):
            leaves = calling(deeper)[1]
            other = [of_any_length(_value_spec(leaf)) for leaf in leaves]
    except (Exception, ProbeAbandoned):  # noqa: BLE001 - it may need exactly the rank of the first element
        return found
    if len(other) != len(found):
        return found
    pairs = zip(found, other, strict=True)
    return [one if one == two else of_any_rank(one) for one, two in pairs]


def _has_rank(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or spec.shape.rank is not None


def _has_known_length(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and any(length is not None for length in spec.shape or ())


def _has_unknown_length(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or not spec.shape.is_fully_defined()


def _agreed_spec(spec: TypeSpec, other: TypeSpec) -> TypeSpec:
    """Return a spec with the lengths on which both agree."""
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(_agreed_shape(spec.shape, other), spec.dtype)


def _narrowed(spec: TypeSpec, *shapes: TensorShape) -> TypeSpec:
    for shape in shapes:
        if isinstance(spec, TensorSpec) and spec.shape.is_compatible_with(shape):
            spec = TensorSpec(spec.shape.merge_with(shape), spec.dtype)
    return spec


def _agreed_shape(shape: TensorShape, other: TypeSpec) -> TensorShape:
    """Return the shape on which a shape and a spec agree."""
    if not isinstance(other, TensorSpec):
        return TensorShape(None)
    common = shape.most_specific_common_supertype([other.shape])
    if common.rank is None:
        return common
    # Drop lengths of 0: one may be the value of an argument that is 0 in both calls, as in zeros([x]).
    return TensorShape([length or None for length in common])


def zeros(spec: TypeSpec, length: int = 1) -> Any:
    """Return a stand-in of zeros for a part of an element, with `length` for unknown lengths."""
    if isinstance(spec, BatchableSpec):
        return spec.stand_in(length)
    if isinstance(spec, OptionalSpec):
        parts = [zeros(part, length) for part in flatten(spec.element_spec, DATA)]
        return ElementOptional(pack(spec.element_spec, parts, DATA), spec.element_spec)
    if not isinstance(spec, TensorSpec):
        return None
    shape = [length if dim is None else dim for dim in spec.shape or ()]
    if spec.dtype == dtypes.string:
        return np.full(shape, b"", dtypes.string)
    return np.zeros(shape, spec.dtype)


def of_any_length(spec: TypeSpec) -> TypeSpec:
    """Return a spec with the same dtype and rank, and unknown lengths."""
    if isinstance(spec, CompositeSpec):
        return spec.mapped(of_any_length)
    if isinstance(spec, RaggedTensorSpec | SparseTensorSpec):
        return spec.with_shape(None if spec.shape.rank is None else [None] * spec.shape.rank)
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        return spec
    return TensorSpec([None] * spec.shape.rank, spec.dtype)


def of_any_rank(spec: TypeSpec) -> TypeSpec:
    """Return a spec with the same dtype, and an unknown shape."""
    if isinstance(spec, CompositeSpec):
        return spec.mapped(of_any_rank)
    if isinstance(spec, RaggedTensorSpec | SparseTensorSpec):
        return spec.with_shape(None)
    return TensorSpec(None, spec.dtype) if isinstance(spec, TensorSpec) else spec


def unknown_spec(name: str, origin: Origin | None) -> ValueError:
    """Return the error for a function whose output spec only an element would show, if there is none."""
    return ValueError(
        described(
            f"The output spec of {name} is unknown: the function needs concrete values, and "
            "there is no element to call it with.",
            fix="pass it: map(..., output_signature=tf.TensorSpec(shape, dtype)).",
            origin=origin,
        )
    )
