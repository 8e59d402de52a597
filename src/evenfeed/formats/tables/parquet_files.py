"""Parquet files: opening them, choosing row groups by filter, and decoding. A plan treats each row group as a file.

pyarrow kills the process if a column chunk in the footer contradicts the schema: its C++ code raises an exception that
nothing catches. So evenfeed checks the footer first, and pyarrow opens only files whose footer is consistent.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import DataLossError, InvalidArgumentError
from evenfeed.formats.bytes.byte_windows import written
from evenfeed.formats.bytes.filesystems import is_remote, local, naming, open_file
from evenfeed.formats.bytes.retries import interruptible
from evenfeed.formats.reader import Chunk
from evenfeed.formats.tables.arrow_columns import arrow
from evenfeed.formats.tables.parquet_nulls import check_no_nulls
from evenfeed.formats.tables.remote_parquet import RemoteParquet
from evenfeed.formats.tables.table_parts import (
    Choice,
    RowFilter,
    TablePart,
    Wanted,
    chunk_of,
    reading_table,
)
from evenfeed.formats.tables.thrift import BYTES, I32, I64, Fields, list_of, struct_in, struct_of

# Threads take longer to start than a shorter row group to decode.
_IN_PARALLEL: Final = 1 << 16
_SHORT_FILE: Final = 1 << 16  # pyarrow takes longer to open such a file than Python to read it


def _local_group(path: str, state: str, number: int, columns: list[str], size: int) -> Any:
    """Decode a row group of a local file."""
    source: Any = local(path)
    if os.path.getsize(source) <= _SHORT_FILE:
        source, metadata = arrow().BufferReader(Path(source).read_bytes()), None
    else:
        metadata = _metadata(path, state)
    opened = arrow("parquet").ParquetFile
    with opened(source, metadata=metadata, page_checksum_verification=True) as file:
        return file.read_row_group(number, columns, use_threads=size >= _IN_PARALLEL)


@final
@dataclass(frozen=True)
class RowGroup(TablePart):
    """A row group of a Parquet file."""

    read_by: ClassVar[str] = "from_parquet"
    called: ClassVar[str] = "row group"

    def decoded(self) -> Chunk:
        wanted, (start, end) = self.wanted, self.span
        expression = wanted.filter and wanted.filter.expression
        with reading_parquet(self.path, self.place, start):
            columns, state = list(wanted.read), written(self.path)
            if wanted.filter or is_remote(self.path):
                opened = opened_parquet(self.path, state)
                self._check(opened.groups)
                check_no_nulls(opened.metadata, self.number, wanted.blank)
                part = opened.fragment.subset(row_group_ids=[self.number])
                table = opened.read(partial(part.to_table, columns=columns, filter=expression))
            else:
                self._check(_checked_groups(self.path, state))
                check_no_nulls(partial(_metadata, self.path, state), self.number, wanted.blank)
                table = _local_group(self.path, state, self.number, columns, end - start)
        return chunk_of(table.column, table.num_rows, wanted)

    def _check(self, groups: "tuple[GroupTable, ...]") -> None:
        if groups[self.number : self.number + 1] != (GroupTable(self.count, self.span),):
            raise _damaged(self.path, "it was replaced since the dataset was made")


@lru_cache(maxsize=64)
def _metadata(path: str, written: str) -> Any:
    del written  # part of the cache key: a rewritten file is read again
    return arrow("parquet").read_metadata(local(path))


@final
@dataclass(frozen=True, slots=True)
class GroupTable:
    """A row group as the footer describes it.

    Attributes:
        rows: Number of rows.
        span: Its first byte in the file, and one past its last.
    """

    rows: int
    span: tuple[int, int]


@final
@dataclass(frozen=True)
class OpenedParquet:
    """A Parquet file whose footer has been read.

    Attributes:
        groups: The row groups listed in the footer.
        fragment: pyarrow's handle of the file.
        remote: The remote file that pyarrow reads; None if it is local.
    """

    groups: tuple[GroupTable, ...]
    fragment: Any
    remote: "RemoteParquet | None"

    def metadata(self) -> Any:
        """Return pyarrow's metadata of the file."""
        return self.read(lambda: self.fragment.metadata)

    def read(self, call: Callable[[], Any]) -> Any:
        """Call a function of pyarrow that reads the file. A remote one must not change meanwhile."""
        if self.remote is None:
            return call()
        found = interruptible(call)  # pyarrow does not see Ctrl-C
        self.remote.open("", "rb").check()
        return found


@lru_cache(maxsize=16)
def opened_parquet(path: str, written: str) -> OpenedParquet:
    """Open a file after checking its footer. A rewritten file is opened again, if its `written` differs."""
    if not is_remote(path):
        fragment = _format().make_fragment(local(path), arrow("fs").LocalFileSystem())
        return OpenedParquet(_checked_groups(path, written), fragment, None)
    remote, systems = RemoteParquet(path), arrow("fs")
    handler = systems.PyFileSystem(systems.FSSpecHandler(remote))
    return OpenedParquet(groups_in(path), _format().make_fragment(local(path), handler), remote)


@lru_cache(maxsize=1 << 14)
def _checked_groups(path: str, written: str) -> tuple[GroupTable, ...]:
    """Check the footer of a local file once, however many files are read in turn."""
    del written  # part of the cache key: a rewritten file is checked again
    return groups_in(path)


@cache
def _format() -> Any:
    dataset = arrow("dataset")
    checked = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    return dataset.ParquetFileFormat(default_fragment_scan_options=checked)


def reading_parquet(
    path: str, where: str, offset: int | None = None
) -> AbstractContextManager[None]:
    """Convert pyarrow's errors about damaged bytes into a DataLossError that names the file."""
    return reading_table(path, "Parquet", where, offset)


def row_groups(
    paths: Sequence[str], columns: Any, filter_: Any, fill_null: Any
) -> tuple[Any, tuple[RowGroup, ...]]:
    """Return the element spec of the files, and their row groups, without those that the filter rules out."""
    choice = Choice(columns, fill_null, _row_filter(filter_))
    groups: list[RowGroup] = []
    if any(map(is_remote, paths)):  # the cache key does not tell whether they were rewritten
        opened_parquet.cache_clear()
    for path in paths:
        with reading_parquet(path, "footer"):
            opened = opened_parquet(path, written(path))
            schema = opened.read(partial(getattr, opened.fragment, "physical_schema"))
            wanted = choice.of(path, schema)
        groups += _selected(path, opened, schema, wanted)
    return choice.specs, tuple(groups)


def _selected(path: str, opened: OpenedParquet, schema: Any, wanted: Wanted) -> list[RowGroup]:
    """Return the row groups that may have matching rows, judging by their statistics."""
    groups = opened.groups
    firsts = [0, *accumulate(group.rows for group in groups)]
    return [
        RowGroup(path, number, firsts[number], groups[number].rows, groups[number].span, wanted)
        for number in _possible(path, opened, schema, wanted)
        if groups[number].rows
    ]


def _possible(path: str, opened: OpenedParquet, schema: Any, wanted: Wanted) -> Sequence[int]:
    if wanted.filter is None:
        return range(len(opened.groups))
    try:
        left = opened.fragment.split_by_row_group(filter=wanted.filter.expression, schema=schema)
    except arrow().ArrowException as error:
        raise InvalidArgumentError(
            f"The filter {wanted.filter.text} does not match the columns of {path}: {str(error).splitlines()[0]}",
            fix=f"use its columns: {schema.names}.",
        ) from error
    return [part.row_groups[0].id for part in left]


def _row_filter(value: Any) -> RowFilter | None:
    if value is None:
        return None
    expressions = arrow("compute").Expression
    if not isinstance(value, expressions):
        try:
            value = arrow("parquet").filters_to_expression(value)
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"filter is not valid: {shortened(value)} ({error}).",
                fix="pass [('column', '>', 3), ...], or a pyarrow.compute expression.",
            ) from error
    return RowFilter(str(value), value)


_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
_LENGTH: Final = 4
_END: Final = _LENGTH + len(_MAGIC)
# Footers are rarely longer, so that one read suffices.
_FIRST_READ: Final = 1 << 16

_BYTE_ARRAY, _FIXED_BYTES = 6, 7
# Bytes per value of each physical type in the statistics; byte arrays have any length.
_SIZES: Final = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_REQUIRED, _OPTIONAL, _REPEATED = 0, 1, 2

# Field numbers and kinds, as the format defines them.
_OLD_MAX, _OLD_MIN, _MAX, _MIN = 1, 2, 5, 6
_BOUNDS: Final = {_OLD_MAX: BYTES, _OLD_MIN: BYTES, _MAX: BYTES, _MIN: BYTES}
_TEXT_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3
_LEVELS: Final = {_TEXT_BYTES: I64, _REPETITIONS: list_of(I64), _DEFINITIONS: list_of(I64)}
_TYPE, _PATH, _COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 1, 3, 7, 9, 11
_STATISTICS, _SIZE_STATISTICS = 12, 16
_META_DATA: Final = {
    _TYPE: I32,
    _PATH: list_of(BYTES),
    _COMPRESSED: I64,
    _DATA_PAGE: I64,
    _DICTIONARY_PAGE: I64,
    _STATISTICS: struct_of(_BOUNDS),
    _SIZE_STATISTICS: struct_of(_LEVELS),
}
_META, _CRYPTO = 3, 8
_CHUNK: Final = {_META: struct_of(_META_DATA), _CRYPTO: struct_of({})}
_CHUNKS, _GROUP_ROWS = 1, 3
_GROUP: Final = {_CHUNKS: list_of(struct_of(_CHUNK)), _GROUP_ROWS: I64}
_TYPE_LENGTH, _REPETITION, _NAME, _CHILDREN = 2, 3, 4, 5
_NODE: Final = {_TYPE: I32, _TYPE_LENGTH: I32, _REPETITION: I32, _NAME: BYTES, _CHILDREN: I32}
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
_TABLE: Final = {
    _SCHEMA: list_of(struct_of(_NODE)),
    _ROWS: I64,
    _GROUPS: list_of(struct_of(_GROUP)),
}


class _Leaf(NamedTuple):
    """A leaf column of the schema."""

    name: str
    type: int
    size: int | None
    definitions: int
    repetitions: int


def groups_in(path: str) -> tuple[GroupTable, ...]:
    """Return the row groups of a file; raise DataLossError if its footer is inconsistent."""
    size, table = _table_bytes(path)
    try:
        return tuple(_groups(struct_in(table, _TABLE), size))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        why = f"field {error} is missing" if isinstance(error, KeyError) else error
        raise _damaged(path, f"its footer is wrong: {why}") from error


def _table_bytes(path: str) -> tuple[int, bytes]:
    """Return the size of a file, and the bytes of its footer."""
    with open_file(path) as file, naming(path):
        size = file.seek(0, 2)
        end = _read_from(file, max(0, size - _FIRST_READ), size)
        if len(end) < _END + len(_MAGIC) or end[-len(_MAGIC) :] not in (_MAGIC, _ENCRYPTED):
            raise _damaged(path, "it does not end with Parquet's magic bytes")
        if end.endswith(_ENCRYPTED):
            raise _damaged(path, "its footer is encrypted")
        length = int.from_bytes(end[-_END : -len(_MAGIC)], "little")
        if length > size - _END - len(_MAGIC):
            raise _damaged(path, f"its footer declares a length of {length} bytes")
        if length + _END > len(end):
            end = _read_from(file, size - _END - length, size)
        return size, end[-_END - length : -_END]


def _read_from(file: Any, place: int, stop: int) -> bytes:
    """Return the bytes from `place` to `stop`, and no more: a device such as /dev/zero has more than its size says."""
    file.seek(place)
    parts: list[bytes] = []
    while place < stop and (more := file.read(min(stop - place, 1 << 24))):
        parts.append(more)
        place += len(more)
    return b"".join(parts)


def _damaged(path: str, why: str) -> DataLossError:
    return DataLossError(
        f"{path} is damaged, or not a valid Parquet file: {why}.", fix="write the file again."
    ).in_file(path)


def _groups(table: Fields, size: int) -> Iterator[GroupTable]:
    leaves = _leaves(table[_SCHEMA])
    groups = table.get(_GROUPS, [])
    total = sum(group[_GROUP_ROWS] for group in groups)
    if total != table[_ROWS]:
        raise ValueError(f"it declares {table[_ROWS]} rows, but its row groups have {total}")
    for number, group in enumerate(groups):
        if len(group[_CHUNKS]) != len(leaves):
            raise ValueError(
                f"row group {number} has {len(group[_CHUNKS])} columns, but the schema has {len(leaves)}"
            )
        chunks = [_checked(*pair) for pair in zip(group[_CHUNKS], leaves, strict=True)]
        yield GroupTable(_count(group[_GROUP_ROWS], number), _span(chunks, number, size))


def _count(rows: int, number: int) -> int:
    if rows < 0:
        raise ValueError(f"row group {number} has {rows} rows")
    return rows


def _span(chunks: Sequence[Fields], number: int, size: int) -> tuple[int, int]:
    if not chunks:
        return 0, 0
    begin, stop = _begin(chunks[0]), _begin(chunks[-1]) + chunks[-1][_COMPRESSED]
    if not 0 <= begin <= stop <= size:
        raise ValueError(f"row group {number} declares bytes {begin} to {stop}")
    return begin, stop


def _begin(chunk: Fields) -> int:
    return min(chunk[_DATA_PAGE], chunk.get(_DICTIONARY_PAGE, chunk[_DATA_PAGE]))


def _leaves(schema: Sequence[Fields]) -> list[_Leaf]:
    """Return the leaf columns; the schema is a tree in which each node precedes its children."""
    rest = iter(schema[1:])
    found = [leaf for _ in range(schema[0].get(_CHILDREN, 0)) for leaf in _below(rest, 0, 0)]
    if next(rest, None) is not None:
        raise ValueError("its schema has columns without a parent")
    return found


def _below(rest: Iterator[Fields], definitions: int, repetitions: int) -> Iterator[_Leaf]:
    node = next(rest, None)
    if node is None:
        raise ValueError("its schema ends too early")
    children, repetition = node.get(_CHILDREN, 0), node.get(_REPETITION, _REQUIRED)
    if repetition not in (_REQUIRED, _OPTIONAL, _REPEATED):
        raise ValueError(f"its schema has an unknown repetition type {repetition}")
    definitions += repetition != _REQUIRED
    repetitions += repetition == _REPEATED
    if children == 0:
        yield _leaf(node, definitions, repetitions)
    elif children < 0:
        raise ValueError(f"its schema has a group with {children} columns")
    for _ in range(children):
        yield from _below(rest, definitions, repetitions)


def _leaf(node: Fields, definitions: int, repetitions: int) -> _Leaf:
    kind = node[_TYPE]
    size = node[_TYPE_LENGTH] if kind == _FIXED_BYTES else _SIZES.get(kind)
    if size is None and kind != _BYTE_ARRAY:
        raise ValueError(f"its schema has an unknown type {kind}")
    return _Leaf(node[_NAME].decode(), kind, size, definitions, repetitions)


def _checked(chunk: Fields, leaf: _Leaf) -> Fields:
    """Return the metadata of a column chunk; raise if it contradicts the schema."""
    if _CRYPTO in chunk:
        raise ValueError(f"column {leaf.name!r} is encrypted")
    meta: Fields = chunk[_META]
    if meta[_TYPE] != leaf.type:
        raise ValueError(
            f"column {leaf.name!r} has type {meta[_TYPE]}, but the schema says {leaf.type}"
        )
    sizes: Fields = meta.get(_SIZE_STATISTICS, {})
    for field, deepest in ((_REPETITIONS, leaf.repetitions), (_DEFINITIONS, leaf.definitions)):
        if len(sizes.get(field, ())) not in (0, deepest + 1):
            raise ValueError(f"column {leaf.name!r} has levels that are not in its schema")
    if _TEXT_BYTES in sizes and leaf.type != _BYTE_ARRAY:
        raise ValueError(f"column {leaf.name!r} is not a byte array, but declares its size as one")
    bounds: Fields = meta.get(_STATISTICS, {})
    for field in (_OLD_MAX, _OLD_MIN, _MAX, _MIN):
        if leaf.size is not None and field in bounds and len(bounds[field]) != leaf.size:
            raise ValueError(f"a min or max of column {leaf.name!r} has {len(bounds[field])} bytes")
    return meta
