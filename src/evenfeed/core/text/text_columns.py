"""Columns of text: `Texts` holds positions in a buffer of bytes, and `texts` cuts it into bytes objects.

Slicing in Python takes longer than the copy itself. Pieces of equal length are one NumPy gather. For others,
compiled code writes a pickle of a list of bytes, and the C unpickler creates the objects. That takes a third of
the time, without an extension module of our own.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from mmap import mmap
from typing import TYPE_CHECKING, Any, Final, Self, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.dtypes import DType
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.numba_loops import compiled, is_worth_it

if TYPE_CHECKING:
    from evenfeed.core.text import text_loops
else:
    text_loops = LazyModule("evenfeed.core.text.text_loops")

# Pickle protocol 4: an empty list and a mark. The end appends everything after the mark to the list.
_BEGIN: Final = b"\x80\x04]("
_END: Final = b"e."
# The opcode BINBYTES8. The length follows in eight bytes, then the bytes.
_BYTES: Final = 0x8E
_BEFORE: Final = 9
_U64: Final = np.uint64
# Below this number of pieces, cutting one by one is as fast.
_FEWEST: Final = 16
# Longer pieces are cut one by one, which saves a copy.
_LONGEST: Final = 1 << 14


def texts(data: Array, starts: Positions, stops: Positions) -> Array:
    """Cut `data` into the pieces from `starts` to `stops`. Returns bytes objects in an array of the same shape."""
    column = np.empty(starts.shape, dtypes.string)
    column.reshape(-1)[:] = _cut(data, starts.ravel(), stops.ravel())
    return column


def pieces(data: Array | bytes | mmap, places: Positions, length: int) -> Array:
    """Return `length` bytes from each place, each piece as one value."""
    return np.ndarray(len(data) - length + 1, f"V{length}", data, strides=(1,))[places]


def _cut(data: Array, starts: Positions, stops: Positions) -> list[bytes]:
    if len(starts) >= _FEWEST:
        lengths = stops - starts
        length = int(lengths[0])
        if 0 < length <= _LONGEST and (lengths == length).all():
            return pieces(data, starts, length).tolist()
        if is_worth_it(len(starts)):
            return _unpickled(data, starts, stops, int(lengths.sum()))
    view = data.data
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    return [view[start:stop].tobytes() for start, stop in spans]


def _unpickled(data: Array, starts: Positions, stops: Positions, size: int) -> list[bytes]:
    size += _BEFORE * len(starts)
    program = np.empty(len(_BEGIN) + size + len(_END), np.uint8)
    program[: len(_BEGIN)] = list(_BEGIN)
    _compiled_pack()(data, starts, stops, program[len(_BEGIN) : -len(_END)])
    program[-len(_END) :] = list(_END)
    return pickle.loads(program.data)


@cache
def _compiled_pack() -> Callable[[Array, Positions, Positions, Array], None]:
    return compiled(_pack)  # not a decorator: importing this module must not import Numba


def _pack(data: Array, starts: Positions, stops: Positions, out: Array) -> None:
    """Write each piece in pickle format. `out` needs `_BEFORE` extra bytes per piece."""
    to = 0
    for row in range(len(starts)):
        start, length = starts[row], stops[row] - starts[row]
        out[_U64(to)] = _BYTES
        for byte in range(8):
            out[_U64(to + 1 + byte)] = length >> 8 * byte & 0xFF
        to += _BEFORE
        for byte in range(length):
            out[_U64(to + byte)] = data[_U64(start + byte)]
        to += length


@final
@dataclass(frozen=True, slots=True, eq=False)
class Origins:
    """Maps a buffer of bytes back to files. The buffer consists of runs that are contiguous in a file.

    Attributes:
        paths: The files.
        starts: The offset of each run in the buffer, in order; the first is 0.
        files: The index of the file of each run.
        places: The offset of each run in the file, or in its decompressed content.
    """

    paths: tuple[str, ...]
    starts: Positions
    files: Positions
    places: Positions

    @classmethod
    def in_file(cls, path: str, starts: Positions, places: Positions) -> Self:
        """Return the origins of bytes that come from one file."""
        return cls((path,), starts, np.zeros(len(starts), np.int64), places)

    def of(self, start: int) -> tuple[str, int]:
        """Return the file and the offset in it of one byte of the buffer."""
        run = self._run(start)
        place = int(self.places[run]) + start - int(self.starts[run])
        return self.paths[int(self.files[run])], place

    def between(self, first: int, stop: int) -> "Origins":
        """Return the origins of the bytes from `first` to `stop`."""
        runs = slice(self._run(first), self._run(max(first, stop - 1)) + 1)
        starts, places = self.starts[runs] - first, self.places[runs].copy()
        places[0] -= starts[0]
        starts[0] = 0
        if len(self.paths) == 1:
            return Origins(self.paths, starts, self.files[runs], places)
        # Other files are forgotten: else the paths of all that was ever joined would come along.
        files, mine = np.unique(self.files[runs], return_inverse=True)
        paths = tuple(self.paths[int(file)] for file in files)
        return Origins(paths, starts, mine, places)

    def _run(self, start: int) -> int:
        return int(np.searchsorted(self.starts, start, "right")) - 1


@final
class Texts:
    """A column of text, stored as positions in a buffer. It moves like a read-only array of objects.

    Args:
        data: The buffer, which must not change.
        starts: The offset in the buffer where each text starts.
        stops: The offset where each text ends, in the same shape.
        origins: The files that the bytes come from, if known.
    """

    __slots__ = ("data", "origins", "starts", "stops")

    def __init__(
        self, data: Array, starts: Positions, stops: Positions, origins: Origins | None = None
    ) -> None:
        self.data = data
        self.starts = starts
        self.stops = stops
        self.origins = origins

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Self:
        """Build a column from bytes objects."""
        ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        data = np.frombuffer(b"".join(parts), np.uint8)
        return cls(data, np.append(np.int64(0), ends[:-1])[: len(parts)], ends)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.starts.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.starts.ndim

    @property
    def size(self) -> int:
        """The number of texts."""
        return self.starts.size

    @property
    def dtype(self) -> DType:
        """The dtype of text."""
        return dtypes.string

    @property
    def nbytes(self) -> int:
        """The memory size of the texts and their positions."""
        lengths = int((self.stops - self.starts).sum())
        return lengths + self.starts.nbytes + self.stops.nbytes

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        del copy  # the array is always new
        return texts(self.data, self.starts, self.stops).astype(dtype or dtypes.string, copy=False)

    def __getitem__(self, key: Any) -> Any:
        """Return several rows as a column. One row or one text is what an array of objects would return."""
        starts, stops = cast("Any", self.starts[key]), self.stops[key]
        if key is None or isinstance(key, (slice, np.ndarray)):
            return self._at(starts, stops)
        found = texts(self.data, np.asarray(starts), np.asarray(stops))
        return found if isinstance(starts, np.ndarray) else found.item()

    def take(self, rows: Positions, axis: int = 0) -> "Texts":
        """Return the texts at `rows`, in that order."""
        return self._at(self.starts.take(rows, axis), self.stops.take(rows, axis))

    def reshape(self, *shape: Any) -> "Texts":
        """Return the same texts in another shape."""
        return self._at(self.starts.reshape(*shape), self.stops.reshape(*shape))

    def ravel(self) -> "Texts":
        """Return the same texts as a vector."""
        return self.reshape(-1)

    def copy(self) -> Array:
        """Return a writable array of objects."""
        return np.asarray(self)

    def tolist(self) -> list[Any]:
        """Return the texts as nested lists of bytes."""
        return np.asarray(self).tolist()

    def text(self, row: int) -> bytes:
        """Return one text of a vector."""
        return self.data[self.starts[row] : self.stops[row]].tobytes()

    def matrix(self) -> Array:
        """Return a vector of texts as a matrix of bytes. The texts must have equal length and not be empty."""
        length = int(self.stops[0] - self.starts[0])
        steps = np.diff(self.starts)
        if len(steps) and steps[0] >= length and (steps == steps[0]).all():
            shape, strides = (len(self.starts), length), (int(steps[0]), 1)
            return np.ndarray(shape, np.uint8, self.data, int(self.starts[0]), strides)
        return pieces(self.data, self.starts, length).view(np.uint8).reshape(-1, length)

    def equal_to(self, text: bytes) -> Array:
        """Compare each text of a vector with `text`, without creating bytes objects."""
        found = (self.stops - self.starts) == len(text)
        rows = np.flatnonzero(found)
        if text and len(rows):
            found[rows] = (self.take(rows).matrix() == np.frombuffer(text, np.uint8)).all(axis=1)
        return found

    def origin(self, row: int) -> tuple[str, int] | None:
        """Return the file and the offset where a text starts. `row` counts texts in flattened order."""
        return None if self.origins is None else self.origins.of(int(self.starts.reshape(-1)[row]))

    def trimmed(self) -> "Texts":
        """Drop the bytes before the first text and after the last.

        Keeps one extra byte: otherwise an empty last text would start where data appended later starts.
        """
        first = int(self.starts.min())
        stop = min(int(self.stops.max()) + 1, len(self.data))
        if stop - first == len(self.data):
            return self
        origins = None if self.origins is None else self.origins.between(first, stop)
        return Texts(self.data[first:stop], self.starts - first, self.stops - first, origins)

    def packed(self) -> tuple[Array, Positions]:
        """Return the bytes of all texts one after another, and where each text starts and the last ends."""
        starts, stops = self.starts.reshape(-1), self.stops.reshape(-1)
        if len(starts) and (starts[1:] == stops[:-1]).all():
            return self.data, np.append(starts, stops[-1])
        lengths = stops - starts
        ends = np.append(np.int64(0), np.cumsum(lengths))
        if is_worth_it(len(starts)):
            data = np.empty(int(ends[-1]), np.uint8)
            text_loops.pack(self.data, starts, stops, data)
            return data, ends
        shifts = np.repeat(starts - ends[:-1], lengths)
        return self.data[shifts + np.arange(int(ends[-1]))], ends

    def _at(self, starts: Positions, stops: Positions) -> "Texts":
        return Texts(self.data, starts, stops, self.origins)

    def __reduce__(self) -> tuple[Any, ...]:
        return Texts, (self.data, self.starts, self.stops, self.origins)


def joined(parts: Sequence[Texts]) -> Texts:
    """Concatenate several columns whose rows have the same shape."""
    parts = [part for part in parts if part.size] or parts[:1]
    data, origins = parts[0].data, parts[0].origins
    if all(part.data is data for part in parts):
        befores = [0] * len(parts)
    else:
        parts = [part.trimmed() for part in parts]
        befores = np.cumsum([0, *(len(part.data) for part in parts)]).tolist()
        data = np.concatenate([part.data for part in parts])
        origins = _joined_origins([part.origins for part in parts], befores)
    starts = [part.starts + before for part, before in zip(parts, befores, strict=False)]
    stops = [part.stops + before for part, before in zip(parts, befores, strict=False)]
    return Texts(data, np.concatenate(starts), np.concatenate(stops), origins)


def _joined_origins(parts: Sequence[Origins | None], befores: Sequence[int]) -> Origins | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    paths = tuple(chain.from_iterable(part.paths for part in known))
    firsts = np.cumsum([0, *(len(part.paths) for part in known)]).tolist()
    return Origins(
        paths,
        np.concatenate([part.starts + n for part, n in zip(known, befores, strict=False)]),
        np.concatenate([part.files + n for part, n in zip(known, firsts, strict=False)]),
        np.concatenate([part.places for part in known]),
    )
