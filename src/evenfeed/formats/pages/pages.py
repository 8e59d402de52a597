"""The page encoding: a run of rows as bytes, column by column.

A column whose rows have the same shape is its raw values. Strings are their lengths, then their concatenated bytes.
Rows of different shapes are their ranks, then their dimensions, then their concatenated values. Ragged and sparse
tensors are several such columns. Numbers are little-endian, and each array of them starts at a multiple of 64 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from math import lcm, prod
from typing import Any, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column, Positions, cut_up, items, stacked
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.text.text_columns import texts
from evenfeed.formats.pages.composite_parts import CompositeColumn

ALIGNMENT: Final = 64


@final
@dataclass(frozen=True, slots=True)
class Part:
    """The layout of a column in a page.

    Attributes:
        dtype: The dtype of its values.
        shape: The shape of each row; None if shapes differ.
    """

    dtype: DType
    shape: tuple[int, ...] | None

    @property
    def row_bytes(self) -> int | None:
        """Bytes per row; None if it varies."""
        if self.shape is None or self.dtype == dtypes.string:
            return None
        return prod(self.shape) * self.dtype.itemsize


# None for a column of None.
Layout: TypeAlias = tuple[Part | CompositeColumn | None, ...]


def is_even(layout: Layout) -> bool:
    """Return True if all rows have the same size, so that the offset of a row can be computed."""
    return all(part is None or _row_bytes(part) is not None for part in layout)


def _row_bytes(part: Part | CompositeColumn) -> int | None:
    return part.row_bytes if isinstance(part, Part) else None


def spacing(layout: Layout, size: int) -> int:
    """Return the alignment of pages of `size` bytes.

    If it wastes little space, the alignment is also a multiple of every row size: a column is then one strided array
    across the whole file.
    """
    lengths = [_row_bytes(part) or 1 for part in layout if part is not None]
    common = lcm(ALIGNMENT, *lengths) if is_even(layout) else ALIGNMENT
    return common if -size % common <= size // 16 else ALIGNMENT


def layout_to_json(layout: Layout) -> list[Any]:
    """Return a layout as JSON data."""
    return [None if part is None else _part_to_json(part) for part in layout]


def _part_to_json(part: Part | CompositeColumn) -> Any:
    if isinstance(part, CompositeColumn):
        return {"composite": part.to_json()}
    return {"dtype": dtypes.name_of(part.dtype), "shape": part.shape}


def layout_from_json(data: Any) -> Layout:
    """Return the layout that `layout_to_json` encoded."""
    return tuple(None if part is None else _part_from_json(part) for part in data)


def _part_from_json(data: Any) -> Part | CompositeColumn:
    if "composite" in data:
        return CompositeColumn.from_json(data["composite"])
    shape = None if data["shape"] is None else tuple(map(int, data["shape"]))
    return Part(dtypes.as_dtype(data["dtype"]), shape)


def layout_of(block: Block, kinds: Sequence[DType | CompositeColumn | None]) -> Layout:
    """Return the layout of a Block. `kinds` says what its columns hold, since an empty list does not."""
    return tuple(map(_part_of, block.columns, kinds))


def _part_of(column: Column, kind: DType | CompositeColumn | None) -> Part | CompositeColumn | None:
    if column is None or kind is None:
        return None
    if isinstance(kind, CompositeColumn):
        return kind
    return Part(kind, None if isinstance(column, list | RaggedTensor) else column.shape[1:])


def page_bytes(block: Block, layout: Layout) -> bytes:
    """Encode a Block."""
    out = bytearray()
    for column, part in zip(map(cut_up, block.columns), layout, strict=True):
        if isinstance(part, CompositeColumn):
            arrays = part.arrays_of(cast("list[Any]", column))
            for one, kind in zip(arrays, part.kinds, strict=True):
                _write(out, one, kind)
        elif column is not None and part is not None:
            _write(out, column, part.dtype)
    return bytes(out)


def _write(out: bytearray, column: Array | list[Any], dtype: DType) -> None:
    if isinstance(column, list):
        _append(out, np.array([item.ndim for item in column], "<i8"))
        _append(out, np.array(list(chain.from_iterable(item.shape for item in column)), "<i8"))
        values = np.concatenate([_flat(item, dtype) for item in column])
    else:
        values = _flat(column, dtype)
    if dtype == dtypes.string:
        texts = values.tolist()
        _append(out, np.array(list(map(len, texts)), "<i8"))
        values = np.frombuffer(b"".join(texts), np.uint8)
    _append(out, values)


def _flat(array: Array, dtype: DType) -> Array:
    return np.ascontiguousarray(array, dtype).reshape(-1)


def _append(out: bytearray, array: Array) -> None:
    out.extend(bytes(-len(out) % ALIGNMENT))
    out.extend(array.tobytes())


def block_of(raw: Array, layout: Layout, length: int, rows: Positions | slice) -> Block:
    """Decode some rows of a page of `length` rows; raise ValueError if its bytes are inconsistent."""
    bytes_left = _Bytes(raw)
    columns = tuple(
        None if part is None else _column(bytes_left, part, length, rows) for part in layout
    )
    count = len(range(*rows.indices(length))) if isinstance(rows, slice) else len(rows)
    return Block(columns, count)


@final
class _Bytes:
    """Reads the arrays of a page one after another."""

    def __init__(self, raw: Array) -> None:
        self._raw = raw
        self._at = 0

    def take(self, dtype: DType, count: int) -> Array:
        start = -(-self._at // ALIGNMENT) * ALIGNMENT
        self._at = start + count * dtype.itemsize
        if count < 0 or self._at > len(self._raw):
            raise ValueError("a page is shorter than its rows")
        return self._raw[start : self._at].view(dtype)


def _column(
    page: _Bytes, part: Part | CompositeColumn, length: int, rows: Positions | slice
) -> Column:
    if isinstance(part, CompositeColumn):
        columns = [items(_uneven(page, kind, length, rows)) for kind in part.kinds]
        return [part.value_of(arrays) for arrays in zip(*columns, strict=True)]
    if part.shape is None:
        return _uneven(page, part.dtype, length, rows)
    count = prod(part.shape)
    values = _values(page, part.dtype, length * count)
    if isinstance(values, _Texts):
        numbers = np.arange(length * count).reshape(length, *part.shape)[rows]
        return values.at(numbers)
    return values.reshape(length, *part.shape)[rows]


def _uneven(page: _Bytes, dtype: DType, length: int, rows: Positions | slice) -> Column:
    ranks = page.take(dtypes.int64, length)
    sizes = page.take(dtypes.int64, int(ranks.sum()))
    cuts: list[Array] = np.split(sizes, np.cumsum(ranks)[:-1])
    shapes: list[tuple[int, ...]] = [tuple(cut.tolist()) for cut in cuts]
    ends = list(accumulate(prod(shape) for shape in shapes))
    values = _values(page, dtype, ends[-1])
    wanted: list[int] = np.arange(length)[rows].tolist()
    return stacked([_item(values, ends[row], shapes[row]) for row in wanted])


def _item(values: "Array | _Texts", end: int, shape: tuple[int, ...]) -> Array:
    start = end - prod(shape)
    if isinstance(values, _Texts):
        return values.at(np.arange(start, end).reshape(shape))
    return values[start:end].reshape(shape)


@final
class _Texts:
    """The strings of a page, which become Python objects only when requested."""

    def __init__(self, lengths: Array, page: _Bytes) -> None:
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - lengths
        self._bytes = page.take(dtypes.uint8, int(self._ends[-1]) if len(lengths) else 0)

    def at(self, numbers: Positions) -> Array:
        """Return the strings with these numbers, in their shape."""
        return texts(self._bytes, self._starts[numbers], self._ends[numbers])


def _values(page: _Bytes, dtype: DType, count: int) -> Array | _Texts:
    if dtype == dtypes.string:
        return _Texts(page.take(dtypes.int64, count), page)
    return page.take(dtype, count)
