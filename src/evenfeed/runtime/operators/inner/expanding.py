"""Reads the datasets of many elements at once, by the template of a function that makes datasets."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions, concatenated, frozen, items
from evenfeed.core.conversion import Array
from evenfeed.core.ragged.ragged_columns import rows_of_rows
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import INFINITE
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.reader import DataFile
from evenfeed.plan.batching import PaddedBatch, Unbatch
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, Filter, Map, TakeWhile
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.templates import (
    Counting,
    GroupRows,
    Hole,
    RowsOf,
    RowsOfFile,
    Template,
    Whole,
    depends_on_element,
    holes_of,
    is_endless,
    open_count,
)
from evenfeed.plan.windows import Held, Window
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import all_blocks
from evenfeed.runtime.operators.inner.batched import batched
from evenfeed.runtime.operators.inner.expanded import (
    MOST_ROWS,
    Expanded,
    NotExpandable,
    check_size,
    runs,
)
from evenfeed.runtime.operators.inner.nesting import joined_inner, windows
from evenfeed.runtime.operators.inner.shuffling import shuffled
from evenfeed.runtime.positions.rows import numbered, side_by_side


@final
class Expander:
    """Reads the datasets that a template makes of a Block of elements.

    Args:
        template: What the datasets have in common.
        read: Returns all elements of a plan without holes.

    Attributes:
        plan: The plan with holes.
    """

    def __init__(self, template: Template, read: Callable[[Node], Block]) -> None:
        self.plan = plan = template.plan
        self._compute = template.compute
        self._read = read
        self._fixed: dict[int, Block] = {}
        self._inner = {id(node): made for node in plan.walk() if (made := _inner_of(node, read))}
        self._has_holes = {
            id(node) for node in plan.walk() if any(map(_is_made_for_each, node.walk()))
        }

    def __call__(self, elements: Block) -> Expanded:
        """Return the elements of the datasets of all `elements`.

        Raises:
            Exception: They cannot be read at once, or one of them fails.
        """
        parts = elements if self._compute is None else self._compute(elements)
        return self._expanded(self.plan, parts)

    def _expanded(self, node: Node, elements: Block) -> Expanded:
        if id(node) not in self._has_holes:
            return self._repeated(node, elements.length)
        holes = holes_of(node)
        if holes:
            return _filled(holes, elements)
        endless = list(map(is_endless, node.children))
        if isinstance(node, Repeat) and node.count < 0:
            raise NotExpandable  # it is not beside others, which end
        below = [
            self._expanded(child.children[0] if no_end else child, elements)
            for child, no_end in zip(node.children, endless, strict=True)
        ]
        if any(endless):
            below = _as_long_as_others(below, endless)
        if isinstance(node, FlatMap | Interleave):
            if not below[0].rows.length:
                raise NotExpandable
            return joined_inner(node, below[0], self._inner[id(node)](below[0].rows))
        return _step(node, below, elements)

    def _repeated(self, node: Node, count: int) -> Expanded:
        """Return the elements of a dataset that is the same for every element."""
        rows = self._fixed.get(id(node))
        if rows is None:
            if node.size == INFINITE or node.size > MOST_ROWS:
                raise NotExpandable
            rows = self._fixed[id(node)] = self._read(node)
        one = Expanded(rows, np.array([rows.length]))
        lengths = np.full(count, rows.length)
        return Expanded(one.picked(np.zeros(count, np.int64), lengths), lengths)


def _is_made_for_each(node: Node) -> bool:
    """Return True unless a node has the same elements for all: a shuffle would be in another pass when it is read again."""
    return depends_on_element(node) or isinstance(node, Shuffle)


def _inner_of(node: Node, read: Callable[[Node], Block]) -> Expander | None:
    """Return what reads the datasets that a function inside of the function makes."""
    datasets = node.function if isinstance(node, FlatMap | Interleave) else None
    template = datasets.kept.template if isinstance(datasets, InnerDatasets) else None
    return None if template is None else Expander(template, read)


def _as_long_as_others(below: list[Expanded], endless: list[bool]) -> list[Expanded]:
    """Repeat the only element of some datasets until the others end."""
    if all(endless):
        raise NotExpandable
    pairs = list(zip(below, endless, strict=True))
    lengths = np.minimum.reduce([one.lengths for one, no_end in pairs if not no_end])
    return [one.repeated(lengths) if no_end else one for one, no_end in pairs]


def read_whole(operator: Any, columns: int) -> Block:
    """Return all elements of an operator as one Block."""
    blocks: list[Block] = []
    for block in all_blocks(operator):
        blocks.append(block)
        if sum(each.length for each in blocks) > MOST_ROWS:
            raise NotExpandable
    if not blocks:
        raise NotExpandable
    assert len(blocks[0].columns) == columns
    return concatenated(blocks)


def _filled(holes: tuple[Hole, ...], elements: Block) -> Expanded:
    """Return the elements that the parts of each element give a source."""
    if isinstance(holes[0], GroupRows):
        groups: list[Any] = items(elements.columns[0])
        return Expanded(concatenated(groups), np.array([group.length for group in groups]))
    filled = [_column(hole, elements) for hole in holes]
    lengths = filled[0][1]
    if any(not np.array_equal(other, lengths) for _, other in filled[1:]):
        raise NotExpandable
    columns = tuple(column for column, _ in filled)
    return Expanded(_unshared(Block(columns, int(lengths.sum()))), lengths)


def _column(hole: Hole, elements: Block) -> tuple[Column, Positions]:
    count = elements.length
    match hole:
        case Whole():
            return _part(hole, elements), np.ones(count, np.int64)
        case RowsOf(source=int(index)):
            return _rows(elements.columns[index])
        case RowsOf(source=array):
            assert isinstance(array, np.ndarray)
            lengths = np.full(count, len(array))
            check_size(lengths, Block((array,), max(1, len(array))))
            return np.broadcast_to(array, (count, *array.shape)).reshape(
                -1, *array.shape[1:]
            ), lengths
        case Counting():
            return _numbers(hole, elements)
        case RowsOfFile():
            return _rows_of_files(hole.files(elements.columns[hole.source]))
        case GroupRows():
            raise NotExpandable  # it stands for all columns at once


def _rows_of_files(files: Sequence[DataFile]) -> tuple[Column, Positions]:
    """Return the rows of small files, and how many each has."""
    blocks: list[Block] = []
    lengths: list[Positions] = []
    done = 0
    while done < len(files):
        found = type(files[done]).read_together(files[done:])
        if found is None:
            raise NotExpandable
        blocks.append(found.block)
        lengths.append(np.diff(found.ends, prepend=0))
        done += len(found.ends)
    return concatenated(blocks).columns[0], np.concatenate(lengths)


def _part(hole: "int | Whole", elements: Block) -> Any:
    """Return a column of one value for each element."""
    source = hole.source if isinstance(hole, Whole) else np.array(hole, np.int64)
    if isinstance(source, int):
        return elements.columns[source]
    return np.repeat(source[None], elements.length, axis=0)


def _rows(column: Column) -> tuple[Column, Positions]:
    """Return the rows of all values of a column, and how many each has."""
    if isinstance(column, np.ndarray | Texts) and column.ndim > 1:
        count, length = column.shape[:2]
        return column.reshape(count * length, *column.shape[2:]), np.full(count, length)
    if isinstance(column, RaggedTensor):
        return rows_of_rows(column)
    if isinstance(column, list) and all(type(part) is Held for part in column):
        windows: list[Held] = column
        blocks = [Block(window.columns, window.length) for window in windows]
        return concatenated(blocks).columns[0], np.array([block.length for block in blocks])
    if isinstance(column, list) and all(isinstance(part, np.ndarray) for part in column):
        parts = [part.view(np.ndarray) for part in column]  # not as tensors
        kinds = {(part.shape[1:], part.dtype) for part in parts}
        if len(kinds) == 1 and all(part.ndim for part in parts):
            return np.concatenate(parts), np.array(list(map(len, parts)))
    raise NotExpandable


def _numbers(hole: Counting, elements: Block) -> tuple[Array, Positions]:
    bounds = [_part(bound, elements) for bound in (hole.start, hole.stop, hole.step)]
    first, stop, step = (np.asarray(bound).astype(np.int64) for bound in bounds)
    if not step.all() or max(np.abs(first).max(), np.abs(stop).max()) > 1 << 61:
        raise NotExpandable
    lengths = np.maximum(0, -(-(stop - first) // step))
    check_size(lengths)
    within = runs(np.zeros_like(lengths), lengths)
    numbers = np.repeat(first, lengths) + np.repeat(step, lengths) * within
    return numbers.astype(hole.dtype, copy=False), lengths


def _step(node: Node, below: list[Expanded], elements: Block) -> Expanded:
    """Return what a step makes of the datasets below it."""
    match node:
        case Map(function=RowFunction() as function):
            return Expanded(function.rows(below[0].rows), below[0].lengths)
        case Filter(predicate=RowFunction() as predicate):
            return _kept(below[0], predicate)
        case TakeWhile(predicate=RowFunction() as predicate):
            return _kept_at_first(below[0], predicate)
        case Batch() | PaddedBatch() | Unbatch():
            return batched(node, below[0])
        case Window():
            return windows(below[0], node)
        case Zip():
            return _side_by_side(below)
        case Concatenate():
            return _joined(*below)
        case Enumerate():
            within = runs(np.full(len(below[0].lengths), node.start), below[0].lengths)
            return Expanded(numbered(below[0].rows, within), below[0].lengths)
        case Repeat() | Take() | Skip():
            return _selected(below[0], node, _counts(node, elements))
        case Shard():
            return _sharded(below[0], node)
        case Shuffle():
            return shuffled(below[0], node)
        case _:  # options, buffers and caches do not change elements
            return below[0]


def _counts(node: Repeat | Take | Skip, elements: Block) -> Positions:
    """Return the count of a step for each dataset."""
    source = open_count(node)
    if source is None:
        return np.full(elements.length, node.count)
    return np.asarray(elements.columns[source.source]).astype(np.int64)


def _selected(below: Expanded, node: Repeat | Take | Skip, counts: Positions) -> Expanded:
    starts, lengths = below.starts, below.lengths
    if isinstance(node, Repeat):
        if (counts < 0).any():
            raise NotExpandable  # without end
        rows = below.picked(np.repeat(starts, counts), np.repeat(lengths, counts))
        return Expanded(rows, lengths * counts)
    within = np.where(counts < 0, lengths, np.minimum(lengths, counts))
    if isinstance(node, Skip):
        starts, within = starts + within, lengths - within
    return Expanded(below.picked(starts, within), within)


def _sharded(below: Expanded, node: Shard) -> Expanded:
    lengths = np.maximum(0, -(-(below.lengths - node.index) // node.num_shards))
    rows = below.picked(below.starts + node.index, lengths, node.num_shards)
    return Expanded(rows, lengths)


def _kept(below: Expanded, predicate: RowFunction) -> Expanded:
    answers = np.asarray(predicate.rows(below.rows).columns[0])
    before = np.concatenate([[0], np.cumsum(answers)])
    lengths = before[below.starts + below.lengths] - before[below.starts]
    return Expanded(below.rows.gather(np.flatnonzero(answers)), lengths)


def _kept_at_first(below: Expanded, predicate: RowFunction) -> Expanded:
    """Return the elements of each dataset before the first that the predicate rejects."""
    rejected = ~np.asarray(predicate.rows(below.rows).columns[0])
    ends = below.starts + below.lengths
    stops = np.append(np.flatnonzero(rejected), below.rows.length)
    first = stops[np.searchsorted(stops, below.starts)]
    lengths = np.minimum(first, ends) - below.starts
    return Expanded(below.picked(below.starts, lengths), lengths)


def _side_by_side(below: list[Expanded]) -> Expanded:
    lengths = np.minimum.reduce([one.lengths for one in below])
    blocks = [
        one.rows if np.array_equal(one.lengths, lengths) else one.picked(one.starts, lengths)
        for one in below
    ]
    return Expanded(_unshared(side_by_side(blocks)), lengths)


def _unshared(rows: Block) -> Block:
    """Make columns that share memory read-only: a write to one part must not change another."""
    columns = list(rows.columns)
    for index, column in enumerate(columns):
        others = [*columns[:index], *columns[index + 1 :]]
        if any(_may_share_memory(column, other) for other in others):
            columns[index] = frozen(column)
    return Block(tuple(columns), rows.length)


def _may_share_memory(one: Column, two: Column) -> bool:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.may_share_memory(one, two)
    return one is two and one is not None


def _joined(first: Expanded, second: Expanded) -> Expanded:
    both = Expanded(concatenated([first.rows, second.rows]), first.lengths + second.lengths)
    starts = np.stack([first.starts, first.rows.length + second.starts], axis=1).ravel()
    lengths = np.stack([first.lengths, second.lengths], axis=1).ravel()
    return Expanded(both.picked(starts, lengths), both.lengths)
