"""Copies pieces of bytes so that Python's own pickle makes objects of them: compiled."""

from typing import Final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled

# Of pickle's protocol 4: what says that bytes follow, behind their length in eight bytes.
_BYTES: Final = 0x8E
BEFORE: Final = 9

_U64 = np.uint64


@compiled
def pack(data: Array, starts: Positions, stops: Positions, out: Array) -> None:
    """Write each piece as pickle does; `out` has `BEFORE` bytes more for each of them."""
    to = 0
    for row in range(len(starts)):
        start, length = starts[row], stops[row] - starts[row]
        out[_U64(to)] = _BYTES
        for byte in range(8):
            out[_U64(to + 1 + byte)] = length >> 8 * byte & 0xFF
        to += BEFORE
        for byte in range(length):
            out[_U64(to + byte)] = data[_U64(start + byte)]
        to += length
