"""Remembers which tensors were asked to have 64 bits, where JAX runs without: datasets take them so."""

import weakref
from typing import Any, Final

from evenfeed.core.dtypes import DType

# By identity, because arrays of JAX's have no hash. An entry leaves with its tensor.
_asked: Final[dict[int, tuple["weakref.ref[Any]", DType]]] = {}


def remember_width(tensor: Any, dtype: DType) -> None:
    """Note that `tensor` would have this dtype if JAX ran with 64 bits."""
    key = id(tensor)

    def forget(_: "weakref.ref[Any]") -> None:
        _asked.pop(key, None)

    _asked[key] = weakref.ref(tensor, forget), dtype


def asked_width(tensor: Any) -> DType | None:
    """Return the dtype that was asked for; None where the tensor has it, or nobody asked."""
    found = _asked.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None
