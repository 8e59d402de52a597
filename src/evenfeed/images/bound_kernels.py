"""Kernels with some arguments that are the same for all elements, such as the boxes to draw on every image."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import numpy as np

from evenfeed.core.conversion import Array, to_array
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import RowKernel, stands_for_part

_Value = TypeVar("_Value")


@final
@dataclass(frozen=True)
class BoundKernel(RowKernel):
    """Runs another kernel with constants.

    Attributes:
        kernel: The other kernel.
        places: Where the constants stand among its arguments.
        contents: Their dtypes, shapes and bytes, by which kernels are compared.
        constants: The constants.
    """

    kernel: RowKernel
    places: tuple[int, ...]
    contents: tuple[Any, ...]
    constants: tuple[Array, ...] = field(compare=False)

    def spec(self, *given: TensorSpec) -> TensorSpec:
        fixed = [TensorSpec(array.shape, array.dtype) for array in self.constants]
        return self.kernel.spec(*self._all(given, fixed))

    def one(self, *parts: Array) -> Array:
        return self.kernel.one(*self._all(parts, self.constants))

    def _all(self, given: Sequence[_Value], fixed: Sequence[_Value]) -> list[_Value]:
        values = list(given)
        for place, value in zip(self.places, fixed, strict=True):
            values.insert(place, value)
        return values


def applied_beside_constants(kernel: RowKernel, *values: Any) -> Any:
    """Run a kernel on values, or return a handle for its result if some value is part of a traced element.

    The others may be constants. If they are computed from other parts, the function runs element by element.
    """
    parts = [value for value in values if stands_for_part(value)]
    if len(parts) in (0, len(values)):
        return applied(kernel, *values)
    places = [place for place, value in enumerate(values) if not stands_for_part(value)]
    try:
        constants = [np.array(to_array(values[place])) for place in places]
    except (TypeError, ValueError):  # a value that JAX computes
        return applied(kernel, *values)
    contents = tuple((array.dtype.str, array.shape, array.tobytes()) for array in constants)
    return applied(BoundKernel(kernel, tuple(places), contents, tuple(constants)), *parts)
