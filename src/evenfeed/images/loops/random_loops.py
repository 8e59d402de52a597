"""A compiled loop that mixes random words. Importing this module imports Numba."""

from typing import Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false

_ONE: Final = np.uint64(0xD2511F53)
_OTHER: Final = np.uint64(0xCD9E8D57)
_STEP: Final = np.uint64(0x9E3779B9)
_OTHER_STEP: Final = np.uint64(0xBB67AE85)
_LOW: Final = np.uint64(2**32 - 1)
_HALF: Final = np.uint64(32)


@compiled
def mix(keys: Array, words: Array) -> None:
    """Mix each row of four words with its two keys, as `philox.mixed_rows` does, in place."""
    for row in range(len(words)):
        key, other = np.uint64(keys[row, 0]), np.uint64(keys[row, 1])
        one, two = np.uint64(words[row, 0]), np.uint64(words[row, 1])
        three, four = np.uint64(words[row, 2]), np.uint64(words[row, 3])
        for _ in range(10):
            first, second = _ONE * one, _OTHER * three
            one, three = (second >> _HALF) ^ two ^ key, (first >> _HALF) ^ four ^ other
            two, four = second & _LOW, first & _LOW
            key, other = (key + _STEP) & _LOW, (other + _OTHER_STEP) & _LOW
        words[row, 0], words[row, 1] = np.uint32(one), np.uint32(two)
        words[row, 2], words[row, 3] = np.uint32(three), np.uint32(four)
