"""Row splits: where each row of a ragged tensor starts and stops, and the checks of what users pass for them."""

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described, shortened
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.text.numba_loops import is_worth_it

if TYPE_CHECKING:
    from evenfeed.core.ragged import row_loops
else:
    row_loops = LazyModule("evenfeed.core.ragged.row_loops")

_SPLIT_DTYPES: Final = (dtypes.int32, dtypes.int64)
# The bytes of values that compiled loops copy.
_SIZES: Final = (1, 2, 4, 8)


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


def known_axis(axis: Any, rank: int) -> int:
    """Return an axis as a number from 0 on.

    Raises:
        ValueError: The tensor has no such axis.
    """
    given = int(axis)
    if not -rank <= given < rank:
        raise ValueError(
            described(
                f"axis={given} out of bounds: expected -{rank}<=axis<{rank}.",
                fix="pass an axis of the tensor's shape.",
            )
        )
    return given % rank


def merged_axes(outer: Any, inner: Any, rank: int) -> tuple[int, int]:
    """Return the first and the last axis to merge as numbers from 0 on."""
    first, last = known_axis(outer, rank), known_axis(inner, rank)
    if first > last:
        raise ValueError(
            described(
                f"outer_axis={outer} is after inner_axis={inner}.", fix="pass the outer axis first."
            )
        )
    return first, last


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
    firsts, lengths, new = _gathered_splits(splits, rows)
    # Within a row positions count up, so each starts at its row's first value minus its place in the result.
    shifts = np.repeat(firsts - new[:-1], lengths)
    return new, shifts + np.arange(new[-1], dtype=splits.dtype)


def gathered_values(values: Any, splits: Array, rows: Array) -> tuple[Any, Array]:
    """Return the values of some rows of an array or of text in a buffer, and their splits."""
    firsts, lengths, new = _gathered_splits(splits, rows)
    if is_copied(values, len(rows)):
        found = np.empty(int(new[-1]), values.dtype)
        copy_rows(values, firsts, lengths, found, new[:-1])
        return computed_tensor(found), new
    new, positions = gathered(splits, rows)
    return values[positions], new


def _gathered_splits(splits: Array, rows: Array) -> tuple[Array, Array, Array]:
    firsts = splits[rows]
    lengths = splits[rows + 1] - firsts
    return firsts, lengths, from_lengths(lengths, 0, check=False)


def is_copied(values: Any, rows: int) -> bool:
    """Return True if `copy_rows` should copy so many rows of values."""
    return is_worth_it(rows) and _is_plain(values)


def _is_plain(values: Any) -> bool:
    """Return True if values are a vector of numbers without gaps, of a size that compiled loops copy."""
    if not isinstance(values, np.ndarray):
        return False
    array = cast("Array", values)
    known = array.dtype.kind != "O" and array.itemsize in _SIZES
    return known and array.ndim == 1 and array.flags.c_contiguous


def copy_rows(values: Array, starts: Array, counts: Array, out: Array, places: Array) -> None:
    """Copy `counts[i]` values from `starts[i]` to `places[i]` in `out`, for each row i, by compiled code."""
    size = np.dtype(
        f"u{values.itemsize}"
    )  # bytes are copied as they are: a loop for each size will do
    first, lengths, to = (np.asarray(part, np.int64) for part in (starts, counts, places))
    row_loops.copy_rows(np.asarray(values).view(size), first, lengths, out.view(size), to)


def _invalid(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"These rows do not form a valid RaggedTensor: {why}.",
        fix="check the row splits, lengths or ids against the values.",
    )
