"""Users' functions that make a dataset of an element."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.callsite import Origin
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.plan.node import Node
from evenfeed.plan.windows import DatasetSpec
from evenfeed.runtime.functions import RowFunction


@final
class InnerDatasets:
    """A function that returns a dataset for each element, known by what those datasets hold.

    What they hold is learnt by calling the function with empty stand-ins for an element, as TensorFlow
    learns it by tracing; twice where a dimension is not known, to see what hangs on it.
    """

    is_pure = False

    def __init__(
        self, function: RowFunction, input_spec: Any, plan_of: Callable[[Any], Node]
    ) -> None:
        self.function = function
        self._specs: list[TypeSpec] = flatten(input_spec, DATA)
        self._plan_of = plan_of
        _ = self.output_spec  # a function that returns no dataset is refused where it is given

    @property
    def origin(self) -> Origin | None:
        """The user's line that asked for it."""
        return self.function.origin

    @property
    def asked(self) -> tuple[Any, ...]:
        """What decides its results."""
        return self.function.asked

    def make(self, parts: list[Any]) -> Node:
        """Return the plan of the dataset that the function makes of an element."""
        return self._plan_of(self.function.one(parts)[0])

    @cached_property
    def output_spec(self) -> Any:
        """What the elements of the inner datasets have in common."""
        found = [self.stand_in.element_spec, self._made(2).element_spec]
        pairs = zip(*(flatten(spec, DATA) for spec in found), strict=True)
        specs = [a.most_specific_common_supertype([b]) for a, b in pairs]
        if not all(map(_has_rank, self._specs)):  # what hangs on the rank, no stand-in shows
            specs = [_of_any_rank(spec) for spec in specs]
        return pack(found[0], specs, DATA)

    @property
    def stand_in(self) -> Node:
        """The plan that the function makes of an element without a value."""
        return self._plan_without_values

    @cached_property
    def _plan_without_values(self) -> Node:
        return self._made(1)

    def _made(self, length: int) -> Node:
        return self.make([_zeros(spec, length) for spec in self._specs])


def _has_rank(spec: TypeSpec) -> bool:
    return not isinstance(spec, TensorSpec) or spec.shape.rank is not None


def _of_any_rank(spec: TypeSpec) -> TypeSpec:
    return TensorSpec(None, spec.dtype) if isinstance(spec, TensorSpec) else spec


def _zeros(spec: TypeSpec, length: int) -> Any:
    if isinstance(spec, DatasetSpec):
        return spec.stand_in()
    if not isinstance(spec, TensorSpec):
        return None
    shape = [length if dim is None else dim for dim in spec.shape or ()]
    if spec.dtype == dtypes.string:
        return np.full(shape, b"", dtypes.string)
    return np.zeros(shape, spec.dtype)
