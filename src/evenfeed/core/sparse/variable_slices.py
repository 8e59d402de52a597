"""Lets tensors that were read from a variable with a key change it: `v[0].assign(x)`.

Such a tensor is a plain `jax.Array`, so that every function takes it. This module remembers where it came from.
"""

from collections.abc import Callable
from typing import Any, Final

from evenfeed.core.concurrency.weak_table import WeakTable

# Called with the name of a method, its value and read_value.
_changers: Final[WeakTable[Callable[[str, Any, bool], Any]]] = WeakTable()


def remember_slice(tensor: Any, change: Callable[[str, Any, bool], Any]) -> Any:
    """Remember how to change the variable that a tensor was read from, and return the tensor."""
    _changers.put(tensor, change)
    return tensor


def assigning(method: str) -> property:
    """Return a property of JAX's arrays: `assign` or a sibling of a slice of a variable. Others do not have it."""

    def find(tensor: Any) -> Callable[..., Any]:
        change = _changers.get(tensor)
        if change is None:
            raise AttributeError(
                f"A tensor has no {method!r}: only variables, and what variable[key] returns, can be assigned."
            )

        def assign(
            value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
        ) -> Any:
            del use_locking, name
            return change(method, value, read_value)

        return assign

    return property(find)
