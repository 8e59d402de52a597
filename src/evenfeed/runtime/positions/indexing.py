"""Finds the part of a plan whose elements have positions: it runs as arithmetic on positions."""

from collections.abc import Iterable
from typing import Final, TypeAlias, final

from evenfeed.core.block import Column
from evenfeed.core.conversion import Array
from evenfeed.core.specs import INFINITE
from evenfeed.plan.buffering import Prefetch
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, Map, WithKeys
from evenfeed.plan.files import Files
from evenfeed.plan.node import Node
from evenfeed.plan.options import WithOptions
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.own_rows import OwnRows
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.plan.windows import ElementValue, Held
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operators.combining import Parts
from evenfeed.runtime.operators.elementwise import KeyedRows, MappedRows
from evenfeed.runtime.operators.files import FileRows, InTurn
from evenfeed.runtime.operators.sources import Arrays, Numbers
from evenfeed.runtime.positions.orders import Again, Every, Forward, Order, Shuffled, first_round
from evenfeed.runtime.positions.own_rows import Owned
from evenfeed.runtime.positions.rows import Chained, Numbered, Reordered, Rounds, Rows, Zipped
from evenfeed.runtime.run import Run

Indexed: TypeAlias = tuple[Rows, Order]

# A concatenation of more datasets than this is not searched part by part before the first is read.
_MANY: Final = 10_000


def indexed(node: Node, run: Run, epoch: int = 0) -> Indexed | None:
    """Return the rows of a plan and their order; None if elements must be read sequentially.

    Args:
        node: The plan to read.
        run: The random state of this pass.
        epoch: The round of a repeat above; rows and order are those of that round.
    """
    return Search().indexed(node, run, epoch)


@final
class Search:
    """Finds the rows and orders of nodes, once for each node and place."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], Indexed | None] = {}
        self._mixed: dict[int, bool] = {}
        self._top: Node | None = None  # the plan being searched
        # Whether row counts were not read. A search from another part of the plan may need them.
        self._declined = False

    def indexed(self, node: Node, run: Run, epoch: int = 0) -> Indexed | None:
        """Return the rows of a plan and their order in a round; None if it must be read sequentially."""
        outside, self._top = self._top, node
        found = self._found(node, run, epoch)
        self._top = outside
        return None if found is None else (found[0], found[1].of_epoch(epoch))

    def _found(self, node: Node, run: Run, epoch: int) -> Indexed | None:
        """Return the rows of an epoch, and an order to which the epoch is still to be applied."""
        key = id(node), epoch, run.place
        if key in self._known or run.is_sequential(node):
            return self._known.get(key)
        before, self._declined = self._declined, False
        found = self._sought(node, run, epoch)
        if not self._declined:
            self._known[key] = found
            run.note(node, sequential=found is None)
        self._declined |= before
        return found

    def _sought(self, node: Node, run: Run, epoch: int) -> Indexed | None:
        match node:
            case Range() | Tensor() | TensorSlice() | Held() | Files():
                return self._source(node)
            case Repeat() if self._is_mixed_below(node):
                return self._in_rounds(node, run, epoch)
            case Repeat() | Take() | Skip() | Shard() | Shuffle() | OwnRows():
                child = self._found(node.child, run, epoch)
                return None if child is None else (child[0], _ordered(node, child[1], run))
            case Map(function=RowFunction() as function):
                usable = function.is_pure and function.is_vectorised
                child = self._found(node.child, run, epoch) if usable else None
                return None if child is None else (MappedRows(child[0], function), child[1])
            case WithOptions() | Prefetch(buffer_size=0):
                return self._found(node.child, run, epoch)
            case WithKeys():
                found = self.indexed(node.child, run, epoch)
                seed = run.seed_of_round(node, epoch)
                return None if found is None else _forward(KeyedRows(Reordered(*found), seed))
            case Concatenate():
                return self._chained(node, run, epoch)
            case Enumerate() | Zip():
                parts = self._parts(run.children_of(node), epoch)
                return None if parts is None else _side_by_side(node, parts)
            case _:
                return None

    def _source(self, node: Range | Tensor | TensorSlice | Held | Files) -> Indexed | None:
        match node:
            case Range():
                return _forward(Numbers(node))
            case Tensor():
                return _forward(Arrays(list(map(_one_row, node.arrays)), 1))
            case TensorSlice():
                return _forward(Arrays(node.arrays, node.size))
            case Held():
                return _forward(Arrays(node.columns, node.size))
            case Files():
                return self._files(node)

    def _files(self, node: Files) -> Indexed | None:
        """Return the rows of files. Reads their row counts only where positions help."""
        if node.counts is None and not _needs_positions(self._top or node):
            self._declined = True
            return None
        counts = node.counted()
        if counts is None:
            return None
        rows = FileRows(node.files, counts)
        return (rows, InTurn(counts)) if node.in_turn else _forward(rows)

    def _chained(self, node: Concatenate, run: Run, epoch: int) -> Indexed | None:
        row = Parts(node, run)
        if row.count <= _MANY:
            parts = self._parts(row, epoch)
        else:
            parts = None if run.has_places else self._parts(run.children_of(node), epoch)
        if parts is None:
            return None
        ends = next((n for n, part in enumerate(parts, 1) if part.size == INFINITE), len(parts))
        return _forward(parts[0] if ends == 1 else Chained(parts[:ends]))

    def _parts(self, nodes: Iterable[tuple[Node, Run]], epoch: int) -> list[Rows] | None:
        """Return the rows of several nodes in their orders; None if one of them has no positions."""
        found: list[Rows] = []
        for node, run in nodes:
            part = self.indexed(node, run, epoch)
            if part is None:
                return None
            found.append(Reordered(*part))
        return found

    def _is_mixed_below(self, node: Repeat) -> bool:
        """Return True if the rows themselves, not only their order, differ in each round."""
        passed: list[Node] = []
        rows: Node = node
        while isinstance(rows, Repeat | Take | Skip | Shard | Shuffle | Map):
            if id(rows) in self._mixed:
                break
            passed.append(rows)
            rows = rows.child
        mixed = self._mixed.get(id(rows))
        if mixed is None:
            mixed = any(
                isinstance(part, Shuffle | WithKeys) and part.reshuffle for part in rows.walk()
            )
        self._mixed |= {id(part): mixed for part in passed}
        return mixed

    def _in_rounds(self, node: Repeat, run: Run, epoch: int) -> Indexed | None:
        first = first_round(epoch, node.count)

        def play(number: int) -> Indexed | None:
            return indexed(node.child, run, first + number)

        found = self.indexed(node.child, run, first)
        if found is None or node.size_of(found[1].size) == 0:
            return found and (found[0], Every(found[1], 0, 1, 0))
        return _forward(Rounds(lambda n: Reordered(*(play(n) or found)), found[1].size, node.count))


def _needs_positions(node: Node) -> bool:
    return any(isinstance(part, Shuffle | Shard | Skip | OwnRows) for part in node.walk())


def _one_row(value: Array | ElementValue | None) -> Column:
    if isinstance(value, ElementValue):
        return [value]
    return None if value is None else value[None]


def _forward(rows: Rows) -> Indexed:
    return rows, Forward(rows.size)


def _side_by_side(node: Enumerate | Zip, parts: list[Rows]) -> Indexed:
    if isinstance(node, Enumerate):
        return _forward(Numbered(parts[0], node.start))
    ends = [part.size for part in parts if part.size != INFINITE]
    return _forward(Zipped(parts, min(ends, default=INFINITE)))


def _ordered(
    node: Repeat | Take | Skip | Shard | Shuffle | OwnRows, order: Order, run: Run
) -> Order:
    match node:
        case Repeat():
            size = node.size_of(order.size)
            return Again(order, node.count) if size else Every(order, 0, 1, 0)
        case Take():
            return Every(order, 0, 1, node.size_of(order.size))
        case Skip():
            return Every(order, max(0, node.count), 1, node.size_of(order.size))
        case Shard():
            return Every(order, node.index, node.num_shards, node.size_of(order.size))
        case OwnRows():
            return Owned(order, node)
        case Shuffle():
            buffer = node.buffer_size if node.buffer_size > 0 else order.size
            return Shuffled(order, buffer, run.seed(node), reshuffle=node.reshuffle)
