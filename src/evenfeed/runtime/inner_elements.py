"""Checks that all inner datasets of a function have elements of one structure, with the same dtypes."""

from typing import Any, final
from weakref import WeakKeyDictionary

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import described
from evenfeed.core.structure import DATA, have_same_structure
from evenfeed.core.texts import Texts
from evenfeed.runtime.run import Inner


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
