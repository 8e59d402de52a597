"""Brings what a user's function returns to one spec, where it runs element by element."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.structure import DATA, assert_same, flatten
from evenfeed.plan.windows import ElementValue
from evenfeed.runtime.asked import Asked
from evenfeed.runtime.tracing import Finding


@final
class Results:
    """The spec of a function's results, which the first one tells where nothing else did.

    Attributes:
        spec: What the function returns; None while that is not known.
        casts: Whether results are converted to the spec, instead of compared with it.
    """

    def __init__(self, asked: Asked, finding: Finding) -> None:
        self.spec = finding.output_spec
        self.casts = finding.casts
        self._asked = asked
        self._name = finding.calling.name
        self._specs: list[TypeSpec] | None = None if self.spec is None else flatten(self.spec, DATA)
        self._fits: tuple[Any, ...] | None = None  # what the last result looked like, if it fitted

    def fitted(self, structure: Any, leaves: list[Any]) -> list[Any]:
        """Return the parts of a result as the spec says."""
        specs = self._specs
        assert specs is not None
        if structure is not None or len(specs) != 1 or self.spec is not specs[0]:
            assert_same(self.spec, structure, DATA, names=("spec", "result"))
        seen = _look(leaves)
        if seen != self._fits:
            leaves = [self._fit(leaf, spec) for leaf, spec in zip(leaves, specs, strict=True)]
            self._fits = seen if seen == _look(leaves) else None
        return leaves

    def learn(self, spec: Any) -> None:
        """Take notice of what the function returns."""
        self.spec, self._specs = spec, flatten(spec, DATA)

    def _fit(self, leaf: Any, spec: TypeSpec) -> Any:
        if not isinstance(spec, TensorSpec) or leaf is None or isinstance(leaf, ElementValue):
            if not spec.is_compatible_with(leaf):
                raise self._unlike(leaf, spec)
            return leaf
        if leaf.dtype != spec.dtype:
            text = dtypes.string in (leaf.dtype, spec.dtype)
            if text or not (self.casts or self._is_narrow(leaf, spec)):
                raise self._unlike(leaf, spec)
            leaf = leaf.astype(spec.dtype)
        if not spec.shape.is_compatible_with(leaf.shape):
            raise self._unlike(leaf, spec)
        return leaf

    def _is_narrow(self, leaf: Any, spec: TensorSpec) -> bool:
        whole = self._asked.returns is not None and leaf.dtype.kind in "iu"
        return whole and np.can_cast(leaf.dtype, spec.dtype)  # it only has fewer bits

    def _unlike(self, leaf: Any, spec: TypeSpec) -> InvalidArgumentError:
        spec_of_leaf = type_spec_from_value(leaf)
        got = str(spec_of_leaf)
        if isinstance(spec_of_leaf, TensorSpec):
            got = f"{dtypes.name_of(leaf.dtype)} of shape {leaf.shape}"
        return InvalidArgumentError(
            f"{self._name} returned {got} where {spec} was expected.",
            fix="return one dtype and rank for all elements, or say output_signature=.",
            origin=self._asked.origin,
        )


def _look(leaves: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        (leaf.dtype, leaf.shape) if type(leaf) is np.ndarray else _look_at_value(leaf)
        for leaf in leaves
    )


def _look_at_value(leaf: Any) -> Any:
    return None if leaf is None else type_spec_from_value(leaf)
