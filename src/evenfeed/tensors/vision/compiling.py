"""Compiles formulas of several operations: outside of compiled functions, each operation would be compiled alone."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from evenfeed.core.lazy_jax import jax


@lru_cache(maxsize=256)
def compiled(formula: Callable[..., Any], *settings: Any) -> Callable[..., Any]:
    """Return a compiled function of the arrays that follow the settings in the arguments of a formula."""
    return jax.jit(partial(formula, *settings))
