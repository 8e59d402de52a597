"""Row splits: where each row of a ragged tensor starts and stops, and the checks of what users pass for them."""

from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described, shortened

_SPLIT_DTYPES: Final = (dtypes.int32, dtypes.int64)


def whole_vector(value: Any, argument: str) -> Array:
    """Return an argument as a vector of int32 or int64; Python numbers become int64."""
    array = to_array(value)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"{argument} must be a vector of integers, but got {shortened(value)}.",
            fix="pass a list of ints.",
        )
    is_given = isinstance(value, np.ndarray) and array.dtype == dtypes.int32
    return array if is_given else array.astype(np.int64)


def splits_dtype(dtype: Any) -> DType:
    """Return int32 or int64, the dtypes that row splits can have."""
    known = dtypes.as_dtype(dtype)
    if known not in _SPLIT_DTYPES:
        raise ValueError(
            described(
                f"Row splits must be int32 or int64, but got {dtypes.name_of(known)}.",
                fix="pass evenfeed.int32 or evenfeed.int64.",
            )
        )
    return known


def checked_splits(splits: Array, count: int) -> Array:
    """Return row splits, checked against the number of values."""
    if not len(splits) or splits[0] != 0:
        raise _invalid(f"row_splits must start with 0, but got {shortened(splits)}")
    if (np.diff(splits) < 0).any():
        raise _invalid(f"row_splits must not decrease, but got {shortened(splits)}")
    if splits[-1] != count:
        raise _invalid(f"the rows have {splits[-1]} values, but there are {count} values")
    return splits


def from_lengths(lengths: Array, count: int, *, check: bool = True) -> Array:
    """Return the row splits of rows with these lengths."""
    if check and (lengths < 0).any():
        raise _invalid(f"row_lengths must not be negative, but got {shortened(lengths)}")
    splits = np.concatenate([np.zeros(1, lengths.dtype), np.cumsum(lengths, dtype=lengths.dtype)])
    return checked_splits(splits, count) if check else splits


def from_rowids(rowids: Array, nrows: int | None, count: int) -> Array:
    """Return the row splits of values whose row numbers are given, in order."""
    if len(rowids) != count:
        raise _invalid(f"there are {len(rowids)} value_rowids, but {count} values")
    if len(rowids) and (rowids[0] < 0 or (np.diff(rowids) < 0).any()):
        raise _invalid(f"value_rowids must not decrease, but got {shortened(rowids)}")
    least = int(rowids[-1]) + 1 if len(rowids) else 0
    rows = least if nrows is None else nrows
    if rows < least:
        raise _invalid(f"nrows is {rows}, but value_rowids has row {least - 1}")
    return np.searchsorted(rowids, np.arange(rows + 1)).astype(rowids.dtype)


def from_uniform(length: int, count: int, nrows: int | None) -> Array:
    """Return the row splits of rows that all have one length."""
    if length < 0:
        raise _invalid(f"uniform_row_length must not be negative, but got {length}")
    rows = nrows if nrows is not None else count // length if length else 0
    if rows * length != count:
        raise ValueError(
            described(
                f"uniform_row_length={length} times nrows={rows} must equal nvals={count}.",
                fix="pass a length that divides the number of values.",
            )
        )
    return np.arange(rows + 1, dtype=np.int64) * length


def inside(width: int, lengths: Array) -> Array:
    """Return a matrix of bools: which columns of a dense matrix belong to rows of these lengths."""
    return np.less(np.arange(width), lengths[:, None])


def gathered(splits: Array, rows: Array) -> tuple[Array, Array]:
    """Return the splits of some rows, and the positions of their values."""
    firsts = splits[rows]
    lengths = splits[rows + 1] - firsts
    new = from_lengths(lengths, 0, check=False)
    # Within a row positions count up, so each starts at its row's first value minus its place in the result.
    shifts = np.repeat(firsts - new[:-1], lengths)
    return new, shifts + np.arange(new[-1], dtype=splits.dtype)


def _invalid(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"These rows do not form a valid RaggedTensor: {why}.",
        fix="check the row splits, lengths or ids against the values.",
    )
