"""Steps of a template that hold datasets themselves: windows, and datasets of datasets."""

from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np

from evenfeed.core.block import Block, Column, Positions, cut_up
from evenfeed.core.conversion import Array
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.windows import Window
from evenfeed.runtime.operators.inner.expanded import Expanded, NotExpandable, check_size, runs

# Longer turns would take long to count, and much memory to remember.
_MOST_TURNS: Final = 1 << 12


def joined_inner(node: FlatMap | Interleave, outer: Expanded, inner: Expanded) -> Expanded:
    """Return the elements of datasets, of which the elements of `outer` were made, as datasets of their elements.

    Args:
        node: What joins them.
        outer: The datasets whose elements were mapped to datasets.
        inner: The datasets that they were mapped to.
    """
    ends = np.concatenate([[0], np.cumsum(inner.lengths)])
    first, last = ends[outer.starts], ends[outer.starts + outer.lengths]
    if isinstance(node, FlatMap):
        return Expanded(inner.rows, last - first)
    groups = np.split(inner.lengths, np.cumsum(outer.lengths)[:-1])
    turns = [
        _turns(tuple(group.tolist()), node.cycle_length, node.block_length) for group in groups
    ]
    order = np.concatenate([at + turn for at, turn in zip(first.tolist(), turns, strict=True)])
    return Expanded(inner.rows.gather(order), last - first)


@lru_cache(maxsize=64)
def _turns(lengths: tuple[int, ...], cycle: int, block: int) -> Positions:
    """Return the order in which the elements of datasets, one after the other, are read in turn.

    When a dataset ends, the next one takes its slot when the turn comes back to it.
    """
    if sum(lengths) + len(lengths) * cycle > _MOST_TURNS:
        raise NotExpandable
    ends = list(accumulate(lengths))
    waiting = zip([0, *ends[:-1]], ends, strict=True)
    slots: list[tuple[int, int] | None] = [None] * cycle
    order: list[int] = []
    turn = idle = 0
    while idle < cycle:  # a whole round without a dataset
        slot = slots[turn] or next(waiting, None)
        idle = 0 if slot else idle + 1
        if slot:
            at, end = slot
            stop = min(at + block, end)
            order += range(at, stop)
            slots[turn] = (stop, end) if stop - at == block else None
        turn = (turn + 1) % cycle
    return np.array(order, np.int64)


def windows(below: Expanded, node: Window) -> Expanded:
    """Return the windows of each dataset. Full ones become rows of one array; otherwise each is an array."""
    columns = list(map(cut_up, below.rows.columns))
    if not all(type(column) is np.ndarray for column in columns):
        raise NotExpandable
    counts = -(-below.lengths // node.shift)
    if node.drop_remainder:
        counts = np.maximum(0, (below.lengths - node.span) // node.shift + 1)
    starts = runs(below.starts, counts, node.shift)
    left = np.repeat(below.starts + below.lengths, counts) - starts
    lengths = np.minimum(node.length, -(-left // node.stride))
    check_size(lengths, below.rows)
    found = [_windows(np.asarray(column), starts, lengths, node) for column in columns]
    return Expanded(Block(tuple(found), len(starts)), counts)


def _windows(column: Array, starts: Positions, lengths: Positions, node: Window) -> Column:
    if (lengths == node.length).all():
        return column[starts[:, None] + np.arange(node.length) * node.stride]
    pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
    return [column[at : at + node.stride * count : node.stride] for at, count in pairs]
