"""Arrays out of many examples: at once where they have one layout, else one by one."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from evenfeed.core.block import Positions
from evenfeed.core.conversion import Array
from evenfeed.formats.example_layouts import Layout, NoLayoutError
from evenfeed.formats.example_values import fixed_value, parsed
from evenfeed.formats.features import Fixed

# Fewer examples of one layout are parsed one by one as fast.
_FEWEST: Final = 8
# Longer ones are mostly values, which are copied either way.
_LONGEST: Final = 1 << 14


def fixed_columns(records: Sequence[bytes], wanted: Sequence[Fixed]) -> list[Array]:
    """Return the wanted arrays of all records, stacked.

    Raises:
        InvalidArgumentError: A record is no example, or lacks what is wanted. It names the first.
    """
    rows = np.arange(len(records))
    parts = _in_groups(records, rows, wanted) if len(records) >= _FEWEST else [(rows, None)]
    whole = parts[0][1]
    if len(parts) == 1 and whole is not None:
        return whole
    out = [np.empty((len(records), *feature.shape), feature.dtype) for feature in wanted]
    for mine, columns in sorted(parts, key=lambda part: int(part[0][0]) if len(part[0]) else 0):
        _fill(out, mine, _one_by_one(records, mine, wanted) if columns is None else columns)
    return out


_Part = tuple[Positions, list[Array] | None]


def _fill(out: list[Array], rows: Positions, columns: list[Array]) -> None:
    for target, column in zip(out, columns, strict=True):
        target[rows] = column


def _in_groups(records: Sequence[bytes], rows: Positions, wanted: Sequence[Fixed]) -> list[_Part]:
    """Return the arrays of all records that share a layout with others; None for the rest of them."""
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    order = np.argsort(lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(lengths[order])) + 1
    parts: list[_Part] = []
    singly: list[Positions] = []
    for mine in np.split(rows[order], cuts):
        found, left = _of_one_length(records, mine, wanted)
        parts += found
        singly.append(left)
    rest = np.sort(np.concatenate(singly))
    return [*parts, (rest, None)] if len(rest) else parts


def _of_one_length(
    records: Sequence[bytes], mine: Positions, wanted: Sequence[Fixed]
) -> tuple[list[_Part], Positions]:
    """Return the arrays of records that are equally long, and which of them are left over."""
    length = len(records[int(mine[0])])
    parts: list[_Part] = []
    if length == 0 or length > _LONGEST:
        return parts, mine
    joined = b"".join([records[row] for row in map(int, mine)])
    matrix = np.frombuffer(joined, np.uint8).reshape(len(mine), length)
    while len(mine) >= _FEWEST:
        try:
            layout = Layout(records[int(mine[0])])
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


def _one_by_one(records: Sequence[bytes], rows: Positions, wanted: Sequence[Fixed]) -> list[Array]:
    found: list[list[Array]] = [[] for _ in wanted]
    for row in map(int, rows):
        features = parsed("Example", records[row], row).features.feature
        for values, feature in zip(found, wanted, strict=True):
            values.append(fixed_value(features.get(feature.key), f"record {row}", feature))
    return [_stacked(values, feature) for values, feature in zip(found, wanted, strict=True)]


def _stacked(values: list[Array], wanted: Fixed) -> Array:
    out = np.empty((len(values), *wanted.shape), wanted.dtype)
    for row, value in enumerate(values):
        out[row] = value[()] if value.ndim == 0 else value
    return out
