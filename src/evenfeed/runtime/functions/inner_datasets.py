"""User functions that return a dataset per element (flat_map, interleave), and checks on those datasets.

`InnerDatasets` finds the spec that all inner datasets share; `InnerElements` checks the elements that they produce.
"""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Final, Protocol, final
from weakref import WeakKeyDictionary

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import described
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, have_same_structure, map_structure
from evenfeed.core.text.text_columns import Texts
from evenfeed.plan.node import Node
from evenfeed.plan.templates import Template, placeholder
from evenfeed.plan.windows import DatasetSpec, Held
from evenfeed.runtime.functions.probing import looked_at, of_any_length, of_any_rank, zeros
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.run import FirstElements, Run

# Pairs of a value for stand-ins and a length for unknown dimensions. Two show what depends on them. The others are for
# functions that do not accept zeros, or accept only one value or length.
_STAND_INS: Final = ((0, 1), (1, 2), (2, 1), (0, 2))


@final
class KeptTemplate:
    """What the datasets of a function have in common, if it is known. It refers to user code, so the function keeps it."""

    def __init__(self) -> None:
        self.template: Template | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptTemplate, ()  # another process finds it again


@final
class InnerDatasets:
    """A function that returns a dataset per element, and the spec that all these datasets share.

    The spec comes from calling the function with two stand-ins for an element, as TensorFlow gets it by tracing.
    The stand-ins differ in values and lengths, to show what depends on these. A function that needs the values
    of elements is called with the first element instead.
    """

    is_pure = False

    def __init__(
        self, function: RowFunction, input_spec: Any, plan_of: Callable[[Any], Node]
    ) -> None:
        self.function = function
        self.input_spec: Any = input_spec
        self.specs: list[TypeSpec] = flatten(input_spec, DATA)
        self.plan_of = plan_of
        self._is_declared = False
        self._accepted: list[int] = []  # the lengths of stand-ins that the function accepts
        self.kept = KeptTemplate()  # the same in the copies for all passes
        # Reject at once a function that returns no dataset, or datasets that differ.
        if self._probed:
            _ = self.output_spec

    @property
    def origin(self) -> Origin | None:
        """The line of user code that asked for it."""
        return self.function.origin

    @property
    def asked(self) -> tuple[Any, ...]:
        """What determines its results."""
        return self.function.asked

    @property
    def first_elements(self) -> FirstElements | None:
        """The first elements that the function gets. Some of them may have been read already."""
        return self.function.first_elements

    def recalling(self) -> "InnerDatasets":
        """Return a copy for the pass over the first elements, which are not passed to the function again."""
        made = copy(self)
        made.function = self.function.recalling()
        return made

    def in_pass(self, run: Run, node: Node) -> "InnerDatasets":
        """Return a copy for one pass, at whose start the function's random operations restart their sequences."""
        made = copy(self)
        made.function = self.function.in_pass(run, node)
        return made

    def make(self, parts: list[Any], number: int | None = None) -> Node:
        """Return the plan of the dataset that the function returns for an element."""
        # A tensor keeps its dtype in a list; a NumPy scalar does not.
        arrays: list[Any] = [
            _as_array(_as_dataset(*pair)) for pair in zip(parts, self.specs, strict=True)
        ]
        return self.plan_of(self.function.one(arrays, number)[0])

    def of_placeholders(self, maker: object) -> Node:
        """Return the plan that the function returns for placeholders of the parts of an element."""
        parts = [placeholder(*pair, maker) for pair in enumerate(self.specs)]
        return self.plan_of(self.function.calling.plain(parts))

    @cached_property
    def output_spec(self) -> Any:
        """The element spec that all inner datasets share."""
        if not self._probed:
            spec = self.stand_in.element_spec
            widen = of_any_rank if self._is_declared else of_any_length
            return map_structure(widen, spec, rules=DATA)
        found = [spec for _, spec in self._probed]
        common = DatasetSpec(found[0]).most_specific_common_supertype(
            [DatasetSpec(spec) for spec in found[1:]]
        )
        if common is None:
            raise TypeError(
                described(
                    f"All datasets that {self.function.name} returns must have the same element structure and "
                    f"dtypes, but one holds {found[0]} and another {found[1]}.",
                    fix="return datasets with the same structure and dtypes for every element.",
                    origin=self.origin,
                )
            )
        if not all(map(_has_rank, self.specs)):  # stand-ins do not show what depends on the rank
            return map_structure(of_any_rank, common.element_spec, rules=DATA)
        if not self._shows_lengths:
            return map_structure(of_any_length, common.element_spec, rules=DATA)
        return common.element_spec

    @property
    def _shows_lengths(self) -> bool:
        """Whether two stand-ins were accepted, of different lengths if elements leave lengths open."""
        if all(map(_has_known_shape, self.specs)):
            return len(self._accepted) > 1
        return len(set(self._accepted)) > 1

    @property
    def stand_in(self) -> Node:
        """The plan that the function returns for a stand-in, or for the first element if it needs values."""
        return self._probed[0][0] if self._probed else self._plan_of_first_element

    @property
    def plan_seen(self) -> Node | None:
        """A plan that the function has returned already; None if that would need reading an element."""
        return self.stand_in if self._probed or "_plan_of_first_element" in vars(self) else None

    @cached_property
    def _probed(self) -> list[tuple[Node, Any]]:
        """The plans and specs for the stand-ins that the function accepts; empty if it needs values."""
        plans: list[Node] = []
        errors: list[Exception] = []
        try:
            with looked_at(self.function.asked[0], self.function.effects):
                for value, length in _STAND_INS:
                    try:
                        plans.append(
                            self.make([_stand_in_part(spec, value, length) for spec in self.specs])
                        )
                    except Exception as error:  # noqa: BLE001 - the next stand-in may work: batch(0) fails, for example
                        errors.append(error)
                    else:
                        self._accepted.append(length)
                    if self._shows_lengths:
                        break
                # Inside the probe, so that inner functions run no Python code.
                probed = _with_specs(plans)
        except ProbeAbandoned:
            return []
        if not plans and not self._takes_first_element(errors[0]):
            raise errors[0]
        return probed

    def _takes_first_element(self, error: Exception) -> bool:
        """Return True if a function that fails on stand-ins with this error may accept a real element."""
        if any(isinstance(spec, DatasetSpec) for spec in self.specs):
            return True  # it reads a dataset, and the stand-in for that has no elements
        if isinstance(error, (TypeError, AttributeError, NameError)):
            return False  # another value would not help
        try:
            _ = self._plan_of_first_element
        except Exception:  # noqa: BLE001 - the error for the stand-in is raised instead
            return False
        return True

    @cached_property
    def _plan_of_first_element(self) -> Node:
        error: Exception | None = None
        for result in self.function.first_results():
            if not isinstance(result, Exception):
                return self.plan_of(result[0])
            error = error or result
        if (plan := self._plan_by_declaration()) is not None:
            self._is_declared = True
            return plan
        raise error or ValueError(
            described(
                f"The element spec of the datasets that {self.function.name} returns is unknown: the "
                "function needs concrete values, and there is no element to call it with.",
                fix="call py_function and numpy_function in a map before or after this step.",
                origin=self.origin,
            )
        )

    def _plan_by_declaration(self) -> Node | None:
        """Return the plan for zeros, with `py_function` and similar calls known only by their declared dtypes."""
        try:
            with looked_at(self.function.asked[0], self.function.effects, declares=True):
                plan = self.make([zeros(spec) for spec in self.specs])
        except (Exception, ProbeAbandoned):  # noqa: BLE001 - it may need values other than zeros
            return None
        return plan if _with_specs([plan]) else None


def _has_known_shape(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined()


def _stand_in_part(spec: TypeSpec, value: int, length: int) -> Any:
    part = zeros(spec, length)
    has_numbers = isinstance(spec, TensorSpec) and spec.dtype != dtypes.string
    return np.full_like(part, value) if has_numbers else part


def _with_specs(plans: list[Node]) -> list[tuple[Node, Any]]:
    try:
        return [(plan, plan.element_spec) for plan in plans]
    except Exception:  # noqa: BLE001 - it may read a file that only an element names
        return []


def _has_rank(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or spec.shape.rank is not None


def _as_dataset(part: Any, spec: TypeSpec) -> Any:
    """Return a window that came as a plan, or as an array of its elements, as the Dataset that it is."""
    if isinstance(spec, DatasetSpec) and type(part) is np.ndarray:
        part = Held(spec.element_spec, (part,), len(part))
    return spec.made_of(part) if isinstance(spec, DatasetSpec) and type(part) is Held else part


def _as_array(part: Any) -> Any:
    scalar: Any = part
    return np.asarray(scalar) if isinstance(part, np.generic) else scalar


class HasPlan(Protocol):
    """Reads a plan."""

    plan: Node


@final
class InnerElements:
    """Checks that all inner datasets have one structure, and the dtypes of the first elements."""

    def __init__(self, element_spec: Any) -> None:
        self._spec = element_spec
        self._dtypes: list[Any] | None = None
        self._known: WeakKeyDictionary[HasPlan, bool] = WeakKeyDictionary()

    def match(self, inner: HasPlan, block: Block) -> bool:
        """Return True if elements have the expected structure, and the dtypes of the elements before them."""
        found = list(map(_dtype, block.columns))
        if not self._has_structure(inner):
            return False
        if self._dtypes is None:
            self._dtypes = found
        return found == self._dtypes

    def _has_structure(self, inner: HasPlan) -> bool:
        if inner not in self._known:  # compare a structure once, not for each element
            self._known[inner] = have_same_structure(self._spec, inner.plan.element_spec, DATA)
        return self._known[inner]


def unlike_elements() -> TypeError:
    """Return the error for an inner dataset that does not match."""
    return TypeError(
        described(
            "The function returned datasets whose elements differ in structure or dtype.",
            fix="return datasets with the same structure and dtypes for every element.",
        )
    )


def _dtype(column: Column) -> Any:
    """Return the dtype or class that all parts of a column share."""
    is_single = isinstance(column, list | RaggedTensor)
    part: Any = Block((column,), 1).row(0)[0] if is_single else column
    if isinstance(part, Texts | bytes):
        return dtypes.string
    return part.dtype if is_tensor(part) else part.__class__
