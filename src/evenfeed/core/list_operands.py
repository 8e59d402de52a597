"""Lets arrays of JAX's meet lists in arithmetic, as TensorFlow's tensors do: `x - [0.5, 0.4, 0.3]`."""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from evenfeed.core import promised_shapes
from evenfeed.core.promised_shapes import promise_result
from evenfeed.core.promotion import array_of_list

_EITHER_WAY: Final = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
]
_COMPARISONS: Final = ["eq", "ne", "lt", "le", "gt", "ge"]


def let_arrays_meet_lists() -> None:
    """Let a list beside an array be one of the dtype that its numbers have there.

    JAX refuses lists because they are slow, and then a function that holds a few constants does not trace.
    Where a version of JAX has other classes, lists stay refused.
    """
    operators = [*_EITHER_WAY, *(f"r{name}" for name in _EITHER_WAY), *_COMPARISONS]
    for module, kind in (("jax._src.core", "Tracer"), ("jax._src.array", "ArrayImpl")):
        arrays: Any = getattr(sys.modules.get(module), kind, None)
        for name in operators:
            own = getattr(arrays, f"__{name}__", None)
            if own is not None:
                setattr(arrays, f"__{name}__", _taking_lists(own))


def _taking_lists(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(own)
    def operator(self: Any, other: Any) -> Any:
        if type(other) is list or type(other) is tuple:
            other = array_of_list(cast("Sequence[Any]", other), self.dtype)
        found = own(self, other)
        if promised_shapes.here.promised:
            promise_result(found, (self, other))
        return found

    return operator
