"""Columns of a Block whose elements are rows of different lengths: ragged tensors, moved without a loop over rows.

Element i of such a column is row i of the ragged tensor: an array, or a ragged tensor with one axis less.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.ragged.ragged_tensors import RaggedTensor, rows_of, slice_of
from evenfeed.core.ragged.row_partitions import from_lengths
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_columns import joined as joined_texts


def element(column: RaggedTensor, index: int) -> Any:
    """Return one element: a plain array or a ragged tensor."""
    row = column.row(index)
    return row if isinstance(row, RaggedTensor) else np.asarray(row)


def elements(column: RaggedTensor) -> list[Any]:
    """Return all elements: plain arrays or ragged tensors."""
    return rows_of(column)


def of_vectors(parts: Sequence[Any]) -> RaggedTensor | None:
    """Return vectors of numbers as one column; None if they have different dtypes, or are not all such vectors."""
    if not all(type(part) is np.ndarray and part.ndim == 1 for part in parts):
        return None
    if len({part.dtype for part in parts}) != 1 or parts[0].dtype.hasobject:
        return None
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return RaggedTensor(np.concatenate(parts), from_lengths(lengths, 0, check=False))


def cut(column: RaggedTensor, start: int, stop: int) -> RaggedTensor:
    """Return the elements from `start` up to `stop` or the end, without copying values."""
    return slice_of(column, start, min(stop, column.row_count))


def gathered(column: RaggedTensor, rows: Positions) -> RaggedTensor:
    """Return the elements at `rows`, in that order."""
    return column.rows(rows)


def copied(column: RaggedTensor) -> RaggedTensor:
    """Return a copy that shares no values."""
    return column.with_flat_values(column.flat_held.copy())


def frozen(column: RaggedTensor) -> RaggedTensor:
    """Return a view whose values are read-only."""
    values = column.flat_held
    if isinstance(values, Texts) or not values.flags.writeable:
        return column
    view = values.view(np.ndarray)
    view.flags.writeable = False
    return column.with_flat_values(view)


def nbytes(column: RaggedTensor) -> int:
    """Return the memory size of the splits and values; for text objects, that of the pointers."""
    inner = column.held
    below = nbytes(inner) if isinstance(inner, RaggedTensor) else inner.nbytes
    return column.splits.nbytes + below


def joined(parts: Sequence[RaggedTensor]) -> RaggedTensor | None:
    """Concatenate columns; None if their elements have different ranks, dtypes or inner shapes."""
    if len(set(map(_kind, parts))) > 1:
        return None
    lengths = np.concatenate([np.diff(part.splits) for part in parts])
    values = _joined_values([part.held for part in parts])
    if values is None:
        return None
    return RaggedTensor(values, from_lengths(lengths, 0, check=False), parts[0].uniform)


def in_batches(rows: RaggedTensor, count: int) -> RaggedTensor:
    """Return `count` batches of equally many rows, as a column of ragged tensors."""
    size = rows.row_count // count
    return RaggedTensor(rows, np.arange(count + 1, dtype=rows.splits.dtype) * size)


def one_length(column: RaggedTensor) -> int | None:
    """Return the length of all elements; None if they differ."""
    lengths = np.diff(column.splits)
    return int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else None


def of_one_length(column: Array) -> RaggedTensor:
    """Return rows of one length as a column that others of other lengths can be joined to."""
    rows, length = column.shape[:2]
    values = column.reshape(rows * length, *column.shape[2:])
    return RaggedTensor(values, np.arange(rows + 1, dtype=np.int64) * length)


def rows_of_rows(column: RaggedTensor) -> tuple[Array | Texts | RaggedTensor, Positions]:
    """Return the rows of all elements as one column, and how many each element has. Does not copy values."""
    first, last = int(column.splits[0]), int(column.splits[-1])
    values = column.held
    lengths = np.diff(column.splits).astype(np.int64, copy=False)
    if isinstance(values, RaggedTensor):
        return cut(values, first, last), lengths
    rows = values[first:last]
    return rows if isinstance(rows, Texts) else np.asarray(rows), lengths


def dense(column: RaggedTensor) -> Array | Texts | None:
    """Return elements of one length as an array with a leading axis; None if they differ or are ragged."""
    values = column.held
    length = None if isinstance(values, RaggedTensor) else one_length(column)
    if length is None:
        return None
    first = int(column.splits[0])
    whole = values[first : int(column.splits[-1])]
    shaped = whole.reshape(column.row_count, length, *values.shape[1:])
    return shaped if isinstance(shaped, Texts) else np.asarray(shaped)


def _kind(column: RaggedTensor) -> tuple[Any, ...]:
    inner = column.held
    below = _kind(inner) if isinstance(inner, RaggedTensor) else (inner.dtype, inner.shape[1:])
    return (column.splits.dtype, column.uniform, *below)


def _joined_values(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], RaggedTensor):
        return joined(parts)
    if all(isinstance(part, Texts) for part in parts):
        return joined_texts(parts)
    return np.concatenate([np.asarray(part) for part in parts])
