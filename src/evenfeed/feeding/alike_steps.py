"""Which of the next steps have the same shapes, so that they can go to the devices together."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.feeding.composite_rows import stays_on_host


def alike_steps(columns: Sequence[Any]) -> list[Any]:
    """Return the first steps of columns with a leading axis: those that have the shapes of the first one."""
    count = min((_count_alike(column) for column in columns if column is not None), default=0)
    return [_first(column, count) for column in columns]


def _first(column: Any, count: int) -> Any:
    if column is None:
        return None
    return np.stack(column[:count]) if _has_arrays(column) else column[:count]


def _has_arrays(column: Any) -> bool:
    return isinstance(column, list) and all(
        type(part) is np.ndarray for part in cast("list[Any]", column)
    )


def _count_alike(column: Any) -> int:
    if not _has_arrays(column):
        return len(column)
    kind = column[0].shape, column[0].dtype
    alike = (index for index, part in enumerate(column) if (part.shape, part.dtype) != kind)
    return next(alike, len(column))


def same_lengths(columns: Sequence[Any]) -> list[Any]:
    """Return the first steps whose global batches have the length of the first one, which the first column tells."""
    lengths = columns[0]
    others = np.flatnonzero(lengths != lengths[0])
    count = int(others[0]) if len(others) else len(lengths)
    return [_first(column, count) for column in columns]


def are_even(columns: Sequence[Any], count: int) -> bool:
    """Return True if the steps in columns with a leading axis are arrays whose rows can be split evenly."""
    for column in columns:
        if column is None:
            continue
        if not isinstance(column, np.ndarray) or stays_on_host(cast("Array", column)):
            return False
        shape = cast("Array", column).shape
        if 0 in shape or (count > 1 and (len(shape) < 2 or shape[1] % count)):
            return False
    return True
