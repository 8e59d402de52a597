"""A function for another process. It is not in the program, so that the process need not load JAX."""

import numpy as np
from numpy.typing import NDArray


def widened(row: int) -> NDArray[np.int64]:
    """Return a row of 32 KB, which needs shared memory."""
    return np.full(4096, row)
