"""Calls a user's function only to look at it: nothing that it does to variables and iterators is kept."""

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import to_array
from evenfeed.core.optional import ElementOptional, OptionalSpec
from evenfeed.core.seeds import CallSeeds
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import (
    Effect,
    Effects,
    ProbeAbandoned,
    Watcher,
    short_name,
    watched_by,
)
from evenfeed.core.specs import CompositeSpec, TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.plan.windows import DatasetSpec
from evenfeed.runtime.functions.calls import Calling, as_argument, host_rules, on_the_host
from evenfeed.runtime.functions.purity import RandomStates, generators
from evenfeed.runtime.functions.python_state import PythonState, uses_iterator
from evenfeed.runtime.functions.vectorise import stand_in, trace_state

# A function that pulls one iterator more often than this loops over it, and a stand-in has no end.
_MOST_PULLS: Final = 64

_ITERATES: Final = "it iterates over a dataset"


@final
class NewVariables(BaseException):
    """The function read variables that the trace did not know: it must be begun anew with them."""

    def __init__(self, variables: Iterable[Any]) -> None:
        super().__init__()
        self.variables = tuple(variables)


@final
class Probe(Watcher):
    """Answers for variables and iterators while a function is looked at.

    Args:
        effects: Where to note what the function touches.
        held: What stands for the variables that are known to be read; None where the function is not
            traced, but called with stand-ins.
        declares: Whether Python code that needs values is known by what it declares to return; otherwise the
            look ends there.

    Attributes:
        new: The variables that were read besides those.
    """

    inlines = True

    def __init__(
        self, effects: Effects, held: dict[Any, Any] | None = None, *, declares: bool = False
    ) -> None:
        self.rest = trace_state()
        self.seeds = CallSeeds(effects.seed, Counter())
        self.declares = declares
        self.new: list[Any] = []
        self._effects = effects
        self._is_traced = held is not None
        self._held = dict(held or {})
        self._pulls = Counter[int]()

    def read(self, variable: Any) -> Any:
        """Return what the function assigned, what stands for the variable, or what it holds."""
        own = variable.made_under is self
        if variable not in self._held:
            self._held[variable] = variable.at_rest()
            self.new += [] if own else [variable]
        if not own:
            self._effects.add(Effect.READS, short_name(variable))
        return self._held[variable]

    def traps(self, variable: Any) -> bool:
        """Keep all assignments from the variables."""
        if variable.made_under is not self:
            self._effects.add(Effect.ASSIGNS, short_name(variable))
        return True

    def write(self, variable: Any, value: Any) -> None:
        """Let later reads in this call find the value."""
        self._held[variable] = value

    def pull(self, iterator: Any) -> Any:
        """Return zeros like the next element, and leave the iterator where it is."""
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
        """Call no Python code that has effects of its own."""
        raise ProbeAbandoned(f"{what} needs values")

    def draw(self) -> None:
        """Note it."""
        self._effects.add(Effect.DRAWS)


def _is_known(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype.kind != "O" and _is_defined(spec.shape)


def _is_defined(shape: TensorShape) -> bool:
    return shape.rank is not None and shape.is_fully_defined()


@contextmanager
def looked_at(function: object, effects: Effects, *, declares: bool = False) -> Generator[None]:
    """Call a user's function in a block, for what can be learnt from that, and undo what it does.

    Raises:
        Abandoned: It takes elements from a Python iterator, which cannot be undone; or it needs values.
    """
    if uses_iterator(function):
        effects.add(Effect.PULLS)
        raise ProbeAbandoned(effects.text(Effect.PULLS))
    state, chance = PythonState(function), RandomStates(generators(function))
    try:
        with watched_by(Probe(effects, declares=declares)):
            yield
    finally:
        state.put_back()
        if chance.have_moved():
            effects.add(Effect.DRAWS)
            chance.put_back()


def spec_without_values(calling: Calling, effects: Effects) -> Any:
    """Return what a function returns; None if it cannot run without values.

    What `py_function` and kin return is known by its dtype, so then no shape is known. Lengths that follow
    those of arguments whose lengths are not known are not known either: arguments of other lengths show it.
    """
    found = _look(calling, effects, length=1)
    if found is None:
        return None
    structure, specs = found
    if any(map(_says_a_length, specs)) and any(map(_leaves_a_length_open, calling.specs)):
        other = _look(calling, effects, length=2)
        if other is not None and len(other[1]) == len(specs):
            specs = [_of_both(*pair) for pair in zip(specs, other[1], strict=True)]
    return specs[0] if structure is None else pack(structure, specs, DATA)


def _look(calling: Calling, effects: Effects, length: int) -> tuple[Any, list[TypeSpec]] | None:
    """Call a function with zeros, of `length` along each axis whose length is not known."""
    for declares in (False, True):
        try:
            with host_rules(), looked_at(calling.function, effects, declares=declares):
                arguments = [as_argument(zeros(spec, length)) for spec in calling.specs]
                structure, leaves, promises = calling.promising(arguments, stand_ins=declares)
        except (Exception, ProbeAbandoned):  # noqa: BLE001, S112 - zeros may have too few values to be reshaped
            continue
        loosened = of_any_rank if declares else of_any_length
        own = [loosened(type_spec_from_value(on_the_host(leaf))) for leaf in leaves]
        own = own if declares else _of_other_ranks(own, calling, arguments, effects)
        pairs = zip(own, promises, strict=True)
        return structure, [_narrowed(spec, promise.likely) for spec, promise in pairs]
    return None


def spec_of_first(
    calling: Calling, arguments: list[Any], effects: Effects
) -> tuple[Any, Any, list[Any]]:
    """Call a function with its first element; return the spec of all results, and this one.

    Its lengths may be others for the next element, but for those that are promised. These may have been
    worked out from this element: they must come without values too, where the function runs so.
    """
    structure, leaves, promises = calling.promising(arguments)
    leaves = [on_the_host(leaf) for leaf in leaves]
    own = [of_any_length(type_spec_from_value(leaf)) for leaf in leaves]
    own = _of_other_ranks(own, calling, arguments, effects)
    known = [promise.sure for promise in promises]
    if any(promise.says_a_length for promise in promises):
        again: list[TypeSpec] = flatten(spec_without_values(calling, effects), DATA)
        if again != [None] and len(again) == len(promises):
            pairs = zip(promises, again, strict=True)
            known = [_both(promise.likely, other) for promise, other in pairs]
    found = [_narrowed(spec, shape) for spec, shape in zip(own, known, strict=True)]
    return found[0] if structure is None else pack(structure, found, DATA), structure, leaves


def _of_other_ranks(
    found: list[TypeSpec], calling: Calling, arguments: list[Any], effects: Effects
) -> list[TypeSpec]:
    """Drop the ranks of results that follow those of arguments, which may be others for the next element.

    One more axis for these arguments shows it. Where the function fails then, the first element is believed.
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
            other = [of_any_length(type_spec_from_value(on_the_host(leaf))) for leaf in leaves]
    except (Exception, ProbeAbandoned):  # noqa: BLE001 - it may need the rank of the first element
        return found
    if len(other) != len(found):
        return found
    pairs = zip(found, other, strict=True)
    return [one if one == two else of_any_rank(one) for one, two in pairs]


def _has_rank(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or spec.shape.rank is not None


def _says_a_length(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and any(length is not None for length in spec.shape or ())


def _leaves_a_length_open(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or not spec.shape.is_fully_defined()


def _of_both(spec: TypeSpec, other: TypeSpec) -> TypeSpec:
    """Return a spec with the lengths that both have."""
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(_both(spec.shape, other), spec.dtype)


def _narrowed(spec: TypeSpec, shape: TensorShape) -> TypeSpec:
    if not isinstance(spec, TensorSpec) or not spec.shape.is_compatible_with(shape):
        return spec
    return TensorSpec(spec.shape.merge_with(shape), spec.dtype)


def _both(shape: TensorShape, other: TypeSpec) -> TensorShape:
    """Return what the shape has in common with that of a spec."""
    if not isinstance(other, TensorSpec):
        return TensorShape(None)
    common = shape.most_specific_common_supertype([other.shape])
    if common.rank is None:
        return common
    # No length of 0: it may be the value of an argument, as in zeros([x]), that is 0 in both calls.
    return TensorShape([length or None for length in common])


def zeros(spec: TypeSpec, length: int = 1) -> Any:
    """Return what stands for a part of an element; `length` for every length that is not known."""
    if isinstance(spec, DatasetSpec):
        return spec.stand_in()
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
    """Return a spec with the same dtype and rank, whatever the lengths."""
    if isinstance(spec, CompositeSpec):
        return spec.mapped(of_any_length)
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        return spec
    return TensorSpec([None] * spec.shape.rank, spec.dtype)


def of_any_rank(spec: TypeSpec) -> TypeSpec:
    """Return a spec with the same dtype, whatever the shape."""
    if isinstance(spec, CompositeSpec):
        return spec.mapped(of_any_rank)
    return TensorSpec(None, spec.dtype) if isinstance(spec, TensorSpec) else spec
