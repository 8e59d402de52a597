"""JSON Lines files: each line is a JSON value, usually an object."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, ClassVar, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column, concatenated, stacked
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.dtypes import name_of
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.reader import Chunk, RowReader
from evenfeed.formats.tables import arrow_text
from evenfeed.formats.text_lines import FileOfLines, LineReader

_LINES: Final = 1 << 15  # lines converted to columns at a time
_READ: Final = 1 << 20  # pyarrow parses parts of a long text in parallel
_PIECE_BYTES: Final = 1 << 14  # into such pieces lines are cut if pyarrow cannot read them together
_INFERRED_LINES: Final = 100  # lines from which the spec is inferred
_MISSING: Final = object()

# The JSON types allowed for each dtype kind: an int is a valid float, but not the reverse.
_TYPES: Final = {
    "b": {bool},
    "i": {int},
    "u": {int},
    "f": {int, float},
    "V": {int, float},
    "O": {str},
}


@final
@dataclass(frozen=True)
class JsonFile(FileOfLines):
    """A JSON Lines file, and the spec of each line: a TensorSpec, or nested dicts of them."""

    read_by: ClassVar[str] = "from_json_lines"

    spec: Any = None

    @property
    def _kind(self) -> str:
        return f"{super()._kind} {self.spec}"

    def open(self) -> "JsonReader":
        """Open the file for one iterator: the reader has a position."""
        return JsonReader(self)


@final
class JsonReader(RowReader):
    """Reads lines as columns. Each line is a row; empty lines are skipped, and bad lines raise."""

    def __init__(self, file: JsonFile) -> None:
        super().__init__(file.path)
        self._spec = file.spec
        self._lines = LineReader(
            file.path, file.compression, within=file.within, longest_read=_READ, uncut=True
        )
        self._where = f" after byte {file.within[0]}" if file.within and file.within[0] else ""
        self._line = self._next_line = 0  # the first line of the chunk, and the one after it
        self._mark: Any = None
        self._numbers: Sequence[int] = ()  # the line of each row, from the first on
        self._leaves: list[TensorSpec] = flatten(file.spec, DATA)
        self._getters = _getters(file.spec)

    def mark(self) -> Any:
        """Return the start of the chunk: the mark of the line reader, the row and the line."""
        return [self._mark, self._first, self._line]

    def seek(self, mark: Any) -> None:
        """Go to the start of a chunk."""
        if mark is not None:
            self._lines.seek(mark[0])
            self._start_at(mark[1])
            self._line = self._next_line = mark[2]

    def _rewind(self) -> None:
        self._line = self._next_line = 0

    def _next(self) -> Chunk | None:
        block = self._lines.read(self._next_line, _LINES)
        if block is None:
            return None
        self._mark = self._lines.mark()
        lines = cast("Texts", block.columns[0])
        self._line, self._next_line = self._next_line, self._next_line + len(lines)
        parts = self._parts(lines)
        self._numbers = _numbers_of(parts)
        return _whole(parts)

    def _parts(self, lines: Texts) -> "list[_Part]":
        """Return the rows of lines. Where pyarrow cannot read all, it reads short pieces, and Python the others."""
        whole = self._converted(lines, 0)
        if whole is not None:
            return [whole]
        count = max(1, _byte_count(lines) // _PIECE_BYTES)
        size = -(-len(lines) // count)
        parts: list[_Part] = []
        for start in range(0, len(lines), size):
            piece = lines[start : start + size]
            found = self._converted(piece, start) if count > 1 else None
            parts.append(found or self._parsed(piece.tolist(), start))
        return parts

    def _converted(self, lines: Texts, first: int) -> "_Part | None":
        """Return what pyarrow reads in lines; None if it may read something else than Python."""
        text = lines.data[lines.starts[0] : lines.stops[-1]].tobytes()
        columns = self._columns(text)
        return None if columns is None else _Part(columns, {}, range(first, first + len(lines)))

    def _columns(self, text: bytes) -> list[Column] | None:
        if not arrow_text.is_worth_it(len(text)):
            return None
        return arrow_text.json_columns(text, self._spec)

    def _parsed(self, lines: list[bytes], first: int) -> "_Part":
        full = [(number, line) for number, line in enumerate(lines) if line and not line.isspace()]
        numbers = [first + number for number, _ in full]
        if len(full) < len(lines):
            lines = [line for _, line in full]
            converted = self._columns(b"\n".join(lines))
            if converted is not None:
                return _Part(converted, {}, numbers)
        wrong: dict[int, str] = {}
        values = _values(lines, wrong)
        columns: list[Column] = []
        for spec, (name, getter) in zip(self._leaves, self._getters, strict=True):
            columns.append(_column([getter(value) for value in values], spec, name, wrong))
        return _Part(columns, dict(sorted(wrong.items())), numbers)

    def _error(self, row: int, what: str) -> InvalidArgumentError:
        line = self._line + self._numbers[row]
        return InvalidArgumentError(
            f"{self.path}, line {line + 1}{self._where}: {what}.",
            fix="correct the line, or skip bad rows with dataset.ignore_errors().",
        ).in_file(self.path, self._byte(row))

    def _byte(self, row: int) -> int | None:
        return self._lines.byte_of(self._line + self._numbers[row])

    def close(self) -> None:
        self._lines.close()


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of some lines of a chunk: their columns, which are wrong and why, and the number of the line of each."""

    columns: list[Column]
    wrong: dict[int, str]
    numbers: Sequence[int]

    @property
    def block(self) -> Block:
        return Block(tuple(self.columns), len(self.numbers))


def _numbers_of(parts: "list[_Part]") -> Sequence[int]:
    return parts[0].numbers if len(parts) == 1 else [*chain(*(part.numbers for part in parts))]


def _whole(parts: "list[_Part]") -> Chunk:
    """Return the rows of all parts."""
    if len(parts) > 1:
        parts = [part for part in parts if part.numbers] or parts[:1]
    wrong: dict[int, str] = {}
    before = 0
    for part in parts:
        wrong |= {before + row: what for row, what in part.wrong.items()}
        before += len(part.numbers)
    return Chunk(concatenated([part.block for part in parts]), wrong)


def _byte_count(lines: Texts) -> int:
    return int(lines.stops[-1] - lines.starts[0])


def _values(lines: list[bytes], wrong: dict[int, str]) -> list[Any]:
    values: list[Any] = []
    for row, line in enumerate(lines):
        try:
            values.append(json.loads(line.decode()))
        except UnicodeDecodeError as error:
            wrong[row] = f"byte {error.start} is not valid UTF-8"
            values.append(_MISSING)
        except (ValueError, RecursionError) as error:
            wrong[row] = f"it is not valid JSON ({error})"
            values.append(_MISSING)
    return values


def _getters(spec: Any, name: str = "") -> list[tuple[str, Callable[[Any], Any]]]:
    """Return, for each leaf of a spec, its name and a function that extracts it from a JSON value."""
    if isinstance(spec, TensorSpec):
        return [(name, lambda value: value)]
    parts = cast("dict[str, Any]", spec)
    found: list[tuple[str, Callable[[Any], Any]]] = []
    for key in sorted(parts):
        for inner, getter in _getters(parts[key], f"{name}.{key}" if name else key):
            found.append((inner, _getter_below(key, getter)))
    return found


def _getter_below(key: str, getter: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def found(value: Any) -> Any:
        part = cast("dict[str, Any]", value).get(key, _MISSING) if type(value) is dict else _MISSING
        return getter(part)

    return found


def _column(values: list[Any], spec: TensorSpec, name: str, wrong: dict[int, str]) -> Column:
    """Return values as a column: at once if all have the same shape, otherwise one by one."""
    column = _at_once(values, spec)
    if column is not None:
        return column
    rows: list[Any] = []
    empty = np.zeros([size or 0 for size in spec.shape], spec.dtype)
    for row, value in enumerate(values):
        one = _at_once([value], spec)
        if one is None:
            wrong.setdefault(row, _mismatch(value, spec, name))
        rows.append(empty if one is None else one[0, ...])
    return stacked(rows) if rows else np.zeros([0, *empty.shape], spec.dtype)


def _at_once(values: list[Any], spec: TensorSpec) -> Array | None:
    """Return values of one shape; None if their shapes differ, or one does not match the spec."""
    level: Sequence[Any] = values
    shape = [len(values)]
    for size in spec.shape:
        if set(map(type, level)) != {list} or len(lengths := set(map(len, level))) != 1:
            return None
        shape.append(lengths.pop())
        if size not in (None, shape[-1]):
            return None
        level = list(chain.from_iterable(level))
    if not set(map(type, level)) <= _TYPES[spec.dtype.kind]:
        return None
    try:
        return _array(level, spec).reshape(shape)
    except (TypeError, ValueError, OverflowError):
        return None


def _array(level: Sequence[Any], spec: TensorSpec) -> Array:
    if spec.dtype == dtypes.string:
        column = np.empty(len(level), dtypes.string)
        column[:] = [text.encode() for text in level]
        return column
    with np.errstate(over="ignore"):  # numbers that are too large become infinite
        return np.array(level, spec.dtype)


def _mismatch(value: Any, spec: TensorSpec, name: str) -> str:
    subject = repr(name) if name else "the value"
    if value is _MISSING:
        return f"{subject} is missing"
    shape = "" if spec.shape.rank == 0 else f" of shape {spec.shape}"
    dtype = name_of(spec.dtype)
    return f"{subject} must be {dtype}{shape}, but is {shortened(json.dumps(value))}"


def checked_spec(spec: Any) -> Any:
    """Return an output_signature after checking that JSON lines can have it."""
    if isinstance(spec, TensorSpec) and spec.shape.rank is not None and spec.dtype.kind in _TYPES:
        return spec
    if type(spec) is dict and spec and all(type(key) is str for key in cast("Any", spec)):
        return {key: checked_spec(part) for key, part in cast("dict[str, Any]", spec).items()}
    raise TypeError(
        described(
            f"output_signature must be a dict of TensorSpecs, but contains {shortened(cast('object', spec))}.",
            fix="pass output_signature={'name': tf.TensorSpec([], tf.float32), ...}.",
        )
    )


def guessed_spec(path: str, compression: str) -> Any:
    """Infer a spec from the first lines of a file: 64-bit numbers, strings, bools, and lists and dicts of them."""
    return _inferred(_first_values(path, compression), path, "")


def guessed_fields(path: str, compression: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Infer the specs of the fields one by one. Returns them, and why the others have none."""
    values = _first_values(path, compression)
    if set(map(type, values)) != {dict}:
        return {}, {}
    specs: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for key in dict.fromkeys(chain.from_iterable(values)):
        found = [value.get(key, _MISSING) for value in values]
        try:
            specs[key] = _inferred(found, path, key)
        except InvalidArgumentError:
            refused[key] = _json_names(set(map(type, found)))
    return specs, refused


def _first_values(path: str, compression: str) -> list[Any]:
    reader = LineReader(path, compression)
    try:
        wrong: dict[int, str] = {}
        lines = list(islice(_lines(reader), _INFERRED_LINES))
        values = _values(lines, wrong)
    finally:
        reader.close()
    if wrong:
        row = min(wrong)
        raise InvalidArgumentError(
            f"{path} has a line that cannot be read: {lines[row]!r}: {wrong[row]}.",
            fix=_PASS_SIGNATURE,
        )
    if not values:
        raise InvalidArgumentError(
            f"{path} has no lines to infer a spec from.", fix=_PASS_SIGNATURE
        )
    return list(values)


_PASS_SIGNATURE: Final = "pass output_signature."


def _lines(reader: LineReader) -> Iterator[bytes]:
    row = 0
    while (block := reader.read(row, _INFERRED_LINES)) is not None:
        row += block.length
        yield from (line for line in cast("Array", block.columns[0]).tolist() if line.strip())


def _inferred(values: Sequence[Any], path: str, name: str) -> Any:
    kinds = set(map(type, values))
    if kinds == {dict}:
        keys = list(dict.fromkeys(chain.from_iterable(values)))
        found = {key: [value.get(key, _MISSING) for value in values] for key in keys}
        return {key: _inferred(found[key], path, f"{name}.{key}" if name else key) for key in keys}
    if kinds == {list} and any(values):
        inner = _inferred(list(chain.from_iterable(values)), path, name)
        if isinstance(inner, TensorSpec):
            return TensorSpec([None, *inner.shape], inner.dtype)
    dtype = _dtype(kinds)
    if dtype is None:
        raise InvalidArgumentError(
            f"Cannot infer the dtype of {name!r} in {path}: its first lines have {_json_names(kinds)}.",
            fix=_PASS_SIGNATURE,
        )
    return TensorSpec([], dtype)


def _dtype(kinds: set[type]) -> Any:
    for kind, dtype in (
        ("b", dtypes.bool),
        ("i", dtypes.int64),
        ("f", dtypes.float64),
        ("O", dtypes.string),
    ):
        if kinds <= _TYPES[kind]:
            return dtype
    return None


def _json_names(kinds: set[type]) -> str:
    names = {object: "nothing", type(None): "null", dict: "objects", list: "lists", str: "text"}
    return ", ".join(sorted(names.get(kind, f"{kind.__name__}s") for kind in kinds))
