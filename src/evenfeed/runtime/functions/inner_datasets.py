"""Users' functions that make a dataset of an element."""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Final, final
from weakref import WeakKeyDictionary

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import described
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, have_same_structure, map_structure
from evenfeed.core.text.text_columns import Texts
from evenfeed.plan.node import Node
from evenfeed.plan.windows import DatasetSpec
from evenfeed.runtime.functions.probing import looked_at, of_any_length, of_any_rank, zeros
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.run import FirstElements, Inner, Run

# The values of stand-ins, and the lengths that are not known. Two of them show what hangs on these; the others
# are for functions that take no zeros, or no more than one value or one length.
_STAND_INS: Final = ((0, 1), (1, 2), (2, 1), (0, 2))


@final
class InnerDatasets:
    """A function that returns a dataset for each element, known by what those datasets hold.

    What they hold is learnt by calling the function with stand-ins for an element, as TensorFlow learns it
    by tracing: two, of other values and lengths, to see what hangs on these. A function that needs the
    values of elements is called with the first one instead.
    """

    is_pure = False

    def __init__(
        self, function: RowFunction, input_spec: Any, plan_of: Callable[[Any], Node]
    ) -> None:
        self.function = function
        self._specs: list[TypeSpec] = flatten(input_spec, DATA)
        self._plan_of = plan_of
        self._is_declared = False
        if (
            self._looks
        ):  # a function that returns no dataset, or unlike ones, is refused where it is given
            _ = self.output_spec

    @property
    def origin(self) -> Origin | None:
        """The user's line that asked for it."""
        return self.function.origin

    @property
    def asked(self) -> tuple[Any, ...]:
        """What decides its results."""
        return self.function.asked

    @property
    def first_elements(self) -> FirstElements | None:
        """The first elements that the function is given, of which some may have been read."""
        return self.function.first_elements

    def recalling(self) -> "InnerDatasets":
        """Return the same for the pass over the first elements: the function is not called with them again."""
        made = copy(self)
        made.function = self.function.recalling()
        return made

    def in_pass(self, run: Run) -> "InnerDatasets":
        """Return the same for one pass, in which the sequences of the function's random operations begin."""
        made = copy(self)
        made.function = self.function.in_pass(run)
        return made

    def make(self, parts: list[Any], number: int | None = None) -> Node:
        """Return the plan of the dataset that the function makes of an element."""
        # A tensor keeps its dtype in a list; a NumPy scalar does not.
        arrays: list[Any] = list(map(_as_array, parts))
        return self._plan_of(self.function.one(arrays, number)[0])

    @cached_property
    def output_spec(self) -> Any:
        """What the elements of the inner datasets have in common."""
        if not self._looks:
            spec = self.stand_in.element_spec
            loosened = of_any_rank if self._is_declared else of_any_length
            return map_structure(loosened, spec, rules=DATA)
        found = [spec for _, spec in self._looks]
        common = DatasetSpec(found[0]).most_specific_common_supertype(
            [DatasetSpec(spec) for spec in found[1:]]
        )
        if common is None:
            raise TypeError(
                described(
                    f"All datasets that {self.function.name} makes must hold alike elements, but one holds "
                    f"{found[0]} and another {found[1]}.",
                    fix="return datasets of one structure, with the same dtypes.",
                    origin=self.origin,
                )
            )
        if not all(map(_has_rank, self._specs)):  # what hangs on the rank, no stand-in shows
            return map_structure(of_any_rank, common.element_spec, rules=DATA)
        if len(found) == 1:  # nothing shows which lengths hang on values
            return map_structure(of_any_length, common.element_spec, rules=DATA)
        return common.element_spec

    @property
    def stand_in(self) -> Node:
        """The plan that the function makes of an element without a value; of the first, if it needs values."""
        return self._looks[0][0] if self._looks else self._plan_of_first_element

    @property
    def plan_seen(self) -> Node | None:
        """A plan that the function made already; None where an element would have to be read for one."""
        return self.stand_in if self._looks or "_plan_of_first_element" in vars(self) else None

    @cached_property
    def _looks(self) -> list[tuple[Node, Any]]:
        """What the function makes of stand-ins, of two that it takes; nothing if it needs values of elements."""
        plans: list[Node] = []
        errors: list[Exception] = []
        try:
            with looked_at(self.function.asked[0], self.function.effects):
                for value, length in _STAND_INS:
                    try:
                        plans.append(
                            self.make([_like(spec, value, length) for spec in self._specs])
                        )
                    except Exception as error:  # noqa: BLE001 - the next may do: no batch has 0 elements
                        errors.append(error)
                    if len(plans) == 2:
                        break
                looks = _with_specs(plans)  # here, where no Python code of inner functions runs
        except ProbeAbandoned:
            return []
        if not plans and not self._takes_first_element(errors[0]):
            raise errors[0]
        return looks

    def _takes_first_element(self, error: Exception) -> bool:
        """Return True if a function that takes no stand-in, for this reason, may take an element."""
        if any(isinstance(spec, DatasetSpec) for spec in self._specs):
            return True  # it looks into a dataset, and the one that stands for it has no elements
        if isinstance(error, (TypeError, AttributeError, NameError)):
            return False  # which no other value would change
        try:
            _ = self._plan_of_first_element
        except Exception:  # noqa: BLE001 - the error of the stand-in is raised
            return False
        return True

    @cached_property
    def _plan_of_first_element(self) -> Node:
        error: Exception | None = None
        for result in self.function.first_results():
            if not isinstance(result, Exception):
                return self._plan_of(result[0])
            error = error or result
        if (plan := self._plan_by_declaration()) is not None:
            self._is_declared = True
            return plan
        raise error or ValueError(
            described(
                f"What the datasets of {self.function.name} hold is not known: it needs values to run, "
                "and there is no element to call it with.",
                fix="call py_function and numpy_function in a map before, or after.",
                origin=self.origin,
            )
        )

    def _plan_by_declaration(self) -> Node | None:
        """Return what the function makes of zeros, where `py_function` and kin only say what they return."""
        try:
            with looked_at(self.function.asked[0], self.function.effects, declares=True):
                plan = self.make([zeros(spec) for spec in self._specs])
        except (Exception, ProbeAbandoned):  # noqa: BLE001 - it may need other values than zeros
            return None
        return plan if _with_specs([plan]) else None


def _like(spec: TypeSpec, value: int, length: int) -> Any:
    part = zeros(spec, length)
    has_numbers = isinstance(spec, TensorSpec) and spec.dtype != dtypes.string
    return np.full_like(part, value) if has_numbers else part


def _with_specs(plans: list[Node]) -> list[tuple[Node, Any]]:
    try:
        return [(plan, plan.element_spec) for plan in plans]
    except Exception:  # noqa: BLE001 - it reads a file, say, whose name an element would tell
        return []


def _has_rank(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or spec.shape.rank is not None


def _as_array(part: Any) -> Any:
    scalar: Any = part
    return np.asarray(scalar) if isinstance(part, np.generic) else scalar


@final
class InnerElements:
    """The structure that all inner datasets must have, and the dtypes that the first elements show."""

    def __init__(self, element_spec: Any) -> None:
        self._spec = element_spec
        self._dtypes: list[Any] | None = None
        self._known: WeakKeyDictionary[Inner, bool] = WeakKeyDictionary()

    def match(self, inner: Inner, block: Block) -> bool:
        """Return True if elements have the structure of the outer dataset, and the dtypes of those before them."""
        found = list(map(_dtype, block.columns))
        if not self._has_structure(inner):
            return False
        if self._dtypes is None:
            self._dtypes = found
        return found == self._dtypes

    def _has_structure(self, inner: Inner) -> bool:
        if inner not in self._known:  # a structure is compared once, not for each element
            self._known[inner] = have_same_structure(self._spec, inner.plan.element_spec, DATA)
        return self._known[inner]


def unlike_elements() -> TypeError:
    """Return the error for an inner dataset that does not match."""
    return TypeError(
        described(
            "A function makes datasets whose elements differ in structure or dtype.",
            fix="return datasets of one structure, with the same dtypes, for all elements.",
        )
    )


def _dtype(column: Column) -> Any:
    """Return what the parts of all elements have in common, whatever their shapes."""
    part: Any = column[0] if isinstance(column, list) else column
    if isinstance(part, Texts | bytes):
        return dtypes.string
    return part.dtype if is_tensor(part) else part.__class__
