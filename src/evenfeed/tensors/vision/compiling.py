"""Compiles formulas of several operations: outside of compiled functions, each operation would be compiled alone."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from evenfeed.core.lazy_jax import jax


@lru_cache(maxsize=256)
def compiled(formula: Callable[..., Any], *settings: Any) -> Callable[..., Any]:
    """Return a compiled function of the arrays that follow the settings in the arguments of a formula."""
    return jax.jit(partial(formula, *settings))


def one_by_one(formula: Callable[..., Any], *images: Any) -> Any:
    """Return the results of a formula for each image: its intermediate values then stay in the cache.

    Args:
        formula: Takes one image of each array.
        images: Arrays [..., height, width, channels] with the same leading axes.
    """
    *batch, height, width, channels = images[0].shape
    if not batch:
        return formula(*images)
    each = [array.reshape(-1, height, width, channels) for array in images]

    def one(parts: tuple[Any, ...]) -> Any:
        return formula(*parts)

    found = jax.lax.map(one, tuple(each))
    return found.reshape(*batch, *found.shape[1:])
