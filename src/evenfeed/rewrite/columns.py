"""Reading a part of each row: a process whose devices hold some columns of the rows reads only these."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node, with_own_children
from evenfeed.plan.sources import TensorSlice

# For each component, the part of a row along each of its dimensions; None for the whole row.
Columns: TypeAlias = Sequence[tuple[slice, ...] | None]


def with_columns(plan: Node, columns: Columns) -> Node | None:
    """Return a plan of batches whose rows have only some columns.

    It cuts the arrays in memory, or mapped from files, that rows are taken from: as views, without copying.

    Returns:
        The plan; None if a transformation may look at the other columns, or rows are not taken from arrays.
    """
    if all(part is None for part in columns):
        return None
    if isinstance(plan, Batch):
        below = _cut(columns, plan.child) if plan.row_splits_dtype is None else None
    elif plan.facts.same_elements and len(plan.children) == 1 and not _stores(plan):
        below = with_columns(plan.children[0], columns)
    else:
        below = None
    return None if below is None else with_own_children(plan, (below,))


def _cut(columns: Columns, node: Node) -> Node | None:
    """Return a plan of rows with only some columns."""
    if isinstance(node, TensorSlice):
        return _of_arrays(columns, node)
    facts = node.facts
    if not (facts.by_position or facts.same_elements) or _stores(node):
        return None
    found = list(map(partial(_cut, columns), node.children))
    children = tuple(child for child in found if child is not None)
    return with_own_children(node, children) if len(children) == len(found) else None


def _stores(node: Node) -> bool:
    """Return True if a node stores rows, which others may read as a whole."""
    return node.facts.keeps_passes or node.facts.writes_files


def _of_arrays(columns: Columns, node: TensorSlice) -> Node | None:
    arrays: Sequence[Any] = node.arrays
    pairs = list(zip(arrays, columns, strict=True))
    if not all(part is None or isinstance(array, np.ndarray) for array, part in pairs):
        return None
    cut = [array if part is None else array[(slice(None), *part)] for array, part in pairs]
    return replace(node, arrays=cut)
