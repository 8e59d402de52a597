"""Arrow IPC files (including Feather) and streams. A plan treats each record batch as its own file.

Files are memory-mapped; uncompressed numeric columns are views of the mapping.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.partly_read import Unread
from evenfeed.formats.bytes.byte_windows import written
from evenfeed.formats.bytes.filesystems import is_remote, open_file
from evenfeed.formats.bytes.mapped_files import (
    Held,
    MappedFile,
    check_length,
    many_are_mapped,
    without_views,
)
from evenfeed.formats.reader import Chunk
from evenfeed.formats.tables.arrow_columns import arrow
from evenfeed.formats.tables.table_parts import Choice, TablePart, chunk_of, reading_table

_KIND: Final = "Arrow"
_MAGIC: Final = b"ARROW1"
_OLD_MAGIC: Final = b"FEA1"
# A file is a stream between padded magic bytes and a footer.
_STREAM_AT: Final = 8
# The limit for row counts, which may be damaged: no compression expands a byte to more than 255.
_ROWS_PER_BYTE: Final = 8 * 256
_SHORT, _UINT, _INT, _LONG = (struct.Struct(f"<{kind}") for kind in "HIiq")
_NODE: Final = struct.Struct("<qq")


@final
@dataclass(frozen=True)
class RecordBatch(TablePart):
    """A record batch of an Arrow file."""

    read_by: ClassVar[str] = "from_arrow"
    called: ClassVar[str] = "record batch"

    def decoded(self) -> Chunk:
        """Map the record batch, or decompress the requested columns."""
        with reading_table(self.path, _KIND, self.place, self.span[0]):
            opened = _opened(self.path, written(self.path))
            if opened.may_have_nulls(self.number, self.wanted.blank):
                raise Unread
            batch = opened.batch(self.number, self.wanted.read)
            if batch.num_rows != self.count:
                raise arrow().ArrowInvalid(
                    f"it has {batch.num_rows} rows, but declares {self.count}"
                )
            # Wrong offsets would read out of bounds.
            batch.validate(full=True)
        chunk = chunk_of(batch.column, batch.num_rows, self.wanted)
        if not many_are_mapped():
            return chunk
        return Chunk(without_views(chunk.block), chunk.wrong)


def record_batches(
    paths: Sequence[str], columns: Any, fill_null: Any
) -> tuple[Any, tuple[RecordBatch, ...]]:
    """Return the element spec of the files, and their record batches."""
    choice = Choice(columns, fill_null)
    batches: list[RecordBatch] = []
    if any(map(is_remote, paths)):  # the cache key does not tell whether they were rewritten
        _opened.cache_clear()
    for path in paths:
        with reading_table(path, _KIND, "opening it"):
            opened = _opened(path, written(path))
            wanted = choice.of(path, opened.schema)
        with reading_table(path, _KIND, "record batch headers"):
            heads = opened.heads
        firsts = [0, *accumulate(head.rows for head in heads)]
        batches += [
            RecordBatch(path, number, firsts[number], head.rows, head.span, wanted)
            for number, head in enumerate(heads)
            if head.rows
        ]
    return choice.specs, tuple(batches)


@final
class _Opened:
    """The bytes of an Arrow file, and their pyarrow reader.

    Attributes:
        schema: The schema of all its record batches.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._held = _content(path)
        self._bytes = arrow().py_buffer(self._held)
        magic = self._bytes[: len(_MAGIC)].to_pybytes()
        if magic.startswith(_OLD_MAGIC):
            raise InvalidArgumentError(
                f"{path} is a Feather version 1 file, not an Arrow file.",
                fix="rewrite it: pyarrow.feather.write_feather(table, path).",
            )
        self._is_stream = magic != _MAGIC
        ipc = arrow("ipc")
        reader = (ipc.open_stream if self._is_stream else ipc.open_file)(self._bytes)
        self.schema = reader.schema
        # A stream has no footer: all its record batches must be read in order.
        self._batches: list[Any] = list(reader) if self._is_stream else []
        self._reader = reader
        self._narrow: dict[tuple[str, ...], Any] = {}

    def batch(self, number: int, columns: tuple[str, ...]) -> Any:
        """Return a record batch with these columns."""
        check_length(self._path, self._held)
        if self._is_stream:
            return self._batches[number].select(columns)
        return self._reader_of(columns).get_batch(number).select(columns)

    def may_have_nulls(self, number: int, columns: tuple[str, ...]) -> bool:
        """Return True unless the header of a record batch says that columns have no nulls."""
        nulls, kinds = self.heads[number].nulls, self.schema.types
        firsts = [0, *accumulate(map(_nodes, kinds))]
        if not columns or len(nulls) != firsts[-1]:
            return bool(columns)
        spans = dict(zip(self.schema.names, pairwise(firsts), strict=True))
        return any(any(nulls[slice(*spans[name])]) for name in columns)

    @cached_property
    def heads(self) -> list["_Head"]:
        """The header of each record batch, read without decoding the batch."""
        stream = self._bytes if self._is_stream else self._bytes.slice(_STREAM_AT)
        found = [
            _head(message, self._bytes.address)
            for message in arrow("ipc").MessageReader.open_stream(arrow().BufferReader(stream))
            if message.type == "record batch"
        ]
        count = len(self._batches) if self._is_stream else self._reader.num_record_batches
        if len(found) != count:
            raise arrow().ArrowInvalid(f"it has {len(found)} record batches, but declares {count}")
        return found

    def _reader_of(self, columns: tuple[str, ...]) -> Any:
        """Return a reader that decompresses only these columns.

        Without compression, the plain reader reads no others.
        """
        if not any(head.is_compressed for head in self.heads):
            return self._reader
        if columns not in self._narrow:
            ipc = arrow("ipc")
            wanted = sorted(self.schema.get_field_index(name) for name in columns)
            options = ipc.IpcReadOptions(included_fields=wanted)
            self._narrow[columns] = ipc.open_file(self._bytes, options=options)
        return self._narrow[columns]


def _content(path: str) -> Held:
    if is_remote(path):
        with open_file(path) as file:
            return file.read()
    return MappedFile(path).bytes


@final
@dataclass(frozen=True, slots=True)
class _Head:
    """The header of a record batch.

    Attributes:
        span: Its first byte in the file, and one past its last.
        rows: Number of rows.
        is_compressed: Whether its columns are compressed.
        nulls: The number of nulls of each column and of the columns inside it, each before its own.
    """

    span: tuple[int, int]
    rows: int
    is_compressed: bool
    nulls: tuple[int, ...]


def _head(message: Any, begin: int) -> _Head:
    """Parse the header fields that pyarrow does not expose. `begin` is the memory address of the file.

    The header is a flatbuffer: each table lists the offsets of its fields. The record batch is field 2 of the
    message; its field 0 is the length, field 1 lists the lengths and nulls of columns, and field 3 is the compression,
    if any.
    """
    start, head = message.metadata.address - begin, message.metadata.to_pybytes()
    table = _UINT.unpack_from(head, 0)[0]
    place = table + _field(head, table, 2)
    batch = place + _UINT.unpack_from(head, place)[0]
    length = _field(head, batch, 0)
    rows: int = _LONG.unpack_from(head, batch + length)[0] if length else 0
    if not 0 <= rows <= _ROWS_PER_BYTE * message.body.size:
        raise arrow().ArrowInvalid(f"the record batch at byte {start} declares {rows} rows")
    span = (start, start + len(head) + message.body.size)
    return _Head(span, rows, _field(head, batch, 3) > 0, _nulls(head, batch))


def _nulls(head: bytes, batch: int) -> tuple[int, ...]:
    """Return the numbers of nulls in the columns of a record batch, and in those inside them."""
    field = _field(head, batch, 1)
    if not field:
        return ()
    place = batch + field
    found = place + _UINT.unpack_from(head, place)[0]
    count: int = _UINT.unpack_from(head, found)[0]
    return tuple(nulls for _, nulls in _NODE.iter_unpack(head[found + 4 : found + 4 + 16 * count]))


def _nodes(kind: Any) -> int:
    """Return how many columns a column of a type is stored as: itself, and those inside it."""
    if isinstance(kind, arrow().BaseExtensionType):
        return _nodes(kind.storage_type)
    if arrow("types").is_dictionary(kind):
        return 1
    return 1 + sum(_nodes(kind.field(number).type) for number in range(kind.num_fields))


def _field(head: bytes, table: int, number: int) -> int:
    """Return the offset of a field from the start of its table; 0 if the field is absent."""
    fields = table - _INT.unpack_from(head, table)[0]
    size: int = _SHORT.unpack_from(head, fields)[0]
    at = 4 + 2 * number
    return _SHORT.unpack_from(head, fields + at)[0] if at < size else 0


@lru_cache(maxsize=16)
def _opened(path: str, written: str) -> _Opened:
    del written  # part of the cache key: a rewritten file is opened again
    return _Opened(path)
