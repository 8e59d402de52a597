"""Parses the fixed-length features of many serialized examples at once.

There are three ways. Compiled loops (`example_kernels`) scan all records if there are enough to pay for Numba.
Otherwise records with the same byte layout are parsed together: programs usually write examples with the same
features, so most have the same length and differ only in their values. The layout of one example gives the places of
the values in all of them, so slices of a matrix of bytes, with one row per example, are the values. All other records
are parsed one by one with protobuf.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.dtypes import DType
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.example.example_layouts import LIST_TAGS, KnownLayouts, NoLayoutError
from evenfeed.formats.example.example_protos import Where, fixed_value, parsed
from evenfeed.formats.example.features import Fixed, Varying
from evenfeed.formats.reader import grouped

if TYPE_CHECKING:
    from evenfeed.formats.example import example_kernels, value_kernels
else:
    example_kernels = LazyModule("evenfeed.formats.example.example_kernels")
    value_kernels = LazyModule("evenfeed.formats.example.value_kernels")


def scanned(records: Texts, wanted: Sequence[Fixed]) -> tuple[list[Array | Texts], Array]:
    """Return the requested columns of all records, and a mask of odd records, whose rows are not filled in."""
    counts = [feature.count for feature in wanted]
    places, _, odd = places_of(records, wanted, counts)
    columns: list[Array | Texts] = []
    for feature, mine in zip(wanted, places, strict=True):
        missing = mine == example_kernels.MISSING
        splits = np.arange(len(mine) + 1) * feature.count
        column = values_at(records.data, mine, splits, feature.dtype)
        column = column.reshape(len(mine), *feature.shape)
        if missing.any():
            default = feature.default_array
            if default is None:
                odd |= missing
            else:
                column = np.asarray(column)
                column[missing] = default
        columns.append(column)
    return columns, odd


def places_of(
    records: Texts,
    wanted: Sequence[Fixed | Varying],
    counts: Sequence[int],
    part: int | None = None,
) -> tuple[Array, Array, Array]:
    """Return where the values of each feature and record start, how many there are, and a mask of odd records.

    How many there are is not found if all counts are known.

    Args:
        records: The records.
        wanted: The requested features.
        counts: The number of values of each, or `example_kernels.ANY`.
        part: What the records hold: by default `example_kernels.FEATURES`.
    """
    keys = [feature.key.encode() for feature in wanted]
    places = np.empty((len(wanted), len(records)), np.int64)
    varies = example_kernels.ANY in counts
    sizes = np.empty((len(wanted) if varies else 0, len(records)), np.int64)
    odd = np.empty(len(records), np.bool_)
    longest = int((records.stops - records.starts).max())
    example_kernels.find(
        records.data,
        records.starts,
        records.stops,
        np.frombuffer(b"".join(keys), np.uint8),
        np.cumsum([len(key) for key in keys], dtype=np.int64),
        np.array([LIST_TAGS[feature.dtype] for feature in wanted], np.int64),
        np.array(counts, np.int64),
        places,
        sizes,
        odd,
        np.empty(1 << (2 * len(wanted)).bit_length(), np.int64),
        np.empty(longest, np.uint8),
        np.empty((longest // 8 + 1, 3), np.uint64),
        example_kernels.FEATURES if part is None else part,
    )
    return places, sizes, odd


def values_at(data: Array, places: Positions, splits: Positions, dtype: DType) -> Array | Texts:
    """Return the values of all records as a vector; `splits` says which are of each record."""
    count = int(splits[-1])
    if dtype == dtypes.string:
        starts, stops = np.empty((2, count), np.int64)
        example_kernels.find_texts(data, places, splits, starts, stops)
        # A copy: a text must not keep the other features of its record in memory.
        held, ends = Texts(data, starts, stops).packed()
        return Texts(held, ends[:-1], ends[1:])
    out = np.empty(count, dtype)
    if dtype == dtypes.float32:
        value_kernels.copy_floats(data, places, splits, out.view(np.uint8))
    else:
        value_kernels.copy_numbers(data, places, splits, out)
    return out


# Fewer examples of one layout are parsed just as fast one by one.
_FEWEST: Final = 8
# Longer examples are mostly values, which are copied either way: by layout they would be copied twice.
_LONGEST: Final = 1 << 14
# The loops need room for a mask of the longest example.
_LONGEST_SCANNED: Final = 1 << 20
_known: Final = KnownLayouts(most=1 << 20)


def fixed_columns(records: Texts, wanted: Sequence[Fixed]) -> list[Array | Texts]:
    """Return the requested columns of all records, stacked.

    Raises:
        InvalidArgumentError: A record is not a valid Example, or lacks a feature. Names the first such record.
    """
    lengths = records.stops - records.starts
    if is_worth_it(len(records)) and lengths.max() <= _LONGEST_SCANNED:
        found, odd = scanned(records, wanted)
        rows = np.flatnonzero(odd)
        if not len(rows):
            return found
        out = list(map(np.asarray, found))
    else:
        alike = _of_one_layout(records, lengths, wanted)
        if alike is not None:
            return [*alike]
        out = [np.empty((len(records), *feature.shape), feature.dtype) for feature in wanted]
        rows = np.arange(len(records))
    parts, rest = _in_groups(records, lengths, rows, wanted)
    for mine, columns in [*parts, (rest, _one_by_one(records, rest, wanted))]:
        for target, column in zip(out, columns, strict=True):
            target[mine] = column
    return [*out]


def _of_one_layout(
    records: Texts, lengths: Positions, wanted: Sequence[Fixed]
) -> list[Array] | None:
    """Return the arrays of all records if they share one layout, else None."""
    if len(records) < _FEWEST or not 0 < lengths[0] <= _LONGEST or (lengths != lengths[0]).any():
        return None
    matrix = records.matrix()
    try:
        layout = _known.of(matrix)
    except NoLayoutError:
        return None
    return layout.columns(matrix, wanted) if layout.matches(matrix).all() else None


_Part = tuple[Positions, list[Array]]


def _in_groups(
    records: Texts, lengths: Positions, rows: Positions, wanted: Sequence[Fixed]
) -> tuple[list[_Part], Positions]:
    """Return the arrays of the rows that share a layout, and the rows that do not."""
    groups, rest = grouped(lengths[rows], _FEWEST, _LONGEST)
    parts: list[_Part] = []
    singly = [rows[rest]]
    for group in groups:
        found, left = _of_one_length(records, rows[group], wanted)
        parts += found
        singly.append(left)
    return parts, np.sort(np.concatenate(singly))


def _of_one_length(
    records: Texts, mine: Positions, wanted: Sequence[Fixed]
) -> tuple[list[_Part], Positions]:
    """Return the arrays of records of equal length by layout, and the records left over."""
    parts: list[_Part] = []
    matrix = records.take(mine).matrix()
    while len(mine) >= _FEWEST:
        try:
            layout = _known.of(matrix)
        except NoLayoutError:
            break
        alike = layout.matches(matrix)
        whole = bool(alike.all())
        columns = layout.columns(matrix if whole else matrix[alike], wanted)
        if columns is None or (alike.sum() < _FEWEST and parts):
            break
        parts.append((mine if whole else mine[alike], columns))
        mine, matrix = mine[~alike], matrix[~alike]
    return parts, mine


def _one_by_one(records: Texts, rows: Positions, wanted: Sequence[Fixed]) -> list[Array]:
    found: list[list[Array]] = [[] for _ in wanted]
    for row in map(int, rows):
        features = parsed("Example", records.text(row), row).features.feature
        for values, feature in zip(found, wanted, strict=True):
            values.append(fixed_value(features.get(feature.key), Where(row), feature))
    return [_stacked(values, feature) for values, feature in zip(found, wanted, strict=True)]


def _stacked(values: list[Array], wanted: Fixed) -> Array:
    out = np.empty((len(values), *wanted.shape), wanted.dtype)
    for row, value in enumerate(values):
        out[row] = value[()] if value.ndim == 0 else value
    return out
