"""What kind of file a path is."""

import csv
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from evenfeed.command.value_texts import without_place
from evenfeed.core.errors import EvenfeedError
from evenfeed.formats.bytes.filesystems import filesystem, matching, open_file, size_of
from evenfeed.formats.pages.saved import find_saved
from evenfeed.formats.tfrecord.framing import header_of

#: Of each kind, the name that users know.
NAMES: Final = {
    "array_record": "ArrayRecord",
    "arrow": "Arrow",
    "csv": "CSV",
    "json": "JSON Lines",
    "numpy": "NumPy",
    "parquet": "Parquet",
    "picture": "pictures",
    "saved": "saved dataset",
    "text": "text",
    "tfrecord": "TFRecord",
    "webdataset": "WebDataset",
}
UNKNOWN: Final = "unknown"

_LOOKED_AT: Final = 4096  # bytes
_MAGIC: Final = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # a stream
    b"\xff\xd8\xff": "picture",
    b"\x89PNG\r\n\x1a\n": "picture",
    b"GIF8": "picture",
    b"\x93NUMPY": "numpy",
}
_ENDINGS: Final = {
    ".csv": "csv",
    ".tsv": "csv",
    ".arrayrecord": "array_record",
    ".array_record": "array_record",
    ".riegeli": "array_record",
    ".bmp": "picture",
    ".webp": "picture",
}
_TAR: Final = slice(257, 262)
_ZIP: Final = b"PK\x03\x04"
# What names promise. The content decides; an empty file has none.
_NAMED: Final = _ENDINGS | {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "numpy",
    ".npz": "numpy",
    ".tar": "webdataset",
    ".jpg": "picture",
    ".jpeg": "picture",
    ".png": "picture",
    ".gif": "picture",
    ".jsonl": "json",
    ".json": "json",
    ".tfrecord": "text",  # may be empty
}
_NOT_COMPRESSED: Final = ("parquet", "arrow", "numpy", "picture", "array_record")
_DELIMITERS: Final = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Kind:
    """How files are read: their format and compression, and the delimiter of their fields."""

    format: str
    compression: str = ""
    delimiter: str = ","
    folder: str = ""  # of what is read on its own: a saved dataset, or arrays
    columns: int = 0  # of CSV files without a header

    def __str__(self) -> str:
        packed = f", {self.compression}" if self.compression else ""
        return NAMES[self.format] + packed


@dataclass(frozen=True)
class Unknown:
    """Why a path cannot be shown."""

    path: str
    why: str

    def __str__(self) -> str:
        return self.why if self.path in self.why else f"{self.path}: {self.why}"


def by_kind(patterns: Sequence[str]) -> tuple[dict[Kind, list[str]], list[Unknown]]:
    """Return the files that the patterns name, also those in directories, by their kind; and those that have none."""
    found: dict[Kind, list[str]] = {}
    unknown: list[Unknown] = []
    for pattern in patterns:
        # A file may have a name that is a pattern, such as log[1].txt.
        paths = [pattern] if os.path.lexists(pattern) else matching(pattern)
        if not paths:
            unknown.append(Unknown(pattern, f"{pattern} does not exist.\n  fix: check the path."))
        files = [file for path in paths for file in _kinds_in(path, ())]
        if paths and not files:
            unknown.append(Unknown(pattern, f"There are no files in {pattern}."))
        for path, kind in files:
            if isinstance(kind, Kind):
                found.setdefault(kind, []).append(path)
            else:
                unknown.append(kind)
    return found, unknown


def _kinds_in(path: str, above: tuple[str, ...]) -> Iterator[tuple[str, Kind | Unknown]]:
    try:
        system, inner = filesystem(path)
        if not system.isdir(inner):
            yield path, _kind_of(path)
            return
        if find_saved(path) is not None:
            yield path, Kind("saved", folder=path)
            return
        names = sorted(system.ls(inner, detail=False))
    except (EvenfeedError, OSError, ImportError, ValueError) as error:
        yield path, Unknown(path, without_place(error))
        return
    here = os.path.realpath(path)
    for name in map(os.path.basename, names):
        child = os.path.join(path, name)
        if name.startswith((".", "_")):  # as _SUCCESS and .crc files
            continue
        if os.path.realpath(child) not in (*above, here):  # a link to a folder around it
            yield from _kinds_in(child, (*above, here))


def _kind_of(path: str) -> Kind | Unknown:
    if os.path.exists(path) and not os.path.isfile(path):
        return Unknown(path, "is not a regular file.")  # reading a pipe may wait forever
    with open_file(path) as file:
        start = file.read(_LOOKED_AT)
    plain, compression = _unpacked(start)
    name = path.lower()
    if compression:
        name = name.removesuffix(".gz").removesuffix(".zlib")
    format_ = _format_of(name, plain)
    named = next((kind for ending, kind in _NAMED.items() if name.endswith(ending)), format_)
    if not start and named != "text":
        return Unknown(path, "is empty.")
    if format_ == UNKNOWN:
        return Unknown(path, "a format that evenfeed does not know.")
    if compression and format_ in _NOT_COMPRESSED:
        what = f"is a {NAMES[format_]} file that was compressed with {compression}."
        return Unknown(path, f"{what}\n  fix: unpack it first; these files are compressed inside.")
    if format_ == "csv":
        delimiter = _delimiter_of(plain)
        return Kind(
            format_, compression, delimiter, columns=_columns_without_header(plain, delimiter)
        )
    return Kind(format_, compression, folder=path if format_ == "numpy" else "")


def _columns_without_header(start: bytes, delimiter: str) -> int:
    """Return the number of columns if the first line is a row like the next ones; 0 if it looks like a header.

    A header has texts, where the rows below have numbers.
    """
    text = start.decode(errors="replace")
    lines = [
        line for line in islice(csv.reader(text.splitlines(), delimiter=delimiter), 20) if line
    ]
    if len(start) == _LOOKED_AT and len(lines) > 2:
        lines.pop()  # may be cut off
    if len(lines) < 2 or len(lines[1]) != len(lines[0]):
        return 0
    numbers = [i for i, field in enumerate(lines[1]) if _is_number(field)]
    return len(lines[0]) if numbers and all(_is_number(lines[0][i]) for i in numbers) else 0


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _delimiter_of(start: bytes) -> str:
    """Return the usual delimiter that the header has most of, outside of quotes."""
    header = re.sub(rb'"[^"]*"', b"", start.splitlines()[0] if start else b"")
    return max(_DELIMITERS, key=lambda delimiter: header.count(delimiter.encode()))


def _unpacked(start: bytes) -> tuple[bytes, str]:
    """Return the first bytes of the content, and how it is compressed."""
    for compression, magic, bits in (("GZIP", b"\x1f\x8b", 31), ("ZLIB", b"\x78", 15)):
        if start.startswith(magic):
            unpacking = zlib.decompressobj(bits)
            with suppress(zlib.error):
                plain = unpacking.decompress(start)
                if plain or unpacking.eof:  # a text may begin with the two bytes, too
                    return plain, compression
    return start, ""


def _format_of(name: str, start: bytes) -> str:
    for magic, format_ in _MAGIC.items():
        if start.startswith(magic):
            return format_
    if len(start) >= 12 and start[:12] == header_of(int.from_bytes(start[:8], "little")):
        return "tfrecord"
    if start[_TAR] == b"ustar":
        return "webdataset"
    if start.startswith(_ZIP) and name.endswith(".npz"):
        return "numpy"
    for ending, format_ in _ENDINGS.items():
        if name.endswith(ending):
            return format_
    if not start and "tfrecord" in name:
        return "tfrecord"
    if b"\0" in start:
        return UNKNOWN
    return "json" if _is_json(start) else "text"


def _is_json(start: bytes) -> bool:
    """Whether the first line is a JSON object, or the beginning of a long one."""
    line, ended, _ = start.lstrip().partition(b"\n")
    if not line.startswith(b"{"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return not ended and len(start) >= _LOOKED_AT
    return True


def bytes_in(path: str) -> int:
    """Return the size of a file, or of the files in a directory."""
    system, inner = filesystem(path)
    if not system.isdir(inner):
        return size_of(path)
    names: list[Any] = system.ls(inner, detail=False)
    return sum(bytes_in(os.path.join(path, os.path.basename(name))) for name in names)
