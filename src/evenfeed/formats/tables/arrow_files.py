"""Arrow files, Feather among them, and streams: each record batch is a file of its own to a plan.

What is not compressed is mapped into memory, and columns of numbers are views of it.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, ClassVar, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.bytes.byte_windows import written
from evenfeed.formats.bytes.filesystems import is_remote, open_file
from evenfeed.formats.bytes.mapped_files import (
    Held,
    MappedFile,
    check_length,
    many_are_mapped,
    without_views,
)
from evenfeed.formats.chunks import Chunk
from evenfeed.formats.tables.arrow_columns import arrow
from evenfeed.formats.tables.table_columns import Choice
from evenfeed.formats.tables.table_parts import TablePart, chunk_of, reading_table

_KIND: Final = "Arrow"
_MAGIC: Final = b"ARROW1"
_OLD_MAGIC: Final = b"FEA1"
# In a file a stream lies between its magic bytes, filled up, and the table at its end.
_STREAM_AT: Final = 8
# A length that lies is not believed: no compression makes more than a byte of 255.
_ROWS_PER_BYTE: Final = 8 * 256
_SHORT, _UINT, _INT, _LONG = (struct.Struct(f"<{kind}") for kind in "HIiq")


@final
@dataclass(frozen=True)
class RecordBatch(TablePart):
    """A record batch of an Arrow file."""

    read_by: ClassVar[str] = "from_arrow"
    called: ClassVar[str] = "record batch"

    def decoded(self) -> Chunk:
        """Look at it, or decompress what is wanted of it."""
        with reading_table(self.path, _KIND, self.place, self.span[0]):
            opened = _opened(self.path, written(self.path))
            batch = opened.batch(self.number, self.wanted.columns)
            if batch.num_rows != self.count:
                raise arrow().ArrowInvalid(
                    f"it has {batch.num_rows} rows, but tells of {self.count}"
                )
            # Offsets that lie would be followed out of memory.
            batch.validate(full=True)
        chunk = chunk_of(batch.column, batch.num_rows, self.wanted)
        if not many_are_mapped():
            return chunk
        return Chunk(without_views(chunk.block), chunk.wrong)


def record_batches(
    paths: Sequence[str], columns: Any, fill_null: Any
) -> tuple[Any, tuple[RecordBatch, ...]]:
    """Return the spec of the rows of files, and their record batches."""
    choice = Choice(columns, fill_null)
    batches: list[RecordBatch] = []
    for path in paths:
        with reading_table(path, _KIND, "the whole of it"):
            opened = _opened(path, written(path))
            wanted = choice.of(path, opened.schema)
        with reading_table(path, _KIND, "the heads of its record batches"):
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
    """The bytes of an Arrow file, and what reads them.

    Attributes:
        schema: The columns of all its record batches.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._held = _content(path)
        self._bytes = arrow().py_buffer(self._held)
        beginning = self._bytes[: len(_MAGIC)].to_pybytes()
        if beginning.startswith(_OLD_MAGIC):
            raise InvalidArgumentError(
                f"{path} is a Feather file of version 1, which is no Arrow file.",
                fix="write it anew: pyarrow.feather.write_feather(table, path).",
            )
        self._is_stream = beginning != _MAGIC
        ipc = arrow("ipc")
        reader = (ipc.open_stream if self._is_stream else ipc.open_file)(self._bytes)
        self.schema = reader.schema
        # A stream says nowhere what it holds: all its record batches are looked at, in their order.
        self._batches: list[Any] = list(reader) if self._is_stream else []
        self._reader = reader
        self._narrow: dict[tuple[str, ...], Any] = {}

    def batch(self, number: int, columns: tuple[str, ...]) -> Any:
        """Return a record batch that has these columns at least."""
        check_length(self._path, self._held)
        if self._is_stream:
            return self._batches[number].select(columns)
        return self._reader_of(columns).get_batch(number).select(columns)

    @cached_property
    def heads(self) -> list["_Head"]:
        """What is known of each record batch without a look into it."""
        stream = self._bytes if self._is_stream else self._bytes.slice(_STREAM_AT)
        found = [
            _head(message, self._bytes.address)
            for message in arrow("ipc").MessageReader.open_stream(arrow().BufferReader(stream))
            if message.type == "record batch"
        ]
        count = len(self._batches) if self._is_stream else self._reader.num_record_batches
        if len(found) != count:
            raise arrow().ArrowInvalid(f"it has {len(found)} record batches, but tells of {count}")
        return found

    def _reader_of(self, columns: tuple[str, ...]) -> Any:
        """Return a reader that decompresses only some columns; what is not compressed is not even read."""
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
    """What stands before the columns of a record batch.

    Attributes:
        span: Its first byte in the file, and the one behind its last.
        rows: How many rows it has.
        is_compressed: Whether its columns are.
    """

    span: tuple[int, int]
    rows: int
    is_compressed: bool


def _head(message: Any, begin: int) -> _Head:
    """Read what pyarrow does not tell of a message in a file that begins at an address.

    It is a flatbuffer: tables have a list of where their fields are. The record batch is field 2 of the
    message; its own field 0 is the length, and field 3 says how it is compressed, if it is.
    """
    start, head = message.metadata.address - begin, message.metadata.to_pybytes()
    table = _UINT.unpack_from(head, 0)[0]
    place = table + _field(head, table, 2)
    batch = place + _UINT.unpack_from(head, place)[0]
    length = _field(head, batch, 0)
    rows: int = _LONG.unpack_from(head, batch + length)[0] if length else 0
    if not 0 <= rows <= _ROWS_PER_BYTE * message.body.size:
        raise arrow().ArrowInvalid(f"the record batch at byte {start} tells of {rows} rows")
    span = (start, start + len(head) + message.body.size)
    return _Head(span, rows, _field(head, batch, 3) > 0)


def _field(head: bytes, table: int, number: int) -> int:
    """Return how far behind the beginning of a table a field stands; 0 where it is left out."""
    fields = table - _INT.unpack_from(head, table)[0]
    size: int = _SHORT.unpack_from(head, fields)[0]
    at = 4 + 2 * number
    return _SHORT.unpack_from(head, fields + at)[0] if at < size else 0


@lru_cache(maxsize=16)
def _opened(path: str, written: str) -> _Opened:
    del written  # a file that was written anew is another one
    return _Opened(path)
