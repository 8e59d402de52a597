"""Compiled loop that writes pieces of bytes as a pickle, from which Python creates the objects."""

from typing import Final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled

# The BINBYTES8 opcode of pickle protocol 4. The length follows in eight bytes, then the bytes.
_BYTES: Final = 0x8E
BEFORE: Final = 9

_U64 = np.uint64


@compiled
def pack(data: Array, starts: Positions, stops: Positions, out: Array) -> None:
    """Write each piece in pickle format. `out` needs `BEFORE` extra bytes per piece."""
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
