"""Finds the part of a plan whose rows can be addressed: it runs as arithmetic on positions."""

from typing import TypeAlias

from evenfeed.core.block import Column
from evenfeed.core.cardinality import INFINITE
from evenfeed.core.conversion import Array
from evenfeed.plan.buffering import Prefetch
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, WithKeys
from evenfeed.plan.files import Files
from evenfeed.plan.mapping import Map
from evenfeed.plan.node import Node
from evenfeed.plan.options_node import WithOptions
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.own_rows import OwnRows
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.plan.windows import ElementValue, Held
from evenfeed.runtime.elementwise import KeyedRows
from evenfeed.runtime.files import FileRows, InTurn
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.mapping import MappedRows
from evenfeed.runtime.orders import Again, Every, Forward, Order, Shuffled, first_round
from evenfeed.runtime.own_rows import Owned
from evenfeed.runtime.rows import Chained, Numbered, Reordered, Rounds, Rows, Zipped
from evenfeed.runtime.run import Run
from evenfeed.runtime.sources import Arrays, Numbers

Indexed: TypeAlias = tuple[Rows, Order]


def indexed(node: Node, run: Run, epoch: int = 0) -> Indexed | None:
    """Return the rows of a plan and their order; None where elements must be read one after another.

    Args:
        node: What to read.
        run: What is random in this pass.
        epoch: The round of a repetition above: the rows and the order are those of that round.
    """
    found = _found(node, run, epoch) if _may_be_found(node) else None
    return None if found is None else (found[0], found[1].of_epoch(epoch))


def _may_be_found(node: Node) -> bool:
    """Tell whether to look for positions: files are looked into for their rows only where that helps."""
    parts = list(node.walk())
    uncounted = any(isinstance(part, Files) and part.counts is None for part in parts)
    return not uncounted or any(
        isinstance(part, Shuffle | Shard | Skip | OwnRows) for part in parts
    )


def _found(node: Node, run: Run, epoch: int) -> Indexed | None:
    """Return rows as they are in an epoch, and an order that is still to be told the epoch."""
    match node:
        case Range() | Tensor() | TensorSlice() | Held() | Files():
            return _source(node)
        case Repeat() if _is_mixed_below(node):
            return _in_rounds(node, run, epoch)
        case Repeat() | Take() | Skip() | Shard() | Shuffle() | OwnRows():
            child = _found(node.child, run, epoch)
            return None if child is None else (child[0], _ordered(node, child[1], run))
        case Map(function=RowFunction() as function) if function.is_pure and function.is_vectorised:
            child = _found(node.child, run, epoch)
            return None if child is None else (MappedRows(child[0], function), child[1])
        case WithOptions() | Prefetch(buffer_size=0):
            return _found(node.child, run, epoch)
        case WithKeys():
            found = indexed(node.child, run, epoch)
            seed = run.seed_of_round(node, epoch)
            return None if found is None else _forward(KeyedRows(Reordered(*found), seed))
        case Enumerate() | Zip() | Concatenate():
            return _combined(node, [indexed(child, run, epoch) for child in node.children])
        case _:
            return None


def _source(node: Range | Tensor | TensorSlice | Held | Files) -> Indexed | None:
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
            counts = node.counted()
            if counts is None:
                return None
            rows = FileRows(node.files, counts)
            return (rows, InTurn(counts)) if node.in_turn else _forward(rows)


def _one_row(value: Array | ElementValue | None) -> Column:
    if isinstance(value, ElementValue):
        return [value]
    return None if value is None else value[None]


def _forward(rows: Rows) -> Indexed:
    return rows, Forward(rows.size)


def _combined(node: Enumerate | Zip | Concatenate, found: list[Indexed | None]) -> Indexed | None:
    parts = [Reordered(*part) for part in found if part is not None]
    if len(parts) < len(found):
        return None
    match node:
        case Enumerate():
            return _forward(Numbered(parts[0], node.start))
        case Zip():
            ends = [part.size for part in parts if part.size != INFINITE]
            return _forward(Zipped(parts, min(ends, default=INFINITE)))
        case Concatenate():
            return _forward(parts[0] if parts[0].size == INFINITE else Chained(*parts))


def _is_mixed_below(node: Repeat) -> bool:
    """Tell whether rows, not only their order, are others in each round: chance is part of them."""
    rows = node.child
    while isinstance(rows, Repeat | Take | Skip | Shard | Shuffle | Map):
        rows = rows.child
    return any(isinstance(part, Shuffle | WithKeys) and part.reshuffle for part in rows.walk())


def _in_rounds(node: Repeat, run: Run, epoch: int) -> Indexed | None:
    first = first_round(epoch, node.count)

    def play(number: int) -> Indexed | None:
        return indexed(node.child, run, first + number)

    found = play(0)
    if found is None or node.size_of(found[1].size) == 0:
        return found and (found[0], Every(found[1], 0, 1, 0))
    return _forward(Rounds(lambda n: Reordered(*(play(n) or found)), found[1].size, node.count))


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
