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
from evenfeed.runtime.functions.ready_parts import NATIVE, PLAIN

Keep: TypeAlias = Callable[[Any], Any]


def unshared(result: Any) -> Any:
    """Return a result of a user function; a copy if other code may write to its memory.

    It counts references, so call it as `[unshared(result) for result in results]`.
    """
    if not isinstance(result, np.ndarray):
        return result.clone() if _is_torch_tensor(result) else result
    if getrefcount(result) > _OWN_REFERENCES:
        memory: Any = result.base
        return result if type(memory) in _UNWRITABLE else result.copy()
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
_OWN_YIELDED: Final = min(map(_references, map(np.zeros, [1, 1])))
_OWN_PART: Final = min([getrefcount(part) for part in (np.zeros(1),)])
# Nobody can write to these.
_CONSTANT: Final[frozenset[type]] = frozenset(
    {*PLAIN, complex, str, bytes, type(None), HostText, *(dtype.type for dtype in NATIVE)}
)


def keeper(signature: Any) -> Keep | None:
    """Return a function that copies the writable parts of an element; None if it has none.

    Scalars and tuples of scalars need no copy, which keeps their generators fast.
    """
    branch = opened(signature, DATA)
    if branch is None:
        is_scalar = isinstance(signature, TensorSpec) and signature.shape.rank == 0
        return None if is_scalar else yielded
    if type(signature) is tuple and not any(map(keeper, cast("tuple[Any, ...]", signature))):
        return None
    return yielded


def yielded(value: Any) -> Any:
    """Return an element of an iterable; a copy unless nothing but this call can still refer to its writable parts.

    It counts references, so call it as `map(yielded, iterable)`.
    """
    return value if getrefcount(value) <= _OWN_YIELDED and _is_private(value) else kept(value)


def _is_private(value: Any) -> bool:
    """Return True if other code cannot write to the parts of a value that it does not have itself."""
    kind: type[Any] = value.__class__
    if kind is np.ndarray:
        return value.base is None and value.flags.owndata
    if kind is dict:
        value = value.values()
    elif kind is not tuple and kind is not list:
        return kind in _CONSTANT
    if _CONSTANT.issuperset(map(type, value)):
        return True
    for part in value:
        kind = part.__class__
        if kind in _CONSTANT:
            continue
        if getrefcount(part) > _OWN_PART or not (
            (part.base is None and part.flags.owndata) if kind is np.ndarray else _is_private(part)
        ):
            return False
    return True


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
