"""Learns what a function returns by calling it without values: with zeros like an element."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.optional import ElementOptional, OptionalSpec
from evenfeed.core.side_effects import Abandoned, Effects
from evenfeed.core.specs import CompositeSpec, TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.plan.windows import DatasetSpec
from evenfeed.runtime.calls import Calling, as_argument, host_rules, on_the_host
from evenfeed.runtime.probing import looked_at


def spec_without_values(calling: Calling, specs: Sequence[TypeSpec], effects: Effects) -> Any:
    """Return what a function returns for elements of `specs`; None if it cannot run without values.

    What `py_function` and kin return is known by its dtype, so then no shape is known.
    """
    for declares in (False, True):
        try:
            with host_rules(), looked_at(calling.function, effects, declares=declares):
                structure, leaves = calling([as_argument(zeros(spec)) for spec in specs])
        except Abandoned:
            continue
        except Exception:  # noqa: BLE001 - it may need other values than zeros
            return None
        loosened = of_any_rank if declares else of_any_length
        found = [loosened(type_spec_from_value(on_the_host(leaf))) for leaf in leaves]
        return found[0] if structure is None else pack(structure, found, DATA)
    return None


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
