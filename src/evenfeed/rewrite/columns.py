"""Reading a part of each row: a process whose devices hold some columns of the rows reads only these."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.formats.reader import PartRead
from evenfeed.plan.files import Files
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node, with_own_children
from evenfeed.plan.sources import TensorSlice

# For each component, the part of a row along each of its dimensions; None for the whole row.
Columns: TypeAlias = Sequence[tuple[slice, ...] | None]


def with_columns(plan: Node, columns: Columns) -> Node | None:
    """Return a plan of batches whose rows have only some columns.

    It cuts the arrays in memory, or mapped from files, that rows are taken from: as views, without copying. So it cuts
    the columns of tables in files: a process decodes a column of a Parquet file as a whole, but keeps its part.

    Returns:
        The plan; None if a transformation may look at the other columns, or rows are not taken from arrays or tables.
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
    if isinstance(node, Files):
        return _of_tables(columns, node)
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


def _of_tables(columns: Columns, node: Files) -> Node | None:
    spec = cast("dict[str, Any] | TypeSpec", node.spec)
    if not isinstance(spec, dict):
        return None
    pairs = list(zip(flatten(spec, DATA), columns, strict=True))
    if not all(_can_be_cut(*pair) for pair in pairs):
        return None
    rest, wanted = iter(columns), dict[str, tuple[PartRead, ...]]()
    for name in sorted(spec):
        wanted[name] = tuple(PartRead(cut=next(rest)) for _ in flatten(spec[name], DATA))
    found = [file.reading(wanted) for file in node.files]
    files = tuple(file for file in found if file is not None)
    if len(files) < len(found):
        return None
    return replace(node, files=files, spec=pack(spec, [_cut_spec(*p) for p in pairs], DATA))


def _can_be_cut(spec: Any, part: tuple[slice, ...] | None) -> bool:
    return part is None or (isinstance(spec, TensorSpec) and spec.shape.is_fully_defined())


def _cut_spec(spec: Any, part: tuple[slice, ...] | None) -> Any:
    if part is None:
        return spec
    shape = [len(range(length)[one]) for length, one in zip(spec.shape, part, strict=True)]
    return TensorSpec(shape, spec.dtype)
