"""Runs a traced function on a whole Block: its kernels, then its program."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenfeed.core.block import Block, Column, cut_up, frozen, in_one_piece
from evenfeed.core.conversion import Array
from evenfeed.core.handles import Handle
from evenfeed.core.specs import TensorSpec
from evenfeed.core.texts import Texts
from evenfeed.plan.mapping import AUTOTUNE
from evenfeed.runtime.compiled import Compiled
from evenfeed.runtime.kernels import Kernels, shared_row
from evenfeed.runtime.sharing import Done, Piece, cores, in_threads
from evenfeed.runtime.vectorise import Row


def threads_for(kernels: Kernels, parallel_calls: int | None) -> int:
    """Return how many threads share a Block: only kernels that work by rows are worth it."""
    if not kernels.in_rows or parallel_calls is None:
        return 1
    return cores() if parallel_calls == AUTOTUNE else min(parallel_calls, 4 * cores())


def on_blocks(compiled: Compiled, kernels: Kernels, block: Block, threads: int) -> Done:
    """Return the results, and which rows read out of range; None where there is no program for them."""
    return in_threads(partial(_computed, compiled, kernels), block, threads)


def _computed(compiled: Compiled, kernels: Kernels, piece: Piece) -> Done:
    block, held = kernels.widened(piece.block), kernels.held()
    rows = _row_shapes(block, kernels)
    program = None if rows is None else compiled.program((*rows, *map(shared_row, held)))
    if rows is None or program is None or not program.may_run():
        return None
    pairs = zip(block.columns, rows, strict=True)
    found = [cut_up(column) for column, row in pairs if row is not None]
    numeric = [column for column in found if column is not None]
    parts = program.found.parts
    numbers = [number for number, part in enumerate(parts) if isinstance(part, Row)]
    outputs, failed = program.run(
        numeric, block.length, lambda number, kind: piece.place(numbers[number], *kind), held
    )
    return _assembled(block, parts, outputs), failed


def _row_shapes(block: Block, kernels: Kernels) -> tuple[Row | None, ...] | None:
    """Return the shapes of a Block's elements; None where they differ from each other."""
    rows: list[Row | None] = []
    for column, spec, handle in zip(block.columns, kernels.specs, kernels.handles, strict=True):
        if column is None or handle or not isinstance(spec, TensorSpec):
            rows.append(None)
        elif (row := _row_shape(column)) is None or row.dtype != spec.dtype:
            return None
        else:
            rows.append(row)
    return tuple(rows)


def _row_shape(column: Array | Texts | list[Any]) -> Row | None:
    if not isinstance(column, list):
        return Row(column.shape[1:], column.dtype)
    kinds = {(part.shape, part.dtype) for part in column}
    return Row(*kinds.pop()) if len(kinds) == 1 else None


def _assembled(block: Block, parts: Sequence[Any], outputs: Sequence[Any]) -> Block:
    computed = iter(outputs)
    handed_on = Counter(part.index for part in parts if isinstance(part, Handle))
    columns: list[Column] = []
    for part in parts:
        match part:
            case Row():
                columns.append(next(computed))
            case Handle():
                column = in_one_piece(block.columns[part.index])
                # Who writes to one part of an element must not change another.
                columns.append(column if handed_on[part.index] == 1 else frozen(column))
            case None:
                columns.append(None)
            case _:
                columns.append(np.broadcast_to(part, (block.length, *part.shape)))
    return Block(tuple(columns), block.length)
