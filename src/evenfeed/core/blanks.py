"""Arrays of zeros, or of empty text, and of no rows at all."""

from collections.abc import Sequence

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.specs import TensorSpec


def blank(shape: Sequence[int], dtype: dtypes.DType) -> Array:
    """Return zeros, or empty text."""
    if dtype != dtypes.string:
        return np.zeros(shape, dtype)
    text = np.empty(shape, object)
    text.fill(b"")
    return text


def without_rows(spec: TensorSpec) -> Array:
    """Return no rows: dimensions that are not known are 0, and the first one always is."""
    lengths = [length or 0 for length in spec.shape.as_list()] if spec.shape.rank else []
    return blank((0, *lengths[1:]) if lengths else (), spec.dtype)
