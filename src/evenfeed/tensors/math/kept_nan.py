"""Extremes of floats that keep NaN in compiled programs, where XLA for CPUs loses it (jax 0.10.2).

XLA runs reductions of large arrays by a library that takes the other operand of a maximum or minimum if one is NaN. It
does so with everything that it fuses with a reduction: `maximum(sum(x), 1)` is 1 if a value is NaN.
"""

# JAX is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.device_arrays import is_traced


def maximum(x: Any, y: Any) -> Any:
    """Return the larger one of two values, or NaN if one is."""
    return keeping_nan(jnp.maximum(x, y), x, y)


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller one of two values, or NaN if one is."""
    return keeping_nan(jnp.minimum(x, y), x, y)


def keeping_nan(found: Any, *operands: Any) -> Any:
    """Add NaN to what was found if an operand is NaN, and -0.0, which changes nothing, if not.

    It is added instead of selected, so that gradients need nothing of it.
    """
    if not is_traced(found) or not jnp.issubdtype(found.dtype, jnp.floating):
        return found
    added: Any = -0.0
    for operand in operands:
        added = jnp.where(jnp.isnan(operand), operand, added)
    return found + jax.lax.stop_gradient(added).astype(found.dtype)
