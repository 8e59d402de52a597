"""Arrays that only evenfeed has, so that JAX may use their memory."""

from typing import Final

import numpy as np

from evenfeed.core.conversion import Array

# On the CPU, JAX uses the memory of arrays that begin at a multiple of this many bytes, and copies all others.
_BOUNDARY: Final = 64
# Copying fewer bytes takes less time than finding the boundary.
_LEAST_BYTES: Final = 1 << 16


def owned(array: Array) -> Array:
    """Return an array that nobody else will write to, because JAX may use its memory directly.

    A read-only array is a view of the user's array, which the user may change at any time. On the CPU,
    `may_alias=False` does not keep JAX from sharing it.
    """
    if array.flags.writeable:
        return array
    if array.nbytes < _LEAST_BYTES:
        return array.copy()
    copy = _at_boundary(array)
    np.copyto(copy, array)
    return copy


def _at_boundary(like: Array) -> Array:
    """Return an array of a shape and dtype, without values, in memory that JAX need not copy once more."""
    room = np.empty(like.nbytes + _BOUNDARY, np.uint8)
    first = -room.ctypes.data % _BOUNDARY
    return room[first : first + like.nbytes].view(like.dtype).reshape(like.shape)
