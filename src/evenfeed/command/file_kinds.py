"""What kind of file a path is, the dataset of its rows, and the code that makes it."""

import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evenfeed.core.errors import NotFoundError
from evenfeed.data import Dataset, TextLineDataset, TFRecordDataset
from evenfeed.data.experimental import make_csv_dataset
from evenfeed.formats.bytes.filesystems import filesystem, matching, open_file, size_of
from evenfeed.formats.pages.saved import find_saved
from evenfeed.formats.tfrecord.framing import header_of
from evenfeed.io import read_file

#: Of each kind, the name that users know.
NAMES: Final = {
    "array_record": "ArrayRecord",
    "arrow": "Arrow",
    "csv": "CSV",
    "json": "JSON Lines",
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
_DELIMITERS: Final = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Kind:
    """How files are read: their format and compression, and the delimiter of their fields."""

    format: str
    compression: str = ""
    delimiter: str = ","
    folder: str = ""  # of a saved dataset: each is read on its own

    def __str__(self) -> str:
        packed = f", {self.compression}" if self.compression else ""
        return NAMES.get(self.format, "a format that evenfeed does not know") + packed


def by_kind(patterns: Sequence[str]) -> dict[Kind, list[str]]:
    """Return the files that the patterns name, also those in directories, by their kind."""
    found: dict[Kind, list[str]] = {}
    for pattern in patterns:
        paths = matching(pattern)
        if not paths:
            raise NotFoundError(f"{pattern} does not exist.", fix="check the path.")
        for path in paths:
            for file, kind in _kinds_in(path):
                found.setdefault(kind, []).append(file)
    if not found:
        raise NotFoundError(f"There are no files in {', '.join(patterns)}.", fix="check the path.")
    return found


def _kinds_in(path: str) -> Iterator[tuple[str, Kind]]:
    system, inner = filesystem(path)
    if not system.isdir(inner):
        yield path, _kind_of(path)
    elif find_saved(path) is not None:
        yield path, Kind("saved", folder=path)
    else:
        for name in sorted(system.ls(inner, detail=False)):
            child = os.path.join(path, os.path.basename(name))
            if not os.path.basename(name).startswith((".", "_")):  # as _SUCCESS and .crc files
                yield from _kinds_in(child)


def _kind_of(path: str) -> Kind:
    with open_file(path) as file:
        start = file.read(_LOOKED_AT)
    plain, compression = _unpacked(start)
    name = path.lower()
    if compression:
        name = name.removesuffix(".gz").removesuffix(".zlib")
    format_ = _format_of(name, plain)
    return Kind(format_, compression, _delimiter_of(plain) if format_ == "csv" else ",")


def _delimiter_of(start: bytes) -> str:
    """Return the usual delimiter that the header has most of, outside of quotes."""
    header = re.sub(rb'"[^"]*"', b"", start.splitlines()[0] if start else b"")
    return max(_DELIMITERS, key=lambda delimiter: header.count(delimiter.encode()))


def _unpacked(start: bytes) -> tuple[bytes, str]:
    """Return the first bytes of the content, and how it is compressed."""
    for compression, magic, bits in (("GZIP", b"\x1f\x8b", 31), ("ZLIB", b"\x78", 15)):
        if start.startswith(magic):
            try:
                return zlib.decompressobj(bits).decompress(start), compression
            except zlib.error:
                pass
    return start, ""


def _format_of(name: str, start: bytes) -> str:
    for magic, format_ in _MAGIC.items():
        if start.startswith(magic):
            return format_
    if len(start) >= 12 and start[:12] == header_of(int.from_bytes(start[:8], "little")):
        return "tfrecord"
    if start[_TAR] == b"ustar":
        return "webdataset"
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


def opened(kind: Kind, paths: list[str], fill_null: dict[str, Any]) -> Dataset:
    """Return the dataset of the rows of files. Columns of tables with nulls need a value to fill in."""
    packed = kind.compression or None
    match kind.format:
        case "array_record":
            return Dataset.from_array_record(paths)
        case "arrow":
            return Dataset.from_arrow(paths, fill_null=fill_null)
        case "csv":
            batches = make_csv_dataset(
                paths,
                batch_size=1,
                field_delim=kind.delimiter,
                num_epochs=1,
                shuffle=False,
                compression_type=packed,
            )
            return batches.unbatch()
        case "json":
            return Dataset.from_json_lines(paths, compression_type=packed)
        case "parquet":
            return Dataset.from_parquet(paths, fill_null=fill_null)
        case "picture":
            return Dataset.from_tensor_slices(paths).map(read_file)
        case "saved":
            return Dataset.load(paths[0])
        case "tfrecord":
            return TFRecordDataset(paths, compression_type=packed)
        case "webdataset":
            return Dataset.from_webdataset(paths)
        case _:
            return TextLineDataset(paths, compression_type=packed)


def code_of(kind: Kind, paths: Sequence[str], fill_null: dict[str, Any]) -> str:
    """Return the code that makes the dataset."""
    filled = f", fill_null={fill_null}" if fill_null else ""
    names = repr(paths[0]) if len(paths) == 1 else _listed(paths)
    packed = f', compression_type="{kind.compression}"' if kind.compression else ""
    match kind.format:
        case "csv":
            delimiter = f", field_delim={kind.delimiter!r}" if kind.delimiter != "," else ""
            made = f"tf.data.experimental.make_csv_dataset({names}, batch_size=32, num_epochs=1{delimiter}{packed})"
        case "picture":
            made = f"tf.data.Dataset.from_tensor_slices({names if len(paths) > 1 else f'[{names}]'}).map(tf.io.read_file).map(tf.io.decode_image){_labelled(paths)}"
        case "saved":
            made = f"tf.data.Dataset.load({names})"
        case "tfrecord" | "text":
            class_ = "TFRecordDataset" if kind.format == "tfrecord" else "TextLineDataset"
            made = f"tf.data.{class_}({names}{packed})"
        case "json":
            made = f"tf.data.Dataset.from_json_lines({names}{packed})"
        case _:
            made = f"tf.data.Dataset.from_{kind.format}({names}{filled})"
    return f"dataset = {made}"


def _listed(paths: Sequence[str]) -> str:
    """Return a list of paths as code: a pattern if there are many."""
    if len(paths) <= 3:
        return repr(list(paths))
    folder, ending = os.path.dirname(paths[0]), os.path.splitext(paths[0])[1]
    above = os.path.join(os.path.dirname(folder), "*")
    for place in (folder, above):
        for name in (f"*{ending}", "*"):
            pattern = os.path.join(place, name)
            if sorted(matching(pattern)) == sorted(paths):
                return f"tf.io.gfile.glob({pattern!r})"
    return repr(list(paths))


def _labelled(paths: Sequence[str]) -> str:
    """Return a comment on how to get labels, if pictures lie in several folders of one folder."""
    folders = {os.path.dirname(path) for path in paths}
    above = {os.path.dirname(folder) for folder in folders}
    if len(folders) < 2 or len(above) > 1:
        return ""
    made = f"tf.keras.utils.image_dataset_from_directory({above.pop()!r})"
    return f"\n# with the folders as labels, in batches of one size: {made}"


def bytes_in(path: str) -> int:
    """Return the size of a file, or of the files in a directory."""
    system, inner = filesystem(path)
    if not system.isdir(inner):
        return size_of(path)
    names: list[Any] = system.ls(inner, detail=False)
    return sum(bytes_in(os.path.join(path, os.path.basename(name))) for name in names)
