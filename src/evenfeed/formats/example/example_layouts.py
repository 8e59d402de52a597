"""The byte layouts of serialized examples: programs write records that have one length and differ only in their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.formats.example.features import Fixed

# The tag byte of a length-delimited field, by field number.
_FIRST: Final = 0x0A
_SECOND: Final = 0x12
# The tag byte of the list of values in a Feature message, by dtype.
LIST_TAGS: Final[dict[DType, int]] = {
    dtypes.string: 0x0A,
    dtypes.float32: 0x12,
    dtypes.int64: 0x1A,
}
_DTYPES: Final = {tag: dtype for dtype, tag in LIST_TAGS.items()}

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


@final
class KnownLayouts:
    """The layout of the last record of each length. To find one takes as long as parsing a hundred records by it.

    Args:
        most: How many bytes the records of the layouts may have together. A layout takes up to eighty times as many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._layouts: dict[int, Layout] = {}

    def of(self, rows: Array) -> Layout:
        """Return the layout of the first of some records of one length.

        Raises:
            NoLayoutError: It has an unusual encoding.
        """
        length = rows.shape[1]
        known = self._layouts.get(length)
        if known is not None and known.matches(rows[:1]).all():
            return known
        if sum(self._layouts) + length > self._most:
            self._layouts.clear()
        made = self._layouts[length] = Layout(rows[0].tobytes())
        return made
