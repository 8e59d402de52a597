"""Compiled loops over the rows of ragged tensors. Importing this module imports Numba."""

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled

_U64 = np.uint64


@compiled
def copy_rows(
    values: Array, starts: Positions, counts: Positions, out: Array, places: Positions
) -> None:
    """Copy `counts[i]` values from `starts[i]` to `places[i]` in `out`, for each row i."""
    for row in range(len(starts)):
        start, place = starts[row], places[row]
        for at in range(counts[row]):
            out[_U64(place + at)] = values[_U64(start + at)]
