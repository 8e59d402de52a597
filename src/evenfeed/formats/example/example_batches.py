"""Parses the fixed-length features of many serialized examples at once.

There are three ways. Compiled loops (`example_kernels`) scan all records if there are enough to pay for Numba.
Otherwise records with the same byte layout are parsed together: programs usually write examples with the same
features, so most have the same length and differ only in their values. The layout of one example gives the places of
the values in all of them, so slices of a matrix of bytes, with one row per example, are the values. All other records
are parsed one by one with protobuf.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.dtypes import DType
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.example.example_protos import Where, fixed_value, parsed
from evenfeed.formats.example.features import Fixed, Varying
from evenfeed.formats.reader import grouped

if TYPE_CHECKING:
    from evenfeed.formats.example import example_kernels
else:
    example_kernels = LazyModule("evenfeed.formats.example.example_kernels")

# The tag byte of a length-delimited field, by field number.
_FIRST: Final = 0x0A
_SECOND: Final = 0x12
# The tag byte of the list of values in a Feature message, by dtype.
_LIST_TAGS: Final[dict[DType, int]] = {
    dtypes.string: 0x0A,
    dtypes.float32: 0x12,
    dtypes.int64: 0x1A,
}
_DTYPES: Final = {tag: dtype for dtype, tag in _LIST_TAGS.items()}

_VALUE: Final = 0x00  # any byte may be here
_DIGIT: Final = 0x80  # a byte of a varint: only its continuation bit is fixed
_LAST_DIGIT: Final = 0xFE  # the tenth byte holds one bit of the number


class NoLayoutError(Exception):
    """The example has an unusual encoding and must be parsed on its own."""


@final
@dataclass(frozen=True)
class FieldPlace:
    """The byte range of each value of one feature."""

    dtype: DType
    starts: tuple[int, ...]
    stops: tuple[int, ...]

    def cut(self, rows: Array, shape: tuple[int, ...]) -> Array:
        """Return the values of all rows."""
        out = (len(rows), *shape)
        if not self.starts:
            return np.empty(out, self.dtype)
        piece = rows[:, self.starts[0] : self.stops[-1]]
        if self.dtype == dtypes.float32:
            return np.ascontiguousarray(piece).view("<f4").reshape(out)
        if self.dtype == dtypes.int64:
            return self._whole_numbers(piece).reshape(out)
        return self._texts(rows).reshape(out)

    def _whole_numbers(self, piece: Array) -> Array:
        starts = np.array(self.starts) - self.starts[0]
        widths = np.array(self.stops) - np.array(self.starts)
        if widths.max() == 1:
            return piece.astype(np.int64)
        within = np.arange(self.stops[-1] - self.starts[0]) - np.repeat(starts, widths)
        shifts = np.multiply(within, 7, dtype=np.uint64, casting="unsafe")
        digits = np.left_shift(piece & 0x7F, shifts, dtype=np.uint64)
        return np.add.reduceat(digits, starts, axis=1).view(np.int64)

    def _texts(self, rows: Array) -> Array:
        texts = np.empty((len(rows), len(self.starts)), dtypes.string)
        for place, (start, stop) in enumerate(zip(self.starts, self.stops, strict=True)):
            if stop > start:
                piece = np.ascontiguousarray(rows[:, start:stop])
                texts[:, place] = piece.view(f"V{stop - start}").ravel().tolist()
            else:
                texts[:, place] = b""
        return texts


@final
class Layout:
    """The byte layout of one example.

    Attributes:
        places: Where the values of each feature are; a feature without a kind counts as missing.
    """

    def __init__(self, example: bytes) -> None:
        self.places: dict[str, FieldPlace] = {}
        self._bytes = example
        self._mask = np.full(len(example), 0xFF, np.uint8)
        end = len(example)
        self._entries(*self._field(0, end, _FIRST, whole=True)) if end else None
        self._around = np.flatnonzero(self._mask)  # the bytes that are not pure values

    def matches(self, rows: Array) -> Array:
        """Return a mask of the rows that have this layout."""
        expected = np.frombuffer(self._bytes, np.uint8)[self._around]
        differences = (rows[:, self._around] ^ expected) & self._mask[self._around]
        return np.logical_not(differences.any(axis=1))

    def columns(self, rows: Array, wanted: Sequence[Fixed]) -> list[Array] | None:
        """Return the requested arrays of rows with this layout; None if a feature is missing or does not match."""
        columns: list[Array] = []
        for feature in wanted:
            place = self.places.get(feature.key)
            default = feature.default_array
            if place is None:
                if default is None:
                    return None
                columns.append(np.broadcast_to(default, (len(rows), *feature.shape)).copy())
            elif place.dtype == feature.dtype and len(place.starts) == feature.count:
                columns.append(place.cut(rows, feature.shape))
            else:
                return None
        return columns

    def _entries(self, at: int, end: int) -> None:
        while at < end:
            start, at = self._field(at, end, _FIRST)
            self._entry(start, at)

    def _entry(self, at: int, end: int) -> None:
        start, stop = self._field(at, end, _FIRST)
        try:
            key = self._bytes[start:stop].decode()
        except UnicodeDecodeError:
            raise NoLayoutError from None
        if key in self.places:
            raise NoLayoutError
        start, stop = self._field(stop, end, _SECOND, whole=True)
        if start < stop:
            dtype = _DTYPES.get(self._bytes[start])
            if dtype is None:
                raise NoLayoutError
            inner = self._field(start, stop, self._bytes[start], whole=True)
            self.places[key] = self._place(dtype, *inner)

    def _place(self, dtype: DType, at: int, end: int) -> FieldPlace:
        if dtype == dtypes.string:
            return self._texts(at, end)
        if at < end:
            at, end = self._field(at, end, _FIRST, whole=True)
        return self._floats(at, end) if dtype == dtypes.float32 else self._numbers(at, end)

    def _texts(self, at: int, end: int) -> FieldPlace:
        spans: list[tuple[int, int]] = []
        while at < end:
            start, at = self._field(at, end, _FIRST)
            spans.append((start, at))
            self._mask[start:at] = _VALUE
        return _place(dtypes.string, spans)

    def _floats(self, at: int, end: int) -> FieldPlace:
        if (end - at) % 4:
            raise NoLayoutError
        self._mask[at:end] = _VALUE
        return _place(dtypes.float32, [(place, place + 4) for place in range(at, end, 4)])

    def _numbers(self, at: int, end: int) -> FieldPlace:
        spans: list[tuple[int, int]] = []
        while at < end:
            stop = self._number(at, end)[1]
            self._mask[at:stop] = _DIGIT
            if stop - at == 10:
                self._mask[stop - 1] = _LAST_DIGIT
            spans.append((at, stop))
            at = stop
        return _place(dtypes.int64, spans)

    def _field(self, at: int, end: int, tag: int, *, whole: bool = False) -> tuple[int, int]:
        """Return the start and end of a field. With `whole`, nothing may follow it."""
        if at >= end or self._bytes[at] != tag:
            raise NoLayoutError
        length, start = self._number(at + 1, end)
        stop = start + length
        if stop > end or (whole and stop != end):
            raise NoLayoutError
        return start, stop

    def _number(self, at: int, end: int) -> tuple[int, int]:
        """Return a varint, and the offset after it."""
        number = 0
        for place in range(at, min(end, at + 10)):
            byte = self._bytes[place]
            number |= (byte & 0x7F) << 7 * (place - at)
            if byte < 0x80:
                if place - at == 9 and byte > 1:
                    break
                return number, place + 1
        raise NoLayoutError


def _place(dtype: DType, spans: list[tuple[int, int]]) -> FieldPlace:
    return FieldPlace(dtype, tuple(start for start, _ in spans), tuple(stop for _, stop in spans))


def scanned(records: Texts, wanted: Sequence[Fixed]) -> tuple[list[Array | Texts], Array]:
    """Return the requested columns of all records, and a mask of odd records, whose rows are not filled in."""
    counts = [feature.count for feature in wanted]
    places, _, odd = places_of(records, wanted, counts)
    columns: list[Array | Texts] = []
    for feature, mine in zip(wanted, places, strict=True):
        missing = mine == example_kernels.MISSING
        splits = np.arange(len(mine) + 1) * feature.count
        column = values_at(records.data, mine, splits, feature.dtype)
        column = column.reshape(len(mine), *feature.shape)
        if missing.any():
            default = feature.default_array
            if default is None:
                odd |= missing
            else:
                column = np.asarray(column)
                column[missing] = default
        columns.append(column)
    return columns, odd


def places_of(
    records: Texts, wanted: Sequence[Fixed | Varying], counts: Sequence[int]
) -> tuple[Array, Array, Array]:
    """Return where the values of each feature and record start, how many there are, and a mask of odd records.

    How many there are is not found if all counts are known.

    Args:
        records: The records.
        wanted: The requested features.
        counts: The number of values of each, or `example_kernels.ANY`.
    """
    keys = [feature.key.encode() for feature in wanted]
    places = np.empty((len(wanted), len(records)), np.int64)
    varies = example_kernels.ANY in counts
    sizes = np.empty((len(wanted) if varies else 0, len(records)), np.int64)
    odd = np.empty(len(records), np.bool_)
    longest = int((records.stops - records.starts).max())
    example_kernels.find(
        records.data,
        records.starts,
        records.stops,
        np.frombuffer(b"".join(keys), np.uint8),
        np.cumsum([len(key) for key in keys], dtype=np.int64),
        np.array([_LIST_TAGS[feature.dtype] for feature in wanted], np.int64),
        np.array(counts, np.int64),
        places,
        sizes,
        odd,
        np.empty(1 << (2 * len(wanted)).bit_length(), np.int64),
        np.empty(longest, np.uint8),
        np.empty((longest // 8 + 1, 3), np.uint64),
    )
    return places, sizes, odd


def values_at(data: Array, places: Positions, splits: Positions, dtype: DType) -> Array | Texts:
    """Return the values of all records as a vector; `splits` says which are of each record."""
    count = int(splits[-1])
    if dtype == dtypes.string:
        starts, stops = np.empty((2, count), np.int64)
        example_kernels.find_texts(data, places, splits, starts, stops)
        # A copy: a text must not keep the other features of its record in memory.
        held, ends = Texts(data, starts, stops).packed()
        return Texts(held, ends[:-1], ends[1:])
    out = np.empty(count, dtype)
    if dtype == dtypes.float32:
        example_kernels.copy_floats(data, places, splits, out.view(np.uint8))
    else:
        example_kernels.copy_numbers(data, places, splits, out)
    return out


# Fewer examples of one layout are parsed just as fast one by one.
_FEWEST: Final = 8
# Longer examples are mostly values, which are copied either way.
_LONGEST: Final = 1 << 14


def fixed_columns(records: Texts, wanted: Sequence[Fixed]) -> list[Array | Texts]:
    """Return the requested columns of all records, stacked.

    Raises:
        InvalidArgumentError: A record is not a valid Example, or lacks a feature. Names the first such record.
    """
    lengths = records.stops - records.starts
    if is_worth_it(len(records)) and lengths.max() <= _LONGEST:
        found, odd = scanned(records, wanted)
        rows = np.flatnonzero(odd)
        if not len(rows):
            return found
        out = list(map(np.asarray, found))
    else:
        alike = _of_one_layout(records, lengths, wanted)
        if alike is not None:
            return [*alike]
        out = [np.empty((len(records), *feature.shape), feature.dtype) for feature in wanted]
        rows = np.arange(len(records))
    parts, rest = _in_groups(records, lengths, rows, wanted)
    for mine, columns in [*parts, (rest, _one_by_one(records, rest, wanted))]:
        for target, column in zip(out, columns, strict=True):
            target[mine] = column
    return [*out]


def _of_one_layout(
    records: Texts, lengths: Positions, wanted: Sequence[Fixed]
) -> list[Array] | None:
    """Return the arrays of all records if they share one layout, else None."""
    if len(records) < _FEWEST or not 0 < lengths[0] <= _LONGEST or (lengths != lengths[0]).any():
        return None
    matrix = records.matrix()
    try:
        layout = Layout(records.text(0))
    except NoLayoutError:
        return None
    return layout.columns(matrix, wanted) if layout.matches(matrix).all() else None


_Part = tuple[Positions, list[Array]]


def _in_groups(
    records: Texts, lengths: Positions, rows: Positions, wanted: Sequence[Fixed]
) -> tuple[list[_Part], Positions]:
    """Return the arrays of the rows that share a layout, and the rows that do not."""
    groups, rest = grouped(lengths[rows], _FEWEST, _LONGEST)
    parts: list[_Part] = []
    singly = [rows[rest]]
    for group in groups:
        found, left = _of_one_length(records, rows[group], wanted)
        parts += found
        singly.append(left)
    return parts, np.sort(np.concatenate(singly))


def _of_one_length(
    records: Texts, mine: Positions, wanted: Sequence[Fixed]
) -> tuple[list[_Part], Positions]:
    """Return the arrays of records of equal length by layout, and the records left over."""
    parts: list[_Part] = []
    matrix = records.take(mine).matrix()
    while len(mine) >= _FEWEST:
        try:
            layout = Layout(records.text(int(mine[0])))
        except NoLayoutError:
            break
        alike = layout.matches(matrix)
        whole = bool(alike.all())
        columns = layout.columns(matrix if whole else matrix[alike], wanted)
        if columns is None or (alike.sum() < _FEWEST and parts):
            break
        parts.append((mine if whole else mine[alike], columns))
        mine, matrix = mine[~alike], matrix[~alike]
    return parts, mine


def _one_by_one(records: Texts, rows: Positions, wanted: Sequence[Fixed]) -> list[Array]:
    found: list[list[Array]] = [[] for _ in wanted]
    for row in map(int, rows):
        features = parsed("Example", records.text(row), row).features.feature
        for values, feature in zip(found, wanted, strict=True):
            values.append(fixed_value(features.get(feature.key), Where(row), feature))
    return [_stacked(values, feature) for values, feature in zip(found, wanted, strict=True)]


def _stacked(values: list[Array], wanted: Fixed) -> Array:
    out = np.empty((len(values), *wanted.shape), wanted.dtype)
    for row, value in enumerate(values):
        out[row] = value[()] if value.ndim == 0 else value
    return out
