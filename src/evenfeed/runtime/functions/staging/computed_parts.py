"""Functions that make datasets of what they compute, as in `flat_map(lambda i: Dataset.range(i, i + 4))`.

Such a function is traced. What it passes to the methods of datasets becomes the results of another function, which runs on
whole Blocks, and the parts of the element from which a plan with holes is filled.
"""

from collections import Counter
from functools import partial
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.handles import Handle
from evenfeed.core.randomness.drawn_columns import Turns
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.plan.node import Node
from evenfeed.plan.templates import PartHandle, TakesParts, placeholder, taking_parts
from evenfeed.plan.windows import DatasetSpec
from evenfeed.runtime.functions.blockwise import on_blocks
from evenfeed.runtime.functions.calls import bound, in_one_tensor
from evenfeed.runtime.functions.compiled import Compiled
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.kernels import Kernels
from evenfeed.runtime.functions.row_function import RowFunction, trace
from evenfeed.runtime.functions.staging.computed_first import ComputedFirst
from evenfeed.runtime.functions.vectorise import is_tracer


@final
class ComputedParts(TakesParts):
    """What one call of a traced function passes to the methods of datasets.

    Args:
        maker: Identifies the function.
        specs: The specs of these values, if they are known.

    Attributes:
        values: The values, each once.
        seen: The specs that they have in this trace, which may be those of one length and of wider numbers.
    """

    def __init__(self, maker: object, specs: list[TypeSpec] | None) -> None:
        self.values: list[Any] = []
        self.seen: list[TypeSpec] = []
        self._maker = maker
        self._specs = specs
        self._places: dict[int, int] = {}

    def part_for(self, value: Any) -> PartHandle | None:
        value = in_one_tensor(value)
        spec = _spec_of(value)
        if spec is None:
            return None
        place = self.place(value, spec)
        return PartHandle(
            place, self.seen[place] if self._specs is None else self._specs[place], self._maker
        )

    def place(self, value: Any, spec: TypeSpec) -> int:
        """Return the number of the part that a value is."""
        place = self._places.setdefault(id(value), len(self.values))
        if place == len(self.values):
            self.values.append(value)
            self.seen.append(spec)
        return place

    def dataset(self, value: Any, spec: TypeSpec) -> Any:
        """Return a placeholder for a part of the element that is a dataset; any other part unchanged."""
        if not isinstance(spec, DatasetSpec):
            return value
        return placeholder(self.place(value, spec), spec, self._maker)


def _spec_of(value: Any) -> TensorSpec | None:
    if is_tracer(value):
        return TensorSpec(value.shape, np.dtype(value.dtype))
    is_part = isinstance(value, Handle) and not isinstance(value, PartHandle)
    return value.tensor_spec if is_part and value.stands_for_tensor else None


@final
class TracedPlans:
    """Traces a function that makes datasets.

    Attributes:
        plans: The plans with holes that it made in the trace, one for each call.
        function: What computes the parts that the holes name.
    """

    def __init__(self, datasets: InnerDatasets, maker: object) -> None:
        self._plan_of, self._input_specs = datasets.plan_of, datasets.specs
        self._maker = maker
        self._specs: list[TypeSpec] | None = None
        self._seen: list[TypeSpec] = []
        self.plans: list[Node] = []
        self.function = self._traced(datasets)
        specs: list[TypeSpec] = flatten(self.function.output_spec, DATA)
        if specs != self._seen:  # the plans are those of another length, or of wider numbers
            self._specs, self.plans = specs, []
            self.function = self._traced(datasets)

    def _traced(self, datasets: InnerDatasets) -> RowFunction:
        asked = datasets.function
        call = bound(self._parts, asked.calling.function)
        return trace(call, datasets.input_spec, asked.origin, doing="creating a dataset from")

    def _parts(self, function: Any, *element: Any) -> tuple[Any, ...]:
        taken = ComputedParts(self._maker, self._specs)
        pairs = zip(flatten(element, DATA), self._input_specs, strict=True)
        given = pack(element, [taken.dataset(*pair) for pair in pairs], DATA)
        with taking_parts(taken):
            plan = self._plan_of(function(*given))
        self.plans = [*self.plans[:1], plan]
        self._seen = taken.seen
        return tuple(taken.values)

    def compute(self, *, rounds: bool) -> "partial[Block] | None":
        """Return what computes the parts on whole Blocks; None if that could give other bits than single calls do.

        Args:
            rounds: Whether single calls round floats after each step, as NumPy does.
        """
        traced = self.function.traced
        if traced is None or not _is_exact(traced[0], rounds=rounds):
            return None
        if any(isinstance(call.kernel, ComputedFirst) for call in traced[1].calls):
            return None
        return partial(_computed, *traced, rounds=rounds)


def _is_exact(compiled: Compiled, *, rounds: bool) -> bool:
    return compiled.is_exact and (rounds or not compiled.rounds)


def _computed(compiled: Compiled, kernels: Kernels, elements: Block, *, rounds: bool) -> Block:
    """Compute the parts of all elements.

    Raises:
        TypeError: One of them fails, or has a shape for which there is no program.
    """
    found = on_blocks(compiled, kernels, elements, None, Turns(Counter(), ()))
    failed = found is None or (found[1] is not None and found[1].any())
    if found is None or failed or not _is_exact(compiled, rounds=rounds):
        raise TypeError("The function must be called for each of these elements.")
    return found[0]
