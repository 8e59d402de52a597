"""The arrays of examples that compiled code has scanned, and which of them it leaves to others."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.cutting import texts
from evenfeed.core.dtypes import DType
from evenfeed.core.texts import Texts
from evenfeed.formats.features import Fixed
from evenfeed.formats.kernel_doors import example_kernels

# The first byte of a list, by what it holds.
_KINDS: Final[dict[DType, int]] = {dtypes.string: 0x0A, dtypes.float32: 0x12, dtypes.int64: 0x1A}


def scanned(records: Texts, wanted: Sequence[Fixed]) -> tuple[list[Array], Array]:
    """Return the wanted arrays of all records, and which records are odd: others must fill their rows."""
    keys = [feature.key.encode() for feature in wanted]
    places = np.empty((len(wanted), len(records)), np.int64)
    odd = np.empty(len(records), np.bool_)
    example_kernels.find(
        records.data,
        records.starts,
        records.stops,
        np.frombuffer(b"".join(keys), np.uint8),
        np.cumsum([len(key) for key in keys], dtype=np.int64),
        np.array([_KINDS[feature.dtype] for feature in wanted], np.int64),
        np.array([feature.count for feature in wanted], np.int64),
        places,
        odd,
    )
    columns: list[Array] = []
    for feature, mine in zip(wanted, places, strict=True):
        missing = mine == example_kernels.MISSING
        column = _column(records.data, mine, feature)
        if missing.any():
            default = feature.default_array
            if default is None:
                odd |= missing
            else:
                column[missing] = default
        columns.append(column)
    return columns, odd


def _column(data: Array, places: Positions, wanted: Fixed) -> Array:
    rows, shape = len(places), (len(places), *wanted.shape)
    if wanted.dtype == dtypes.string:
        starts, stops = np.empty((2, rows, wanted.count), np.int64)
        example_kernels.find_texts(data, places, starts, stops)
        return texts(data, starts, stops).reshape(shape)
    out = np.empty((rows, wanted.count), wanted.dtype)
    if wanted.dtype == dtypes.float32:
        example_kernels.copy_floats(data, places, out.view(np.uint8))
    else:
        example_kernels.copy_numbers(data, places, out)
    return out.reshape(shape)
