"""Rows that are equally long, which NumPy works on at once."""

import numpy as np

from evenfeed.core.block import Positions


def grouped(lengths: Positions, fewest: int, longest: int) -> tuple[list[Positions], Positions]:
    """Return the rows of each length that `fewest` rows or more have, and all other rows.

    Rows without length, or with more than `longest`, are among the others.
    """
    rows = np.arange(len(lengths))
    if len(rows) >= fewest and 0 < lengths[0] <= longest and (lengths == lengths[0]).all():
        return [rows], rows[:0]
    order = np.argsort(lengths, kind="stable")
    starts = np.flatnonzero(np.diff(lengths[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    length = lengths[order[starts]]
    together = (sizes >= fewest) & (length > 0) & (length <= longest)
    groups = [order[i : i + n] for i, n in zip(starts[together], sizes[together], strict=True)]
    return groups, np.sort(order[np.repeat(~together, sizes)])
