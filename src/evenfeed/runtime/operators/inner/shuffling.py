"""Shuffles of a template whose seed is known: datasets of one length have one order."""

from functools import lru_cache
from typing import Final

import numpy as np

from evenfeed.core.block import Positions
from evenfeed.plan.ordering import Shuffle
from evenfeed.runtime.operators.inner.expanded import Expanded
from evenfeed.runtime.positions.orders import Forward, Shuffled

# A dataset that a function creates is in its first pass.
_FIRST_PASS: Final = 0


def shuffled(below: Expanded, node: Shuffle) -> Expanded:
    """Return the elements of each dataset in the order of a shuffle that was created for it."""
    lengths, starts = below.lengths, below.starts
    seed = (*node.seed, _FIRST_PASS)
    if len(lengths) and (lengths == lengths[0]).all():
        order = _order(int(lengths[0]), node.buffer_size, seed, node.reshuffle)
        places = (starts[:, None] + order).ravel()
    else:
        orders = [
            at + _order(length, node.buffer_size, seed, node.reshuffle)
            for at, length in zip(starts.tolist(), lengths.tolist(), strict=True)
        ]
        places = np.concatenate(orders) if orders else np.zeros(0, np.int64)
    return Expanded(below.rows.gather(places), lengths)


@lru_cache(maxsize=256)
def _order(length: int, buffer_size: int, seed: tuple[int, ...], reshuffle: bool) -> Positions:
    """Return the order in which a shuffle reads so many elements."""
    if not length:
        return np.zeros(0, np.int64)
    buffer = buffer_size if buffer_size > 0 else length
    order = Shuffled(Forward(length), buffer, seed, reshuffle=reshuffle)
    return order.stretch(0, length)
