"""Texts cut out of bytes, as a column.

A slice takes Python longer than the copy in it. A program for pickle that makes a list of texts is written by
compiled code, and run by C code: that takes a third of the time, and no package of our own to build.
"""

import pickle
from typing import Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Positions
from evenfeed.core.conversion import Array
from evenfeed.formats.compiling import is_worth_it, text_kernels
from evenfeed.formats.mapped_files import Held

# Protocol 4; an empty list, and a mark. At the end, what is behind the mark goes into the list.
_BEGIN: Final = b"\x80\x04]("
_END: Final = b"e."


def texts(held: Held, starts: Positions, stops: Positions) -> Array:
    """Return the pieces from `starts` to `stops` of some bytes."""
    column = np.empty(len(starts), dtypes.string)
    if is_worth_it(len(starts)):
        column[:] = _unpickled(np.frombuffer(held, np.uint8), starts, stops)
    else:
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        column[:] = [held[start:stop] for start, stop in spans]
    return column


def _unpickled(data: Array, starts: Positions, stops: Positions) -> list[bytes]:
    size = int((stops - starts).sum()) + text_kernels.BEFORE * len(starts)
    program = np.empty(len(_BEGIN) + size + len(_END), np.uint8)
    program[: len(_BEGIN)] = list(_BEGIN)
    text_kernels.pack(data, starts, stops, program[len(_BEGIN) : -len(_END)])
    program[-len(_END) :] = list(_END)
    return pickle.loads(program.data)
