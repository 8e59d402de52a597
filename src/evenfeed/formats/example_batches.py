"""Arrays out of many examples: at once where they have one layout, else one by one."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from evenfeed.core.block import Positions
from evenfeed.core.conversion import Array
from evenfeed.formats.example_layouts import Layout, NoLayoutError
from evenfeed.formats.example_values import fixed_value, parsed
from evenfeed.formats.features import Fixed
from evenfeed.formats.lengths import grouped

# Fewer examples of one layout are parsed one by one as fast.
_FEWEST: Final = 8
# Longer ones are mostly values, which are copied either way.
_LONGEST: Final = 1 << 14


def fixed_columns(records: Sequence[bytes], wanted: Sequence[Fixed]) -> list[Array]:
    """Return the wanted arrays of all records, stacked.

    Raises:
        InvalidArgumentError: A record is no example, or lacks what is wanted. It names the first.
    """
    parts, rest = _in_groups(records, wanted)
    if len(parts) == 1 and not len(rest):
        return parts[0][1]
    out = [np.empty((len(records), *feature.shape), feature.dtype) for feature in wanted]
    for rows, columns in [*parts, (rest, _one_by_one(records, rest, wanted))]:
        for target, column in zip(out, columns, strict=True):
            target[rows] = column
    return out


_Part = tuple[Positions, list[Array]]


def _in_groups(records: Sequence[bytes], wanted: Sequence[Fixed]) -> tuple[list[_Part], Positions]:
    """Return the arrays of all records that share a layout with others, and which records do not."""
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    groups, rest = grouped(lengths, _FEWEST, _LONGEST)
    parts: list[_Part] = []
    singly = [rest]
    for rows in groups:
        found, left = _of_one_length(records, rows, wanted)
        parts += found
        singly.append(left)
    return parts, np.sort(np.concatenate(singly))


def _of_one_length(
    records: Sequence[bytes], mine: Positions, wanted: Sequence[Fixed]
) -> tuple[list[_Part], Positions]:
    """Return the arrays of records that are equally long, and which of them are left over."""
    parts: list[_Part] = []
    some = records if len(mine) == len(records) else [records[int(row)] for row in mine]
    matrix = np.frombuffer(b"".join(some), np.uint8).reshape(len(mine), -1)
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
