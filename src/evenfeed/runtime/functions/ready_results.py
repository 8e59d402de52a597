"""Recognises results of user functions that need no conversion: numbers and arrays of the dtype in their spec."""

from collections.abc import Sequence
from typing import Any, Final, TypeGuard, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.promotion import PromotingTensor
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.tensor_types import HostTensor
from evenfeed.runtime.functions.private_copies import unshared

# Arrays of these dtypes are tensors without a conversion.
NATIVE: Final = frozenset(map(np.dtype, "?bBhHiIlLefd"))
# The dtypes of plain Python numbers, if they are small; `to_component` knows the rules for all values.
PLAIN: Final[dict[type, np.dtype[Any]]] = {
    bool: dtypes.bool,
    int: dtypes.int32,
    float: dtypes.float32,
}
SMALL: Final = 2**31

_ARRAYS: Final[frozenset[type]] = frozenset({np.ndarray, HostTensor, PromotingTensor})
# Without the Python code of tensors.
_shape_of: Final[Any] = vars(np.ndarray)["shape"].__get__
_item_of: Final[Any] = np.ndarray.__getitem__


@final
class ReadyResults:
    """What a result looks like that needs no conversion.

    Args:
        specs: The specs of the parts of a result.
        structure: None if the result is its only part, or a flat tuple.
        casts: Whether results are cast to the specs.
    """

    def __init__(self, specs: Sequence[TypeSpec], structure: Any, *, casts: bool) -> None:
        self._scalar: Any = None
        self._python: type | None = None
        self._dtype: np.dtype[Any] | None = None
        self._shape: tuple[int | None, ...] | None = None
        self._any_of_rank = -1  # the rank, if all lengths are open
        self._scalars: list[type] | None = None
        ranked = [spec for spec in specs if _has_rank(spec)]
        if structure is not None:
            scalars = [spec.dtype.type for spec in ranked if spec.shape.rank == 0]
            is_flat = type(structure) is tuple and len(scalars) == len(specs)
            self._scalars = scalars if is_flat else None
        elif ranked:
            self._dtype, self._shape = ranked[0].dtype, tuple(ranked[0].shape.as_list())
            if set(self._shape) == {None}:
                self._any_of_rank = len(self._shape)
            if not self._shape:
                self._scalar = self._dtype.type
                self._python = _python_type(self._dtype, casts=casts)

    def parts(self, held: list[Any]) -> list[Any] | None:
        """Return the parts of a result: NumPy scalars or arrays. None if it may need a conversion.

        Args:
            held: The result. Nothing else may refer to it: an array that others can write to is copied.
        """
        kind: type[Any] = held[0].__class__
        if kind is self._scalar:
            return held
        if kind in _ARRAYS:
            if held[0].dtype != self._dtype:
                return None
            shape = _shape_of(held[0])
            if shape != self._shape and len(shape) != self._any_of_rank and not self._fits(shape):
                return None
            if not self._shape:
                return [_item_of(held[0], ())]
            return [unshared(leaf).view(np.ndarray) for leaf in held]
        if kind is self._python:
            return [self._scalar(held[0])] if -SMALL <= held[0] < SMALL else None
        if kind is tuple and self._scalars:
            return list(held[0]) if list(map(type, held[0])) == self._scalars else None
        return None

    def _fits(self, shape: tuple[int, ...]) -> bool:
        """Return True if a shape is one of those in the spec, which leaves some lengths open."""
        wanted = self._shape
        if wanted is None or len(shape) != len(wanted):
            return False
        return all(length in (None, found) for length, found in zip(wanted, shape, strict=True))


def _has_rank(spec: TypeSpec) -> TypeGuard[TensorSpec]:
    return isinstance(spec, TensorSpec) and spec.dtype in NATIVE and spec.shape.rank is not None


def _python_type(dtype: np.dtype[Any], *, casts: bool) -> type | None:
    """Return the Python type whose small numbers get this dtype without another in between."""
    if casts and dtype == dtypes.int64:
        return int  # int32 first, which keeps every small number
    return next((kind for kind, default in PLAIN.items() if default == dtype), None)
