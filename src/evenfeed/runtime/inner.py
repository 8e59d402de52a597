"""Users' functions that make a dataset of an element."""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, final

import numpy as np

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import described
from evenfeed.core.side_effects import Abandoned
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, map_structure, pack
from evenfeed.plan.node import Node
from evenfeed.plan.windows import DatasetSpec
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.looking import of_any_length, of_any_rank, zeros
from evenfeed.runtime.probing import looked_at
from evenfeed.runtime.run import FirstElements, Run


@final
class InnerDatasets:
    """A function that returns a dataset for each element, known by what those datasets hold.

    What they hold is learnt by calling the function with empty stand-ins for an element, as TensorFlow
    learns it by tracing; twice where a dimension is not known, to see what hangs on it. A function that
    needs values is called with the first element instead.
    """

    is_pure = False

    def __init__(
        self, function: RowFunction, input_spec: Any, plan_of: Callable[[Any], Node]
    ) -> None:
        self.function = function
        self._specs: list[TypeSpec] = flatten(input_spec, DATA)
        self._plan_of = plan_of
        self._is_declared = False
        _ = self._looks  # a function that returns no dataset is refused where it is given

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
        pairs = zip(*(flatten(spec, DATA) for spec in found), strict=True)
        specs = [a.most_specific_common_supertype([b]) for a, b in pairs]
        if not all(map(_has_rank, self._specs)):  # what hangs on the rank, no stand-in shows
            specs = [of_any_rank(spec) for spec in specs]
        return pack(found[0], specs, DATA)

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
        """What the function makes of elements without values, of two lengths; nothing if it needs values."""
        try:
            with looked_at(self.function.asked[0], self.function.effects):
                plans = [self.make([zeros(spec, n) for spec in self._specs]) for n in (1, 2)]
                return _with_specs(plans)
        except Abandoned:
            return []
        except Exception:
            if any(isinstance(spec, DatasetSpec) for spec in self._specs):
                return []  # it looks into a dataset, and the one that stands for it has no elements
            raise

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
        except (Exception, Abandoned):  # noqa: BLE001 - it may need other values than zeros
            return None
        return plan if _with_specs([plan]) else None


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
