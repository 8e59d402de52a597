"""Runs a traced function on Blocks of any length with few compilations."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Final, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.runtime.vectorise import Call, Program, Row, Traced, traced

RowShapes: TypeAlias = tuple[Row | None, ...]

# A compilation takes 40 to 500 ms: a function must not see more of them in its life.
_MOST_COMPILATIONS: Final = 3
# A call costs about what it costs to compute on so many bytes.
_CALL_BYTES: Final = 1 << 20
_CHUNK_BYTES: Final = 1 << 22


@final
class Compiled:
    """The programs of one function, for each shape of its elements."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._programs: dict[RowShapes, Sized | None] = {}
        self._seen = Counter[RowShapes]()
        self._lock = Lock()
        self.compilations = 0

    def add(self, rows: RowShapes, found: Traced) -> "Sized":
        """Keep what a trace for elements of these shapes found."""
        made = Sized(Program(self._call, rows, found), rows, found, self)
        self._programs[rows] = made
        return made

    def program(self, rows: RowShapes) -> "Sized | None":
        """Return the program for elements of these shapes; None where they should run one by one.

        The first shape is compiled at once. Another one must come again before: elements that have
        all their own shape are not worth a compilation each.
        """
        if rows in self._programs:
            return self._programs[rows]
        self._seen[rows] += 1
        if (self._programs and self._seen[rows] < 3) or self.compilations >= _MOST_COMPILATIONS:
            return None
        self._programs[rows] = None  # what does not trace for this shape is not tried again
        return self.add(rows, traced(self._call, rows))

    def takes(self) -> bool:
        """Count one more compilation, if that is not too many."""
        with self._lock:
            free = self.compilations < _MOST_COMPILATIONS
            self.compilations += free
        return free


@final
class Sized:
    """A program and the few lengths that it is compiled for."""

    def __init__(self, program: Program, rows: RowShapes, found: Traced, owner: Compiled) -> None:
        self.found = found
        self._program = program
        self._numeric = [row for row in rows if row is not None]
        self._owner = owner
        row = max(1, sum(map(_bytes, self._numeric + _computed(found))))
        self._call = max(1, _CALL_BYTES // row)  # how many rows cost as much as a call
        self._longest = max(1, _CHUNK_BYTES // row)
        self._ready: set[int] = set()
        self._begun: set[int] = set()
        self._met = Counter[int]()

    @property
    def is_ready(self) -> bool:
        """Whether the program can run, compiled already or to be compiled."""
        return bool(self._ready) or self._owner.compilations < _MOST_COMPILATIONS

    def run(self, columns: Sequence[Array], length: int) -> tuple[list[Array], Array | None]:
        """Return the computed columns for `length` rows, and which rows read out of range."""
        if not _computed(self.found):
            return [], None
        size = self._size(length)
        starts = range(0, length, size)
        # All are begun before the first is waited for.
        begun = [
            self._program.start([_padded(column[at : at + size], size) for column in columns])
            for at in starts
        ]
        done = [one.wait() for one in begun]
        outputs = [_joined(parts, length) for parts in zip(*(one[0] for one in done), strict=True)]
        flags = [one[1] for one in done if one[1] is not None]
        return outputs, _joined(flags, length) if flags else None

    def _size(self, rows: int) -> int:
        """Return the length to run `rows` at, one that is compiled; a better one may be made behind."""
        if rows in self._ready:
            return rows
        if not self._ready:
            return self._compiled_now(min(self._longest, max(rows, self._call // 16, 1)))
        best = min(self._ready, key=lambda size: self._cost(rows, size))
        if 2 * self._cost(rows, best) > 3 * (self._call + rows):
            self._improve(rows)
        return best

    def _cost(self, rows: int, size: int) -> int:
        return -(-rows // size) * (self._call + size)

    def _improve(self, rows: int) -> None:
        """Compile for a length that comes again, or for a round one above where all differ."""
        self._met[rows] += 1
        if self._met[rows] > 1:
            self._compile_behind(min(self._longest, rows))
        elif rows > 8 * max(self._ready):
            self._compile_behind(min(self._longest, 1 << (rows - 1).bit_length()))

    def _compiled_now(self, size: int) -> int:
        self._owner.takes()
        self._begun.add(size)
        self._ready.add(size)  # the run that follows compiles it
        return size

    def _compile_behind(self, size: int) -> None:
        if size in self._begun or self._begun - self._ready or not self._owner.takes():
            return
        self._begun.add(size)
        # Not a daemon: the interpreter must not end inside the compiler.
        Thread(target=self._compile, args=(size,), name="evenfeed-compile").start()

    def _compile(self, size: int) -> None:
        zeros = [np.zeros((size, *row.shape), row.dtype) for row in self._numeric]
        # What cannot be compiled runs at the shorter length that could.
        with suppress(Exception):
            self._program.start(zeros).wait()
            self._ready.add(size)


def _computed(found: Traced) -> list[Row]:
    return [part for part in found.parts if isinstance(part, Row)]


def _bytes(row: Row) -> int:
    return int(np.prod(row.shape, dtype=np.int64)) * row.dtype.itemsize


def _padded(column: Array, size: int) -> Array:
    if len(column) == size:
        return column
    padded = np.empty((size, *column.shape[1:]), column.dtype)
    padded[: len(column)] = column
    padded[len(column) :] = column[:1]  # a value that the function can take
    return padded


def _joined(parts: Sequence[Array], length: int) -> Array:
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return whole if len(whole) == length else whole[:length]
