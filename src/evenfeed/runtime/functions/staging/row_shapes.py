"""The shapes of the rows of a Block, which choose the program that runs on it."""

from typing import Any

from evenfeed.core.block import Block, Column, cut_up
from evenfeed.core.conversion import Array
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.runtime.functions.kernels import Kernels
from evenfeed.runtime.functions.vectorise import Row


def row_shapes(block: Block, kernels: Kernels) -> tuple[Row | None, ...] | None:
    """Return the row shapes of a Block; None if the elements differ in shape."""
    rows: list[Row | None] = []
    for column, spec, handle in zip(block.columns, kernels.specs, kernels.handles, strict=True):
        if column is None or handle or not isinstance(spec, TensorSpec):
            rows.append(None)
        elif (row := row_shape(column)) is None or row.dtype != spec.dtype:
            return None
        else:
            rows.append(row)
    return tuple(rows)


def rows_of(column: Column) -> Array | list[Any] | None:
    """Return a column whose rows have one shape."""
    return cut_up(ragged_columns.dense(column) if isinstance(column, RaggedTensor) else column)


def row_shape(column: Array | Texts | RaggedTensor | list[Any]) -> Row | None:
    """Return the shape of the rows of a column; None if they differ."""
    if isinstance(column, RaggedTensor):
        length = ragged_columns.one_length(column)
        return None if length is None else Row((length, *column.held.shape[1:]), column.dtype)
    if not isinstance(column, list):
        return Row(column.shape[1:], column.dtype)
    kinds = {(part.shape, part.dtype) for part in column}
    return Row(*kinds.pop()) if len(kinds) == 1 else None
