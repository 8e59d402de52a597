"""Texts cut out of bytes, as objects.

A slice takes Python longer than the copy in it. Pieces of one length are a gather of NumPy's. For others a
program for pickle that makes a list of texts is written by compiled code, and run by C code: that takes a third
of the time, and no package of our own to build.
"""

import pickle
from mmap import mmap
from typing import Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.compiling import is_worth_it, text_kernels
from evenfeed.core.conversion import Array, Positions

# Protocol 4; an empty list, and a mark. At the end, what is behind the mark goes into the list.
_BEGIN: Final = b"\x80\x04]("
_END: Final = b"e."
# Fewer pieces are cut one by one as fast.
_FEWEST: Final = 16
# Longer ones are copied once less one by one.
_LONGEST: Final = 1 << 14


def texts(data: Array, starts: Positions, stops: Positions) -> Array:
    """Return the pieces from `starts` to `stops` of some bytes, in an array of the same shape."""
    column = np.empty(starts.shape, dtypes.string)
    column.reshape(-1)[:] = _cut(data, starts.ravel(), stops.ravel())
    return column


def pieces(data: Array | bytes | mmap, places: Positions, length: int) -> Array:
    """Return the `length` bytes at each place, each as one value."""
    return np.ndarray(len(data) - length + 1, f"V{length}", data, strides=(1,))[places]


def _cut(data: Array, starts: Positions, stops: Positions) -> list[bytes]:
    if len(starts) >= _FEWEST:
        lengths = stops - starts
        length = int(lengths[0])
        if 0 < length <= _LONGEST and (lengths == length).all():
            return pieces(data, starts, length).tolist()
        if is_worth_it(len(starts)):
            return _unpickled(data, starts, stops, int(lengths.sum()))
    view = data.data
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    return [view[start:stop].tobytes() for start, stop in spans]


def _unpickled(data: Array, starts: Positions, stops: Positions, size: int) -> list[bytes]:
    size += text_kernels.BEFORE * len(starts)
    program = np.empty(len(_BEGIN) + size + len(_END), np.uint8)
    program[: len(_BEGIN)] = list(_BEGIN)
    text_kernels.pack(data, starts, stops, program[len(_BEGIN) : -len(_END)])
    program[-len(_END) :] = list(_END)
    return pickle.loads(program.data)
