"""Batches of plans, as plain lists of rows."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from hypothesis import assume
from tests.plans import any_failed, events

from evenfeed.plan.node import Node
from evenfeed.runtime.elements import ElementIterator

MANY: Final = 60  # more batches than any plan of a test has
Rows = list[Any]  # of a batch, each with all its components
Datasets = Callable[[Any], Any]

# What may stand between the batches and the strategy.
ABOVE: Final[list[Datasets]] = [
    lambda batches: batches,
    lambda batches: batches.prefetch(1),
    lambda batches: batches.repeat(2),
    lambda batches: batches.take(3),
    lambda batches: batches.skip(1),
    lambda batches: batches.shard(2, 1),
    lambda batches: batches.shuffle(3, seed=1),
    lambda batches: batches.cache().repeat(2),
    lambda batches: batches.concatenate(batches),
    lambda batches: batches.map(lambda *parts: parts),
    lambda batches: batches.unbatch().batch(3),
]


def batches_of(plan: Node) -> list[Rows]:
    """Return the batches of a plan that is not rewritten, as lists of rows."""
    found = events(ElementIterator(plan, flat=True), MANY)
    assume(not any_failed(found) and len(found) < MANY)
    assume(all(any(part is not None for part in parts) for parts in found))
    return [rows_of(parts) for parts in found]


def rows_of(parts: list[Any]) -> Rows:
    """Return the rows of a batch, each with all its components."""
    return list(zip(*[part.tolist() for part in parts if part is not None], strict=True))


def pieces_of(column: Any, replicas: int) -> list[Any]:
    if isinstance(column, list):
        return column
    return np.split(column, replicas)
