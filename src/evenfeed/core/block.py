"""A Block: a run of elements as columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_columns import joined as joined_texts

# One part of every element: an array with a leading axis; text that is not cut up yet; a list where the
# elements differ in shape or are no arrays; None where the part is None.
Column: TypeAlias = Array | Texts | list[Any] | None

# Of how many texts the lengths are looked at to tell about how long all are.
_SOME: Final = 16


@final
@dataclass(frozen=True, slots=True)
class Block:
    """A run of elements, one column for each part."""

    columns: tuple[Column, ...]
    length: int

    def row(self, index: int) -> list[Any]:
        """Return the parts of one element."""
        return [_item(column, index) for column in self.columns]

    def cut(self, start: int, stop: int) -> "Block":
        """Return the elements from `start` up to `stop` or the end, without copying them."""
        if start == 0 and stop >= self.length:
            return self
        columns = tuple(None if c is None else c[start:stop] for c in self.columns)
        return Block(columns, min(stop, self.length) - start)

    def gather(self, rows: Positions) -> "Block":
        """Return the elements at `rows`, in that order."""
        return Block(tuple(_gathered(column, rows) for column in self.columns), len(rows))

    def copy(self) -> "Block":
        """Return a Block whose columns nobody else holds."""
        return Block(tuple(None if c is None else c.copy() for c in self.columns), self.length)

    def cut_up(self) -> "Block":
        """Return the Block with all text as objects, for those who look at it."""
        return Block(tuple(map(cut_up, self.columns)), self.length)

    def replaced(self, rows: Positions, by: "Block") -> "Block":
        """Return the elements with others at `rows`; dense columns of one's own are written to."""
        pairs = zip(self.columns, by.columns, strict=True)
        return Block(tuple(_replaced(old, rows, new) for old, new in pairs), self.length)

    @property
    def nbytes(self) -> int:
        """How much memory the elements take; where they are text, about as much as some of them."""
        return sum(map(_bytes, self.columns))

    @property
    def bytes_per_row(self) -> int:
        """How much memory one element takes."""
        return self.nbytes // max(1, self.length)


def cut_up(column: Column) -> Array | list[Any] | None:
    """Return a column in which text is objects."""
    return np.asarray(column) if isinstance(column, Texts) else column


# What became of elements, in their order: results, and an error for each that failed.
Outcome: TypeAlias = Block | BaseException


def concatenated(blocks: Sequence[Block]) -> Block:
    """Return the elements of all blocks, one after the other, as one."""
    if len(blocks) == 1:
        return blocks[0]
    columns = zip(*(block.columns for block in blocks), strict=True)
    return Block(tuple(map(_joined, columns)), sum(block.length for block in blocks))


def fetched_apart(
    which: Positions, within: Positions, fetch: Callable[[int, Positions], Block]
) -> Block:
    """Return rows that lie in several places: in place `which[i]` the row `within[i]`, for every i.

    `fetch` is called once for each place that is needed.
    """
    order = np.argsort(which, kind="stable")
    places, starts = np.unique(which[order], return_index=True)
    groups = np.split(order, starts[1:])
    pairs = zip(places.tolist(), groups, strict=True)
    blocks = [fetch(place, within[mine]) for place, mine in pairs]
    return blocks[0] if len(blocks) == 1 else concatenated(blocks).gather(np.argsort(order))


def of_rows(rows: Sequence[Sequence[Any]]) -> Block:
    """Return elements given one by one as a Block."""
    return Block(tuple(stacked(parts) for parts in zip(*rows, strict=True)), len(rows))


def stacked(parts: Sequence[Any]) -> Column:
    """Return the same part of several elements as a column."""
    first = parts[0]
    if first is None:
        return None
    if not all(isinstance(part, (np.ndarray, np.generic)) for part in parts):
        return list(parts)
    if any(part.shape != first.shape or part.dtype != first.dtype for part in parts):
        return list(parts)
    column = np.empty((len(parts), *first.shape), first.dtype)
    for index, part in enumerate(parts):
        column[index] = part[()] if part.ndim == 0 else part
    return column


def in_one_piece(column: Column) -> Column:
    """Return a column that is a list as an array, if the elements are alike; as arrays of their own if not."""
    if not isinstance(column, list) or not column:
        return column
    whole = stacked(column)
    if not isinstance(whole, list):
        return whole
    # A view would keep alive what it was cut from.
    return [np.ascontiguousarray(x) if type(x) is np.ndarray and x.ndim else x for x in whole]


def _item(column: Column, index: int) -> Any:
    if column is None or isinstance(column, list):
        return None if column is None else column[index]
    # The dots keep a scalar an array, so that every part of an element has a shape and a dtype.
    return column[index, ...]


def _items(column: Column) -> list[Any]:
    return [] if column is None else [_item(column, index) for index in range(len(column))]


def _gathered(column: Column, rows: Positions) -> Column:
    if isinstance(column, list):
        return [column[row] for row in rows]
    return None if column is None else column.take(rows, axis=0)


def _replaced(column: Column, rows: Positions, by: Column) -> Column:
    column, by = cut_up(column), cut_up(by)
    if column is None or by is None:
        return None
    if not _fits(column, by):
        column = _items(column)
    if isinstance(column, list):
        for place, row in enumerate(rows.tolist()):
            column[row] = _item(by, place)
    else:
        column[rows] = by
    return column


def _fits(column: Array | list[Any], by: Array | list[Any]) -> bool:
    if isinstance(column, list) or isinstance(by, list):
        return isinstance(column, list)
    return column.shape[1:] == by.shape[1:]


def _bytes(column: Column) -> int:
    if isinstance(column, list):
        return sum(getattr(item, "nbytes", 8) for item in column)
    if isinstance(column, Texts):
        return column.nbytes
    if column is None or column.dtype != dtypes.string or not column.size:
        return 0 if column is None else column.nbytes
    some = column.ravel()[:: -(-column.size // _SOME)].tolist()
    return column.nbytes + column.size * sum(map(_text_bytes, some)) // len(some)


def _text_bytes(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else 0


def _joined(parts: tuple[Column, ...]) -> Column:
    uncut = [part for part in parts if isinstance(part, Texts)]
    if len(uncut) == len(parts) and len({part.shape[1:] for part in uncut}) == 1:
        return joined_texts(uncut)
    parts = tuple(map(cut_up, parts)) if uncut else parts
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    if parts[0] is None:
        return None
    return list(chain.from_iterable(map(_items, parts)))


def read_only(block: Block) -> Block:
    """Return the elements so that nobody can write to them."""
    return Block(tuple(map(frozen, block.columns)), block.length)


def frozen(column: Column) -> Column:
    """Return a column that nobody can write to."""
    if isinstance(column, list):
        return [frozen(item) if type(item) is np.ndarray else item for item in column]
    if column is None or isinstance(column, Texts) or not column.flags.writeable:
        return column
    view = column.view()
    view.flags.writeable = False
    return view


def blank(shape: Sequence[int], dtype: dtypes.DType) -> Array:
    """Return zeros, or empty text."""
    if dtype != dtypes.string:
        return np.zeros(shape, dtype)
    text = np.empty(shape, object)
    text.fill(b"")
    return text


def without_rows(spec: TensorSpec) -> Array:
    """Return no rows: dimensions that are not known are 0, and the first one always is."""
    lengths = [length or 0 for length in spec.shape.as_list()] if spec.shape.rank else []
    return blank((0, *lengths[1:]) if lengths else (), spec.dtype)
