"""Arrays out of many examples: compiled, or at once where they have one layout, or one by one."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from evenfeed.core.compiling import is_worth_it
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.texts import Texts
from evenfeed.formats.example_layouts import Layout, NoLayoutError
from evenfeed.formats.example_scans import scanned
from evenfeed.formats.example_values import Where, fixed_value, parsed
from evenfeed.formats.features import Fixed
from evenfeed.formats.lengths import grouped

# Fewer examples of one layout are parsed one by one as fast.
_FEWEST: Final = 8
# Longer ones are mostly values, which are copied either way.
_LONGEST: Final = 1 << 14


def fixed_columns(records: Texts, wanted: Sequence[Fixed]) -> list[Array]:
    """Return the wanted arrays of all records, stacked.

    Raises:
        InvalidArgumentError: A record is no example, or lacks what is wanted. It names the first.
    """
    lengths = records.stops - records.starts
    if is_worth_it(len(records)) and lengths.max() <= _LONGEST:
        out, odd = scanned(records, wanted)
        rows = np.flatnonzero(odd)
        if not len(rows):
            return out
    else:
        out = _of_one_layout(records, lengths, wanted)
        if out is not None:
            return out
        out = [np.empty((len(records), *feature.shape), feature.dtype) for feature in wanted]
        rows = np.arange(len(records))
    parts, rest = _in_groups(records, lengths, rows, wanted)
    for mine, columns in [*parts, (rest, _one_by_one(records, rest, wanted))]:
        for target, column in zip(out, columns, strict=True):
            target[mine] = column
    return out


def _of_one_layout(
    records: Texts, lengths: Positions, wanted: Sequence[Fixed]
) -> list[Array] | None:
    """Return the arrays of all records, where these have one layout."""
    if len(records) < _FEWEST or not 0 < lengths[0] <= _LONGEST or (lengths != lengths[0]).any():
        return None
    matrix = records.matrix()
    try:
        layout = Layout(records.text(0))
    except NoLayoutError:
        return None
    return layout.columns(matrix, wanted) if layout.matches(matrix).all() else None


_Part = tuple[Positions, list[Array]]


def _in_groups(
    records: Texts, lengths: Positions, rows: Positions, wanted: Sequence[Fixed]
) -> tuple[list[_Part], Positions]:
    """Return the arrays of those rows that share a layout with others, and which rows do not."""
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
    """Return the arrays of records that are equally long, and which of them are left over."""
    parts: list[_Part] = []
    matrix = records.take(mine).matrix()
    while len(mine) >= _FEWEST:
        try:
            layout = Layout(records.text(int(mine[0])))
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
