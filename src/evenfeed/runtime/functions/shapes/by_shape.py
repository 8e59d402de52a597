"""Runs a traced function on elements of different shapes: sorts them by shape, so that each program gets many."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.block import Block, Column, concatenated
from evenfeed.core.conversion import Positions
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.runtime.functions.kernels import Kernels

# Returns the results of some elements.
Run: TypeAlias = Callable[[Block], Block]

# The dtypes of results that are stored as ragged columns.
_NUMERIC: Final = "biuf"


@final
class ElementsByShape:
    """The elements of a Block, sorted by the shapes of their parts.

    Args:
        block: The elements, with the results of kernels.
        numbers: A number for each element, equal for elements of equal shapes.
    """

    def __init__(self, block: Block, numbers: Positions) -> None:
        self._block = block
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        self._places: list[Positions] = np.split(order, starts[1:])

    def run(self, choose: Callable[[Block, int], Run | None], singly: Run) -> Block:
        """Return the results of all elements.

        Args:
            choose: Returns what runs on elements of one shape, given one of them and how many there are; None if they
                should run one by one.
            singly: Runs on elements one by one.
        """
        chosen: list[tuple[Run, Positions]] = []
        alone: list[Positions] = []
        for places in self._places:
            first = int(places[0])
            run = choose(self._block.cut(first, first + 1), len(places))
            if run is None:
                alone.append(places)
            else:
                chosen.append((run, places))
        if not chosen:
            return singly(self._block)
        if alone:
            chosen.append((singly, np.sort(np.concatenate(alone))))
        return self._in_order(chosen)

    def _in_order(self, chosen: Sequence[tuple[Run, Positions]]) -> Block:
        order = np.concatenate([places for _, places in chosen])
        ordered = self._block.gather(order)
        done: list[Block] = []
        start = 0
        for run, places in chosen:
            done.append(run(ordered.cut(start, start + len(places))))
            start += len(places)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return _joined(done).gather(back)


def by_shape(block: Block, kernels: Kernels) -> ElementsByShape | None:
    """Sort elements that differ in shape; None if a part is not an array, or ragged itself."""
    found: list[Positions] = []
    for column, spec, handle in zip(block.columns, kernels.specs, kernels.handles, strict=True):
        if column is None or handle or not isinstance(spec, TensorSpec):
            continue
        if isinstance(column, RaggedTensor):
            if isinstance(column.held, RaggedTensor):
                return None
            found.append(np.diff(column.splits).astype(np.int64))
        elif isinstance(column, list):
            shapes: dict[Any, int] = {}
            each = [shapes.setdefault(part.shape, len(shapes)) for part in column]
            found.append(np.array(each, np.int64))
    if not found:
        return None
    numbers = found[0]
    if len(found) > 1:
        numbers = np.unique(np.stack(found, 1), axis=0, return_inverse=True)[1].ravel()
    return ElementsByShape(block, numbers)


def _joined(blocks: Sequence[Block]) -> Block:
    """Concatenate Blocks; rows of different lengths become one ragged column, not a list."""
    columns = zip(*(block.columns for block in blocks), strict=True)
    parts = zip(*map(_alike, columns), strict=True)
    return concatenated([Block(c, b.length) for c, b in zip(parts, blocks, strict=True)])


def _alike(parts: tuple[Column, ...]) -> tuple[Column, ...]:
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.shape[1:] for array in arrays}) == 1:
        return parts
    return tuple(
        ragged_columns.of_one_length(part)
        if isinstance(part, np.ndarray) and part.ndim > 1 and part.dtype.kind in _NUMERIC
        else part
        for part in parts
    )
