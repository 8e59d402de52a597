"""CSV and JSON text as columns, by pyarrow, where its answers are the ones of evenfeed's own parsers.

Each function returns None for text that pyarrow rejects, or may read differently. The caller then parses it itself, and
finds the row and the reason.
"""

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.dtypes import DType, name_of
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts

# Shorter text takes less time than importing pyarrow, or, where it is imported, than calling it.
_SHORTEST: Final = 1 << 17
_SHORTEST_ONCE_IMPORTED: Final = 1 << 14
# pyarrow parses blocks of a text in parallel.
_BLOCKS: Final = 4
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_NAN_OF: Final = re.compile(rb"(?i)nan\(")
# Python's parser refuses values that are nested deeper than about a thousand levels; pyarrow's has no limit.
_DEEPEST: Final = 500
# In JSON, pyarrow reads Inf and -NaN, and gives -0 a sign.
_INF: Final = re.compile(rb"Inf[\s,\]}]")
_MINUS_NAN: Final = re.compile(rb"-NaN[\s,\]}]")
# The bytes that may follow a number.
_FOLLOWS_NUMBER: Final = np.isin(np.arange(256), np.frombuffer(b" \t\n\r\f\v,]}", np.uint8))
# The least digits of an integer that is too large for a float64. pyarrow makes it infinite; Python refuses it.
_DIGITS: Final = 309
_TO_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")


def is_worth_it(size: int) -> bool:
    """Return True if pyarrow should parse a text of this many bytes: it is long, and pyarrow is installed."""
    is_imported = "pyarrow.json" in sys.modules and "pyarrow.csv" in sys.modules
    shortest = min(_SHORTEST, _SHORTEST_ONCE_IMPORTED) if is_imported else _SHORTEST
    return size >= shortest and _modules() is not None


@cache
def _modules() -> tuple[Any, Any, Any] | None:
    try:
        names = ("pyarrow", "pyarrow.csv", "pyarrow.json")
        return cast("tuple[Any, Any, Any]", tuple(map(importlib.import_module, names)))
    except ImportError:
        return None


def _parsed(text: bytes, read: Callable[[Any, Any, int], Any], module: int) -> Any:
    """Return the table in a text; None if pyarrow rejects it."""
    modules = _modules()
    assert modules is not None
    pyarrow = modules[0]
    try:
        return read(modules[module], pyarrow.BufferReader(text), -(-len(text) // _BLOCKS))
    except pyarrow.ArrowException:
        return None


def csv_columns(  # noqa: PLR0913 - a keyword-only argument
    text: bytes,
    delimiter: bytes,
    width: int,
    wanted: Sequence[tuple[int, DType]],
    missing: bytes,
    *,
    quoted: bool = False,
) -> list[Any] | None:
    r"""Return the wanted fields of CSV records as Arrow arrays; those of numbers may have nulls.

    Args:
        text: Records, each ending with `\n`.
        delimiter: The byte between two fields.
        width: The number of fields in each record.
        wanted: The place and dtype of each wanted field.
        missing: A value that counts as an empty field.
        quoted: Whether some fields are in quotes.
    """
    if text.startswith(_UTF8_MARK) or (missing and missing in text):
        return None
    if any(dtype.kind == "i" for _, dtype in wanted) and (b"0x" in text or b"0X" in text):
        return None  # pyarrow reads hexadecimal numbers
    if any(dtype.kind == "f" for _, dtype in wanted) and b"(" in text and _NAN_OF.search(text):
        return None  # pyarrow reads nan(1)
    names = list(map(str, range(width)))
    kinds = {names[place]: _csv_type(dtype) for place, dtype in wanted}

    def read(csv: Any, source: Any, block: int) -> Any:
        return csv.read_csv(
            source,
            csv.ReadOptions(column_names=names, block_size=block),
            csv.ParseOptions(
                delimiter=delimiter.decode("latin-1"),
                quote_char='"' if quoted else False,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=kinds,
                include_columns=list(kinds),
                null_values=[""],
                strings_can_be_null=False,
            ),
        )

    table = _parsed(text, read, 1)
    return None if table is None else [table.column(names[place]) for place, _ in wanted]


def _csv_type(dtype: DType) -> Any:
    # float32 is read as float64 and narrowed, as evenfeed does.
    text = {"f": "float64", "O": "binary"}.get(dtype.kind, name_of(dtype))
    return _arrow_type(text)


def _arrow_type(name: str) -> Any:
    modules = _modules()
    assert modules is not None
    return getattr(modules[0], name)()


def texts_of(array: Any) -> Texts:
    """Return an Arrow array of text or bytes without nulls as a column."""
    array = array.combine_chunks()
    if not len(array):
        return Texts.of([])
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    places = places.astype(np.int64)
    return Texts(np.frombuffer(data or b"", np.uint8), places[:-1], places[1:])


def json_columns(text: bytes, spec: Any) -> list[Column] | None:
    """Return JSON objects, one in each line, as the columns of a spec."""
    # Then no object spans two lines: within an object, a comma follows a closing brace.
    data = np.frombuffer(text, np.uint8)
    ends = np.append(np.flatnonzero(data == ord("\n")), len(data))
    if not text or not (
        _are_all(data[ends - 1], "}") and _are_all(data[np.append(0, ends[:-1] + 1)], "{")
    ):
        return None
    longest = int(np.diff(ends, prepend=-1).max()) - 1
    if _has_odd_numbers(text, data, longest) or _is_deep(data, ends, longest):
        return None
    if not isinstance(spec, dict) or not _is_utf8(text):
        return None
    schema = _json_schema(cast("dict[str, Any]", spec))
    if schema is None:
        return None

    def read(json: Any, source: Any, block: int) -> Any:
        return json.read_json(
            source,
            # A block must hold a whole line.
            json.ReadOptions(block_size=max(block, 2 * longest)),
            json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )

    table = _parsed(text, read, 2)
    if table is None or table.num_rows != len(ends):
        return None
    columns: list[Column] = []
    try:
        for key in sorted(cast("dict[str, Any]", spec)):
            columns += _json_parts(table.column(key).combine_chunks(), spec[key])
    except _UnlikeError:
        return None
    return columns


class _UnlikeError(Exception):
    """A value does not match its spec."""


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def _is_deep(data: Array, ends: Positions, longest: int) -> bool:
    """Return True if a value may be nested so deeply that Python refuses it."""
    if longest <= _DEEPEST:
        return False
    opening = np.flatnonzero(data & 0xDF == ord("["))  # a brace is a bracket with one more bit
    return bool((np.diff(np.searchsorted(opening, ends), prepend=0) > _DEEPEST).any())


def _are_all(found: Array, character: str) -> bool:
    return bool((found == ord(character)).all())


def _has_odd_numbers(text: bytes, data: Array, longest: int) -> bool:
    """Return True if pyarrow and Python may read a number in a text differently.

    Most text has a few of the bytes that are looked for, or none, and one byte is found much faster than several.
    """
    if longest > _DIGITS and b"0" * _DIGITS in text.translate(_TO_ZEROS):
        return True
    if b"I" in text and b"Inf" in text and _INF.search(text):
        return True
    if b"-" not in text:
        return False
    after = np.flatnonzero(data[:-2] == ord("-")) + 1
    if (data[after] == ord("N")).any() and _MINUS_NAN.search(text):
        return True
    zeros = after[data[after] == ord("0")]
    return bool(_FOLLOWS_NUMBER[data[zeros + 1]].any())


def _json_schema(spec: dict[str, Any]) -> Any:
    modules = _modules()
    assert modules is not None
    fields = {key: _json_type(part) for key, part in spec.items()}
    return None if None in fields.values() else modules[0].schema(fields)


def _json_type(spec: Any) -> Any:
    modules = _modules()
    assert modules is not None
    if isinstance(spec, dict):
        fields = {key: _json_type(part) for key, part in cast("dict[str, Any]", spec).items()}
        return None if None in fields.values() else modules[0].struct(list(fields.items()))
    names = {"b": "bool_", "i": "int64", "f": "float64", "O": "string"}
    name = "uint64" if spec.dtype == dtypes.uint64 else names.get(spec.dtype.kind)
    if name is None or spec.shape.rank > 1:
        return None
    inner = _arrow_type(name)
    return modules[0].list_(inner) if spec.shape.rank else inner


def _json_parts(array: Any, spec: Any) -> list[Column]:
    if array.null_count:
        raise _UnlikeError
    if isinstance(spec, dict):
        parts = cast("dict[str, Any]", spec)
        columns: list[Column] = []
        for key in sorted(parts):
            columns += _json_parts(array.field(key), parts[key])
        return columns
    if spec.shape.rank == 0:
        return [_values(array, spec)]
    offsets = array.offsets.to_numpy().astype(np.int64)
    flat = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    values = _values(flat, spec)
    lengths = set(np.diff(offsets).tolist())
    if spec.shape[0] is not None and lengths != {spec.shape[0]}:
        raise _UnlikeError
    if len(lengths) == 1:
        return [values.reshape(len(array), lengths.pop())]
    if isinstance(values, Texts):
        values = np.asarray(values)
    return [RaggedTensor(values, offsets - offsets[0])]


def _values(array: Any, spec: TensorSpec) -> Array | Texts:
    if array.null_count:
        raise _UnlikeError
    if spec.dtype == dtypes.string:
        modules = _modules()
        assert modules is not None
        return texts_of(modules[0].chunked_array([array]))
    return narrowed(array.to_numpy(zero_copy_only=False), spec.dtype)


def narrowed(wide: Array, dtype: DType) -> Array:
    """Return numbers in a narrower dtype. Too large floats become infinite; too large integers raise."""
    if wide.dtype == dtype:
        return wide
    with np.errstate(over="ignore"):
        narrow = wide.astype(dtype)
    if dtype.kind in "iu" and (narrow != wide).any():
        raise _UnlikeError
    return narrow
