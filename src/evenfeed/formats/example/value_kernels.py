"""Compiled loops that copy the values of features, whose places `example_kernels` found."""

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled

_U64 = np.uint64

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false


@compiled
def copy_floats(data: Array, places: Positions, splits: Positions, out: Array) -> None:
    """Copy the floats of all records that have them, byte by byte; `splits` says where in `out`, in floats."""
    for row in range(len(places)):
        at, to = places[row], 4 * splits[row]
        if at >= 0:
            for byte in range(4 * splits[row + 1] - to):
                out[_U64(to + byte)] = data[_U64(at + byte)]


@compiled
def copy_numbers(data: Array, places: Positions, splits: Positions, out: Array) -> None:
    """Decode the varints of all records that have them: seven bits per byte, lowest first."""
    for row in range(len(places)):
        at = places[row]
        if at >= 0:
            for to in range(splits[row], splits[row + 1]):
                number, shift = _U64(0), _U64(0)
                while data[_U64(at)] >= 0x80:
                    number |= (_U64(data[_U64(at)]) & _U64(0x7F)) << shift
                    shift += _U64(7)
                    at += 1
                out[_U64(to)] = np.int64(number | _U64(data[_U64(at)]) << shift)
                at += 1
