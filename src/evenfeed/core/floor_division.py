"""Floor division of floats as TensorFlow computes it: the quotient is rounded to its dtype, and then down.

Python, NumPy and JAX round the exact quotient down: for them 1.0 // 0.1 is 9, because 0.1 is a little more than a
tenth, and infinity // 1.0 is NaN. For TensorFlow they are 10 and infinity.
"""

# JAX is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import operator
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

Operator = Callable[[Any, Any], Any]


def has_floats(x: Any, y: Any) -> bool:
    """Return True if `x // y` divides floats."""
    return _is_float(x) or _is_float(y)


def _is_float(value: Any) -> bool:
    if type(value) is float:
        return True
    dtype: Any = getattr(value, "dtype", None)
    # The name, because the kind of bfloat16 is V.
    return isinstance(dtype, np.dtype) and "float" in dtype.name


def dividing_arrays(floored: Operator, divided: Operator) -> Operator:
    """Return an operator for `//` of NumPy arrays, from their own ones for `//` and `/`."""

    @wraps(floored)
    def floor_divide(tensor: Any, other: Any) -> Any:
        if not has_floats(tensor, other):
            return floored(tensor, other)
        quotient = divided(tensor, other)
        return quotient if quotient is NotImplemented else np.floor(quotient)

    return floor_divide


def dividing_jax_arrays(floored: Operator, *, is_reflected: bool) -> Operator:
    """Return an operator for `//` of JAX arrays, from their own one."""
    arrays = (int, float, np.ndarray, np.generic, sys.modules["jax"].Array)

    @wraps(floored)
    def floor_divide(array: Any, other: Any) -> Any:
        if not has_floats(array, other) or not isinstance(other, arrays):
            return floored(array, other)
        return floored_quotient(other, array) if is_reflected else floored_quotient(array, other)

    return floor_divide


def floored_quotient(x: Any, y: Any) -> Any:
    """Divide JAX arrays of floats, or floats by one.

    XLA multiplies by the reciprocal of a divisor that is constant or a single number, and finds a little less than 1 for
    41 / 41. So each number gets a divisor of its own, which changes to NaN where that is the result anyway.
    """
    jnp = sys.modules["jax"].numpy
    quotient = operator.truediv(x, y)
    own = jnp.where(jnp.isnan(quotient), quotient, y)
    return jnp.floor(operator.truediv(x, own))
