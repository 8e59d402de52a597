"""Copies values that user code may write to again.

A generator or a function may return the same buffer for every element: camera frames, simulators, `readinto`.
Elements that wait to become a batch would all show what was written last.
"""

# NumPy is only partly typed.
# pyright: reportUnknownVariableType=false

from collections.abc import Callable
from sys import getrefcount
from typing import Any, Final, TypeAlias, cast

import numpy as np

from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten, opened, pack
from evenfeed.core.tensor_types import HostText

Keep: TypeAlias = Callable[[Any], Any]


def unshared(result: Any) -> Any:
    """Return a result of a user function; a copy if other code may write to its memory.

    It counts references, so call it as `[unshared(result) for result in results]`.
    """
    if not isinstance(result, np.ndarray):
        return result.clone() if _is_torch_tensor(result) else result
    if getrefcount(result) > _OWN_REFERENCES:
        return result if type(result.base) in _UNWRITABLE else result.copy()
    if result.base is None or _references_to_memory(result) <= _OWN_REFERENCES_TO_MEMORY:
        return result
    return result.copy()


def _references_to_memory(view: Any) -> int:
    """Return the number of references to the array behind a view; a large number if it is not a NumPy array.

    Nobody can write to bytes, such as those that np.frombuffer got.
    """
    memory = view.base
    if type(memory) in _UNWRITABLE:
        return 0
    return getrefcount(memory) if type(memory) is np.ndarray and memory.base is None else _MANY


def _is_torch_tensor(value: Any) -> bool:
    """Return True for a tensor of PyTorch, by name: other libraries' arrays cannot be written to."""
    return type(value).__module__ == "torch"


def _references(result: Any) -> int:
    return getrefcount(result)


_UNWRITABLE: Final = frozenset({bytes, HostText})
# The reference counts of an array that nothing else refers to. Measured, because Python versions count differently.
_MANY: Final = 1 << 30
_OWN_REFERENCES: Final = min([_references(result) for result in [np.zeros(1)]])
_OWN_REFERENCES_TO_MEMORY: Final = min([_references_to_memory(v) for v in [np.zeros(2)[:1]]])


def keeper(signature: Any) -> Keep | None:
    """Return a function that copies the writable parts of an element; None if it has none.

    Scalars and tuples of scalars need no copy, which keeps their generators fast.
    """
    branch = opened(signature, DATA)
    if branch is None:
        is_scalar = isinstance(signature, TensorSpec) and signature.shape.rank == 0
        return None if is_scalar else kept
    if type(signature) is tuple and not any(map(keeper, cast("tuple[Any, ...]", signature))):
        return None
    return kept


def kept(value: Any) -> Any:
    """Return a copy of a value, with arrays and lists copied at any depth."""
    kind = type(value)
    if kind is np.ndarray:
        return value.copy()
    if kind is tuple:
        return tuple(map(kept, value))
    if kind is list:
        return list(map(kept, value))
    if kind is dict:
        return {key: kept(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return cast("np.ndarray[Any, Any]", value).copy()
    if _is_torch_tensor(value):
        return value.clone()
    if opened(value, DATA) is None:
        return value
    return pack(value, list(map(kept, flatten(value, DATA))), DATA)


def holds_arrays(value: Any) -> bool:
    """Return True if an element holds an array, even where a scalar is expected."""
    return any(isinstance(part, np.ndarray) for part in flatten(value, DATA))
