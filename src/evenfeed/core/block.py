"""Block: a run of elements stored as columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import Composite
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_columns import joined as joined_texts

# The same part of every element: an array with a leading axis, text that is not split into objects yet, a ragged
# tensor with one row per element, a list if shapes differ otherwise or the parts are not arrays, or None if the part
# is None.
Column: TypeAlias = Array | Texts | RaggedTensor | list[Any] | None

# How many texts are sampled to estimate the size of all.
_SAMPLES: Final = 16


@dataclass(frozen=True, slots=True, init=False)
class Block:
    """A run of elements, with one column per part."""

    columns: tuple[Column, ...]
    length: int

    def __init__(self, columns: tuple[Column, ...], length: int) -> None:
        # Half the time of what a frozen dataclass does, and every read makes some Blocks.
        _set_columns(self, columns)
        _set_length(self, length)

    def row(self, index: int) -> list[Any]:
        """Return the parts of one element."""
        row = (index, ...)
        parts: list[Any] = []
        for column in self.columns:
            part = _indexed(column, row) if isinstance(column, _ndarray) else _item(column, index)
            parts.append(part)  # a comprehension takes half as long again
        return parts

    def cut(self, start: int, stop: int) -> "Block":
        """Return the elements from `start` up to `stop` or the end, without copying them."""
        if start == 0 and stop >= self.length:
            return self
        columns = tuple([_cut(column, start, stop) for column in self.columns])
        return Block(columns, min(stop, self.length) - start)

    def gather(self, rows: Positions) -> "Block":
        """Return the elements at `rows`, in that order."""
        return Block(tuple(_gathered(column, rows) for column in self.columns), len(rows))

    def copy(self) -> "Block":
        """Return a copy that shares no memory with this Block."""
        return Block(tuple(map(_copied, self.columns)), self.length)

    def cut_up(self) -> "Block":
        """Return the Block with all text as bytes objects and ragged columns as lists, for code that reads it."""
        return Block(tuple(map(cut_up, self.columns)), self.length)

    def replaced(self, rows: Positions, by: "Block") -> "Block":
        """Return the elements with those at `rows` replaced. Writes into dense columns in place."""
        pairs = zip(self.columns, by.columns, strict=True)
        return Block(tuple(_replaced(old, rows, new) for old, new in pairs), self.length)

    def is_same(self, other: "Block") -> bool:
        """Return True if all elements have the same dtypes, shapes and values, but for rounding."""
        if (self.length, len(self.columns)) != (other.length, len(other.columns)):
            return False
        return all(map(_is_same, self.columns, other.columns))

    @property
    def nbytes(self) -> int:
        """The memory size of the elements; for text, an estimate from a sample."""
        return sum(map(_bytes, self.columns))

    @property
    def bytes_per_row(self) -> int:
        """The average memory size of one element."""
        return self.nbytes // max(1, self.length)


@final
class ScratchBlock(Block):
    """A Block whose arrays nobody else refers to: a function may write its results over them."""

    __slots__ = ()


# Every element takes this way, and `column[row]` of a HostTensor would run Python code.
_ndarray: Final = np.ndarray
_indexed: Final[Any] = np.ndarray.__getitem__

_set_columns: Final[Callable[[Block, tuple[Column, ...]], None]] = vars(Block)["columns"].__set__
_set_length: Final[Callable[[Block, int], None]] = vars(Block)["length"].__set__


def cut_up(column: Column) -> Array | list[Any] | None:
    """Return a column with text as bytes objects, and rows of different lengths as a list."""
    if isinstance(column, RaggedTensor):
        return ragged_columns.elements(column)
    return np.asarray(column) if isinstance(column, Texts) else column


def _is_same(one: Column, two: Column) -> bool:
    one, two = cut_up(one), cut_up(two)
    if one is None or two is None:
        return one is two
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return _is_same_array(one, two)
    return all(_is_same_array(np.asarray(a), np.asarray(b)) for a, b in zip(one, two, strict=True))


def _is_same_array(one: Array, two: Array) -> bool:
    if (one.dtype, one.shape) != (two.dtype, two.shape):
        return False
    if one.dtype.kind == "O":
        return one.tolist() == two.tolist()
    if one.dtype.kind not in "fc":
        return one.tobytes() == two.tobytes()
    # Compiled functions round differently for one element and for many.
    largest = float(np.abs(one[np.isfinite(one)]).max(initial=0))
    rounding = float(np.sqrt(np.finfo(one.dtype).eps)) * largest
    return bool(np.isclose(one, two, rtol=0, atol=rounding, equal_nan=True).all())


# The outcome for some elements, in order: their results, or the error of one that failed.
Outcome: TypeAlias = Block | BaseException


def concatenated(blocks: Sequence[Block]) -> Block:
    """Concatenate several Blocks."""
    if len(blocks) == 1:
        return blocks[0]
    columns = zip(*(block.columns for block in blocks), strict=True)
    return Block(tuple(map(_joined, columns)), sum(block.length for block in blocks))


def fetched_apart(
    which: Positions, within: Positions, fetch: Callable[[int, Positions], Block]
) -> Block:
    """Gather rows from several places: for every i, row `within[i]` of place `which[i]`.

    Calls `fetch` once for each place.
    """
    # NumPy sorts 16 bits by radix.
    small = which.astype(np.uint16) if len(which) and which.max() < 1 << 16 else which
    order = np.argsort(small, kind="stable")
    ordered = which[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    groups = np.split(order, starts[1:])
    pairs = zip(ordered[starts].tolist(), groups, strict=True)
    blocks = [fetch(place, within[mine]) for place, mine in pairs]
    if len(blocks) == 1:
        return blocks[0]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return concatenated(blocks).gather(back)


def of_rows(rows: Sequence[Sequence[Any]]) -> Block:
    """Build a Block from elements given one by one. Single numbers may be NumPy scalars, single texts bytes."""
    return Block(tuple(stacked(parts) for parts in zip(*rows, strict=True)), len(rows))


def of_parts(parts: Sequence[Any]) -> Block:
    """Build a Block from elements of one part. Single numbers may be NumPy scalars, single texts bytes."""
    return Block((stacked(parts),), len(parts))


def stacked(parts: Sequence[Any]) -> Column:
    """Build a column from the same part of several elements."""
    first = parts[0]
    if first is None:
        return None
    kinds = set(map(type, parts))
    if bytes in kinds:
        return _stacked_texts(parts, kinds)
    if not all(issubclass(kind, (np.ndarray, np.generic)) for kind in kinds):
        return list(parts)
    shape, dtype = first.shape, first.dtype
    if len(kinds) == 1 and isinstance(first, np.generic) and dtype.kind in "biuf":
        # Numbers of one type have one dtype, and are their own bytes: joining those takes half the time of np.array.
        return np.frombuffer(b"".join(parts), dtype).copy()
    for part in parts:
        if (part.dtype is not dtype and part.dtype != dtype) or part.shape != shape:
            return list(parts)
    if dtype.kind in "biuf":
        return np.array(parts, dtype)  # half the time of the loop, which other dtypes need
    column = np.empty((len(parts), *shape), dtype)
    for index, part in enumerate(parts):
        column[index] = part[()] if part.ndim == 0 else part
    return column


def _stacked_texts(parts: Sequence[Any], kinds: set[type]) -> Column:
    if len(kinds) > 1:
        return stacked([as_array(part) for part in parts])
    column = np.empty(len(parts), dtypes.string)
    column[:] = parts
    return column


def as_array(part: Any) -> Any:
    """Return a part of an element as an array, if it is a NumPy scalar or bytes."""
    if type(part) is bytes:
        array = np.empty((), dtypes.string)
        array[()] = part
        return array
    scalar: Any = part
    return np.asarray(scalar) if isinstance(part, np.generic) else part


def in_one_piece(column: Column) -> Column:
    """Turn a list column into one array if all items have one shape and dtype, otherwise into contiguous arrays.

    A ragged column whose rows have one length becomes an array too.
    """
    if isinstance(column, RaggedTensor):
        whole = ragged_columns.dense(column)
        return column if whole is None else whole
    if not isinstance(column, list) or not column:
        return column
    whole = stacked(column)
    if not isinstance(whole, list):
        return whole
    # A view would keep its base array alive.
    return [np.ascontiguousarray(x) if type(x) is np.ndarray and x.ndim else x for x in whole]


# Most columns are plain arrays. Their type is checked first, because a plan may have hundreds of them, and isinstance
# of an abstract class takes as long as the work itself.


def _cut(column: Column, start: int, stop: int) -> Column:
    if type(column) is np.ndarray:
        return column[start:stop]
    if isinstance(column, RaggedTensor):
        return ragged_columns.cut(column, start, stop)
    return None if column is None else column[start:stop]


def _copied(column: Column) -> Column:
    if isinstance(column, RaggedTensor):
        return ragged_columns.copied(column)
    return None if column is None else column.copy()


def _item(column: Column, index: int) -> Any:
    if isinstance(column, RaggedTensor):
        return ragged_columns.element(column, index)
    if column is None or isinstance(column, list):
        return None if column is None else column[index]
    # The ellipsis keeps a scalar an array, so that every part of an element has a shape and a dtype.
    return column[index, ...]


def length_of(column: Column) -> int:
    """Return the number of elements; 0 if it is unknown because the part is None."""
    if isinstance(column, RaggedTensor):
        return column.row_count
    return 0 if column is None else len(column)


def items(column: Column) -> list[Any]:
    """Return the parts of a column, one for each element."""
    if isinstance(column, list):
        return column
    if isinstance(column, RaggedTensor):
        return ragged_columns.elements(column)
    return [] if column is None else [_item(column, index) for index in range(len(column))]


def _gathered(column: Column, rows: Positions) -> Column:
    if isinstance(column, np.ndarray):
        # take() would copy all of an array that is not contiguous.
        return column.take(rows, axis=0) if column.flags.c_contiguous else column[rows]
    if isinstance(column, list):
        return [column[row] for row in rows]
    if isinstance(column, RaggedTensor):
        return ragged_columns.gathered(column, rows)
    return None if column is None else column.take(rows, axis=0)


def _replaced(column: Column, rows: Positions, by: Column) -> Column:
    column, by = cut_up(column), cut_up(by)
    if column is None or by is None:
        return None
    if not _fits(column, by):
        column = items(column)
    if isinstance(column, list):
        for row, item in zip(rows.tolist(), items(by), strict=True):
            column[row] = item
    else:
        column[rows] = by
    return column


def _fits(column: Array | list[Any], by: Array | list[Any]) -> bool:
    if isinstance(column, list) or isinstance(by, list):
        return isinstance(column, list)
    return column.shape[1:] == by.shape[1:]


def _bytes(column: Column) -> int:
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":  # not text
        return column.nbytes
    if isinstance(column, list):
        return sum(map(_item_bytes, column))
    if isinstance(column, RaggedTensor):
        return ragged_columns.nbytes(column)
    if isinstance(column, Texts):
        return column.nbytes
    if column is None or column.dtype != dtypes.string or not column.size:
        return 0 if column is None else column.nbytes
    some = column.ravel()[:: -(-column.size // _SAMPLES)].tolist()
    return column.nbytes + column.size * sum(map(_text_bytes, some)) // len(some)


def _item_bytes(item: Any) -> int:
    if type(item) is np.ndarray:
        return item.nbytes
    if isinstance(item, RaggedTensor):
        return ragged_columns.nbytes(item)
    if isinstance(item, Composite):  # a sparse tensor
        return sum(map(_item_bytes, item._components()))  # pyright: ignore[reportPrivateUsage]
    return getattr(item, "nbytes", 8)


def _text_bytes(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else 0


def _joined(parts: tuple[Column, ...]) -> Column:
    uncut = [part for part in parts if isinstance(part, Texts)]
    if len(uncut) == len(parts) and len({part.shape[1:] for part in uncut}) == 1:
        return joined_texts(uncut)
    ragged = [part for part in parts if isinstance(part, RaggedTensor)]
    if len(ragged) == len(parts) and (found := ragged_columns.joined(ragged)) is not None:
        return found
    parts = tuple(map(cut_up, parts)) if uncut or ragged else parts
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    if parts[0] is None:
        return None
    return list(chain.from_iterable(map(items, parts)))


def read_only(block: Block) -> Block:
    """Return a read-only view of the Block."""
    return Block(tuple(map(frozen, block.columns)), block.length)


def frozen(column: Column) -> Column:
    """Return a read-only view of a column."""
    if isinstance(column, RaggedTensor):
        return ragged_columns.frozen(column)
    if isinstance(column, list):
        return [_frozen_array(item) if type(item) is np.ndarray else item for item in column]
    return column if column is None or isinstance(column, Texts) else _frozen_array(column)


def _frozen_array(array: Array) -> Array:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def blank(shape: Sequence[int], dtype: dtypes.DType) -> Array:
    """Return zeros, or empty text."""
    if dtype != dtypes.string:
        return np.zeros(shape, dtype)
    text = np.empty(shape, object)
    text.fill(b"")
    return text


def without_rows(spec: TensorSpec, beside: Sequence[int] | None = None) -> Array:
    """Return an array without rows.

    Args:
        spec: The spec of a batch. Unknown lengths become 0.
        beside: The shape of another part of the same batch, which supplies the unknown lengths.
    """
    if beside:
        lengths = spec.shape.merge_with([None, *beside[1:]]).as_list()
    else:
        lengths = spec.shape.as_list() if spec.shape.rank else []
    rows = (0, *(length or 0 for length in lengths[1:])) if lengths else ()
    return blank(rows, spec.dtype)
