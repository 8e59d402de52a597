"""What lists of arrays become: the arrays that can be stacked, and the dtype that tensors give to numbers beside them."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from evenfeed.core.dtypes import DType
from evenfeed.core.tensor_types import HostTensor

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def dtype_of_tensors(values: Iterable[object]) -> DType | None:
    """Return the dtype of the tensors of the host among values; None if there are none, or they differ."""
    found = {value.dtype for value in values if isinstance(value, HostTensor)}
    return found.pop() if len(found) == 1 else None


def unwrapped(value: Any) -> Any:
    """Return the number in an array without axes; anything else unchanged."""
    return value.view(np.ndarray)[()] if isinstance(value, np.ndarray) else value


def stackable(value: Any) -> list[Array] | None:
    """Return the arrays of a list if `np.stack` can join them: all numeric, of one shape and dtype."""
    if type(value) not in (list, tuple):
        return None
    arrays: list[Array] = [part for part in value if isinstance(part, np.ndarray)]
    if not arrays or len(arrays) < len(value):
        return None
    kinds = {(array.shape, array.dtype) for array in arrays}
    if len(kinds) != 1 or arrays[0].dtype.kind not in "biuf" or arrays[0].size == 0:
        return None
    return arrays
