"""Marks the indices of TensorFlow's functions, so that a map raises for one that is out of range.

XLA drops it, or reads another entry.
"""

# JAX is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from functools import cache
from typing import Any, Final

import numpy as np

from evenfeed.core.lazy_jax import jax
from evenfeed.core.traced.kernel_stages import INDEX_CHECK, STAGE

_LEAST: Final = np.iinfo(np.int64).min


def checked_index(places: Any, length: int, *, may_be_negative: bool = False) -> Any:
    """Return indices; in a map, an element fails if one of them is not below `length`, or negative.

    Args:
        places: The indices; those that are known must have been checked.
        length: The number of entries.
        may_be_negative: Whether negative indices are valid.
    """
    if STAGE.get() is None or not isinstance(places, jax.core.Tracer):
        return places
    return _marked()(places, int(_LEAST) if may_be_negative else 0, length)


@cache
def _marked() -> Any:
    def marked(places: Any, least: Any, length: Any) -> Any:
        del least, length
        return places

    marked.__name__ = marked.__qualname__ = INDEX_CHECK
    return jax.jit(marked)
