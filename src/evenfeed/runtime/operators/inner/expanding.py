"""Reads the datasets of many elements at once, by the template of a function that makes datasets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions, concatenated, frozen
from evenfeed.core.conversion import Array
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.formats.reader import DataFile
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, Filter, Map
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat, Shard, Skip, Take
from evenfeed.plan.templates import (
    Counting,
    Hole,
    RowsOf,
    RowsOfFile,
    Whole,
    holes_of,
    is_endless,
)
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import all_blocks
from evenfeed.runtime.operators.grouping import folded, stackable
from evenfeed.runtime.positions.rows import numbered, side_by_side

# More rows or bytes are not read at once: their datasets are opened one by one.
_MOST_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 1 << 24


@final
class NotExpandable(Exception):  # noqa: N818 - never seen: the datasets are opened one by one
    """The datasets of these elements cannot be read at once."""


@final
@dataclass(frozen=True)
class Expanded:
    """The elements of several datasets, one dataset after the other, and how many each has."""

    rows: Block
    lengths: Positions

    @property
    def starts(self) -> Positions:
        """The index of the first element of each dataset."""
        return np.cumsum(self.lengths) - self.lengths

    def repeated(self, counts: Positions) -> "Expanded":
        """Return the only element of each dataset, as often as `counts` say."""
        _check_size(counts, self.rows)
        return Expanded(self.rows.gather(np.repeat(self.starts, counts)), counts)

    def picked(self, starts: Positions, lengths: Positions, step: int = 1) -> Block:
        """Return runs of elements: `lengths` of them from each of `starts` on, every `step`-th."""
        _check_size(lengths, self.rows)
        return self.rows.gather(runs(starts, lengths, step))


def runs(starts: Positions, lengths: Positions, step: int = 1) -> Positions:
    """Return the numbers of several runs, one after the other."""
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(starts, lengths) + within * step


def _check_size(lengths: Positions, rows: Block | None = None) -> None:
    total = int(lengths.sum())
    width = 8 if rows is None else rows.bytes_per_row
    if total > _MOST_ROWS or total * width > _MOST_BYTES:
        raise NotExpandable


@final
class Expander:
    """Reads the datasets that a template makes of a Block of elements.

    Args:
        template: The plan with holes.
        read: Returns all elements of a plan without holes.
    """

    def __init__(self, template: Node, read: Callable[[Node], Block]) -> None:
        self._template = template
        self._read = read
        self._fixed: dict[int, Block] = {}
        self._has_holes = {
            id(node) for node in template.walk() if any(holes_of(below) for below in node.walk())
        }

    def __call__(self, elements: Block) -> Expanded:
        """Return the elements of the datasets of all `elements`.

        Raises:
            Exception: They cannot be read at once, or one of them fails.
        """
        return self._expanded(self._template, elements)

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
        return _step(node, below)

    def _repeated(self, node: Node, count: int) -> Expanded:
        """Return the elements of a dataset that is the same for every element."""
        rows = self._fixed.get(id(node))
        if rows is None:
            if not 0 <= node.size <= _MOST_ROWS:
                raise NotExpandable
            rows = self._fixed[id(node)] = self._read(node)
        one = Expanded(rows, np.array([rows.length]))
        lengths = np.full(count, rows.length)
        return Expanded(one.picked(np.zeros(count, np.int64), lengths), lengths)


def _as_long_as_others(below: list[Expanded], endless: list[bool]) -> list[Expanded]:
    """Repeat the only element of some datasets until the others end."""
    if all(endless):
        raise NotExpandable
    pairs = list(zip(below, endless, strict=True))
    lengths = np.minimum.reduce([one.lengths for one, no_end in pairs if not no_end])
    return [one.repeated(lengths) if no_end else one for one, no_end in pairs]


def read_whole(operator: Any, columns: int) -> Block:
    """Return all elements of an operator as one Block."""
    blocks = list(all_blocks(operator))
    if not blocks:
        raise NotExpandable
    assert len(blocks[0].columns) == columns
    return concatenated(blocks)


def _filled(holes: tuple[Hole, ...], elements: Block) -> Expanded:
    """Return the elements that the parts of each element give a source."""
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
            _check_size(lengths, Block((array,), max(1, len(array))))
            return np.broadcast_to(array, (count, *array.shape)).reshape(
                -1, *array.shape[1:]
            ), lengths
        case Counting():
            return _numbers(hole, elements)
        case RowsOfFile():
            return _rows_of_files(hole.files(elements.columns[hole.source]))


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


def _rows(column: Column) -> tuple[Array, Positions]:
    """Return the rows of all values of a column, and how many each has."""
    if isinstance(column, np.ndarray) and column.ndim > 1:
        count, length = column.shape[:2]
        return column.reshape(count * length, *column.shape[2:]), np.full(count, length)
    if isinstance(column, list) and all(type(part) is np.ndarray and part.ndim for part in column):
        kinds = {(part.shape[1:], part.dtype) for part in column}
        if len(kinds) == 1:
            return np.concatenate(column), np.array(list(map(len, column)))
    raise NotExpandable


def _numbers(hole: Counting, elements: Block) -> tuple[Array, Positions]:
    bounds = [_part(bound, elements) for bound in (hole.start, hole.stop, hole.step)]
    first, stop, step = (np.asarray(bound).astype(np.int64) for bound in bounds)
    if not step.all() or max(np.abs(first).max(), np.abs(stop).max()) > 1 << 61:
        raise NotExpandable
    lengths = np.maximum(0, -(-(stop - first) // step))
    _check_size(lengths)
    within = runs(np.zeros_like(lengths), lengths)
    numbers = np.repeat(first, lengths) + np.repeat(step, lengths) * within
    return numbers.astype(hole.dtype, copy=False), lengths


def _step(node: Node, below: list[Expanded]) -> Expanded:
    """Return what a step makes of the datasets below it."""
    match node:
        case Map(function=RowFunction() as function):
            return Expanded(function.rows(below[0].rows), below[0].lengths)
        case Filter(predicate=RowFunction() as predicate):
            return _kept(below[0], predicate)
        case Batch():
            return _batches(below[0], node)
        case Zip():
            return _side_by_side(below)
        case Concatenate():
            return _joined(*below)
        case Enumerate():
            within = runs(np.full(len(below[0].lengths), node.start), below[0].lengths)
            return Expanded(numbered(below[0].rows, within), below[0].lengths)
        case Repeat() | Take() | Skip() | Shard():
            return _selected(below[0], node)
        case _:  # options and buffers do not change elements
            return below[0]


def _selected(below: Expanded, node: Repeat | Take | Skip | Shard) -> Expanded:
    starts, lengths, step = below.starts, below.lengths, 1
    match node:
        case Repeat():
            rows = below.picked(np.repeat(starts, node.count), np.repeat(lengths, node.count))
            return Expanded(rows, lengths * node.count)
        case Take():
            lengths = lengths if node.count < 0 else np.minimum(lengths, node.count)
        case Skip():
            skipped = lengths if node.count < 0 else np.minimum(lengths, node.count)
            starts, lengths = starts + skipped, lengths - skipped
        case Shard():
            starts, step = starts + node.index, node.num_shards
            lengths = np.maximum(0, -(-(lengths - node.index) // step))
    return Expanded(below.picked(starts, lengths, step), lengths)


def _kept(below: Expanded, predicate: RowFunction) -> Expanded:
    answers = np.asarray(predicate.rows(below.rows).columns[0])
    before = np.concatenate([[0], np.cumsum(answers)])
    lengths = before[below.starts + below.lengths] - before[below.starts]
    return Expanded(below.rows.gather(np.flatnonzero(answers)), lengths)


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


def _batches(below: Expanded, node: Batch) -> Expanded:
    """Return batches. Those of one size become one array; otherwise each is an array."""
    specs: list[TypeSpec] = flatten(node.row_spec, DATA)
    size, lengths = node.batch_size, below.lengths
    full, rest = lengths // size, lengths % size
    if node.drop_remainder and rest.any():
        lengths = full * size
        below, rest = Expanded(below.picked(below.starts, lengths), lengths), 0 * rest
    columns = [stackable(*pair) for pair in zip(below.rows.columns, specs, strict=True)]
    if any(type(column) is not np.ndarray for column in columns) or not below.rows.length:
        raise NotExpandable
    rows = Block(tuple(columns), below.rows.length)
    if not rest.any():
        return Expanded(folded(rows, int(full.sum()), specs), full)
    counts = full + (rest > 0)
    if not full.any() and (rest == rest[0]).all():
        return Expanded(folded(rows, len(lengths), specs), counts)
    within = runs(np.zeros_like(counts), counts) * size
    starts = np.repeat(below.starts, counts) + within
    stops = np.minimum(starts + size, np.repeat(below.starts + lengths, counts))
    pairs = list(zip(starts.tolist(), stops.tolist(), strict=True))
    lists = tuple([column[at:end] for at, end in pairs] for column in np_columns(rows))
    return Expanded(Block(lists, len(pairs)), counts)


def np_columns(rows: Block) -> list[Array]:
    """Return the columns, which are all arrays."""
    return [np.asarray(column) for column in rows.columns]
