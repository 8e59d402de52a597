"""Bad input: text lines, CSV, JSON, Parquet, Arrow, WebDataset samples and images."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from array_record.python.array_record_module import ArrayRecordWriter
from pyarrow import ipc
from tests.formats.bad_input import SOME, Bad, Damage, Write, cut, damaged, nothing, plain

import evenfeed as tf
from evenfeed.errors import DataLossError, InvalidArgumentError, NotFoundError

Dataset = tf.data.Dataset

# Text lines, fixed-length records, CSV, JSON.


def read_csv(path: str) -> Dataset:
    return tf.data.experimental.CsvDataset(path, [tf.int32, tf.float32], header=True)


def read_json(path: str) -> Dataset:
    signature = {"x": tf.TensorSpec([], tf.int64), "y": {"z": tf.TensorSpec([2], tf.float32)}}
    return Dataset.from_json_lines(path, signature)


def json_lines(bad: bytes) -> Write:
    good = b'{"x": 1, "y": {"z": [1, 2]}}'
    return plain(b"\r\n".join([good, b"", bad, good]))


TEXTS = [
    Bad(
        "compressed lines read as plain ones",
        plain(gzip.compress(b"a\nb\n")),
        tf.data.TextLineDataset,
        DataLossError,
        ("it starts with a GZIP header",),
        0,
    ),
    Bad(
        "compressed lines cut off",
        damaged(plain(zlib.compress(b"abc\n" * 3)), cut(5)),
        lambda path: tf.data.TextLineDataset(path, "ZLIB"),
        DataLossError,
        ("at byte 9", "ends in the middle of compressed data"),
        9,
        (3, 0),
    ),
    Bad(
        "half a record",
        plain(b"h" + b"abc" * 2 + b"d"),
        lambda path: tf.data.FixedLengthRecordDataset(path, 3, header_bytes=1),
        InvalidArgumentError,
        ("has 7 bytes", "not a multiple of record_bytes, 3"),
    ),
    Bad("no CSV file", nothing, read_csv, NotFoundError, ("does not exist",)),
    *(
        Bad(
            f"a CSV record with {what}",
            plain(ends.join([b"a,b", b"1,2.5", bad, b"3,4.5", b""])),
            read_csv,
            InvalidArgumentError,
            ("line 3", *says),
            8 + 2 * len(ends),
            (1, 1),
        )
        for ends in (b"\n", b"\r\n")
        for what, bad, says in (
            ("a field that is no number", b"2,x", ("'x'", "float32")),
            ("an empty field", b",1", ("field 0 is empty",)),
            ("too few fields", b"2", ("expected 2 fields, but found 1",)),
            ("too many", b"2,3,4", ("expected 2 fields, but found 3",)),
            ("a quote inside", b'2,3"4', ("quote",)),
        )
    ),
    *(
        Bad(
            f"a JSON line {what}",
            json_lines(bad),
            read_json,
            InvalidArgumentError,
            ("line 3", *says),
            32,
            (1, 1),
        )
        for what, bad, says in (
            ("that is none", b'{"x": 1,', ("not valid JSON",)),
            ("that is no UTF-8", b'{"x": "\xff"}', ("byte 7 is not valid UTF-8",)),
            ("without a key", b'{"x": 1, "y": {}}', ("'y.z' is missing",)),
            ("with another kind of value", b'{"x": "1", "y": {"z": [1, 2]}}', ("'x'", "int64")),
            ("with another length", b'{"x": 1, "y": {"z": [1]}}', ("'y.z'", "shape (2,)")),
        )
    ),
]

# Tables: three rows, one in each row group or record batch.


def parquet(**columns: list[Any]) -> Write:
    return lambda path: pq.write_table(pa.table(columns), path, row_group_size=1)


def arrow(compression: str | None = None, **columns: list[Any]) -> Write:
    def write(path: str) -> None:
        table = pa.table(columns)
        options = ipc.IpcWriteOptions(compression=compression)
        with ipc.new_file(path, table.schema, options=options) as writer:
            for row in table.to_pylist():
                writer.write_table(pa.Table.from_pylist([row], table.schema))

    return write


def overwrite(old: bytes, new: bytes, *, number: int = 0) -> Damage:
    def damage(content: bytearray) -> None:
        place = -1
        for _ in range(number + 1):
            place = content.index(old, place + 1)
        content[place : place + len(new)] = new

    return damage


X = [1000001, 1000002, 1000003]
LZ4 = b"\x04\x22\x4d\x18"  # the magic number of each compressed buffer
LONG = [text * 50 for text in ("one ", "two ", "three ")]
NO_X = ("has no column 'xx'", "did you mean 'x'?")


def read_xx(reader: Callable[..., Dataset]) -> Callable[[str], Dataset]:
    return lambda path: reader(path, columns=["xx"])


TABLES = [
    *(
        bad
        for kind, reader, write in (
            ("Parquet", Dataset.from_parquet, parquet),
            ("Arrow", Dataset.from_arrow, arrow),
        )
        for bad in (
            Bad(f"no {kind} file", nothing, reader, NotFoundError, ("does not exist",), rows=None),
            Bad(
                f"a {kind} file cut off",
                damaged(write(x=X), cut(9)),
                reader,
                DataLossError,
                (f"is damaged, or not a valid {kind} file",),
                rows=None,
            ),
            Bad(
                f"a compressed {kind} file",
                lambda path: Path(path).write_bytes(gzip.compress(b"x" * 99)),
                reader,
                DataLossError,
                (f"not a valid {kind} file",),
                rows=None,
            ),
            Bad(
                f"a {kind} column that does not exist",
                write(x=X),
                read_xx(reader),
                InvalidArgumentError,
                NO_X,
                rows=None,
            ),
            Bad(
                f"a null in a {kind} file",
                write(x=[1, None, 3]),
                reader,
                InvalidArgumentError,
                ("row 1", "column 'x' is null"),
                SOME,
                (1, 1),
            ),
        )
    ),
    Bad(
        "a row group that is damaged",
        damaged(parquet(x=X), lambda content: content.__setitem__(slice(60, 75), bytes(15))),
        Dataset.from_parquet,
        DataLossError,
        ("row group 0", "at byte 4"),
        4,
        (0, 2),
    ),
    Bad(
        "a record batch that is damaged",
        damaged(arrow("lz4", x=LONG), overwrite(LZ4, bytes(4), number=2)),
        Dataset.from_arrow,
        DataLossError,
        ("record batch 1", "at byte"),
        SOME,
        (1, 1),
    ),
    Bad(
        "text in an Arrow file that is no UTF-8",
        damaged(arrow(x=["one", "two", "three"]), overwrite(b"two", b"t\xffo")),
        Dataset.from_arrow,
        DataLossError,
        ("record batch 1", "UTF8"),
        SOME,
        (1, 1),
    ),
]

# Samples in tar files, and images in them.


def tar(*parts: tuple[str, bytes]) -> Write:
    def write(path: str) -> None:
        with tarfile.open(path, "w") as file:
            for name, content in parts:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))

    return write


def read_tar(path: str) -> Dataset:
    return Dataset.from_webdataset(path, parts=["image"])


PIXELS = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
JPEG = tf.io.encode_jpeg(PIXELS).item()
PNG = tf.io.encode_png(PIXELS).item()


def images(good: bytes, bad: bytes) -> Write:
    return tar(("a.image", good), ("b.image", bad), ("c.image", good))


def decoded_by(decode: Callable[[Any], Any]) -> Callable[[str], Dataset]:
    return lambda path: read_tar(path).map(lambda sample: decode(sample["image"]))


def array_records(path: str) -> None:
    writer = ArrayRecordWriter(path, "group_size:1")
    for _ in range(3):
        writer.write(b"record")
    writer.close()


SAMPLES = [
    Bad("no tar file", nothing, read_tar, NotFoundError, ("does not exist",)),
    Bad(
        "a tar file that is compressed",
        plain(gzip.compress(b"x" * 9)),
        read_tar,
        DataLossError,
        ("not a complete tar file",),
    ),
    Bad(
        "a sample that lacks a part",
        tar(("a.image", JPEG), ("b.cls", b"1"), ("c.image", JPEG)),
        read_tar,
        InvalidArgumentError,
        ("sample 'b' has no 'image'",),
        SOME,
        (1, 1),
    ),
    *(
        Bad(
            what,
            images(good, bad),
            decoded_by(decode),
            InvalidArgumentError,
            (says, "row 1 of", "at byte"),
            SOME,
            (1, 1),
        )
        for what, good, bad, decode, says in (
            ("a JPEG cut off", JPEG, JPEG[:-60], tf.io.decode_jpeg, "is truncated"),
            (
                "a JPEG with other bytes",
                JPEG,
                b"\xff\xd8\xff" + bytes(99),
                tf.io.decode_jpeg,
                "Invalid JPEG",
            ),
            ("a PNG cut off", PNG, PNG[:-30], tf.io.decode_png, "Invalid PNG"),
            ("a bit of a PNG", PNG, PNG[:50] + b"~" + PNG[51:], tf.io.decode_png, "Invalid PNG"),
            ("no image at all", PNG, b"hello", tf.io.decode_image, "Unknown image file format"),
            ("an empty image", PNG, b"", tf.io.decode_image, "Input is empty"),
        )
    ),
    Bad(
        "an ArrayRecord file cut off",
        damaged(array_records, cut(100)),
        Dataset.from_array_record,
        DataLossError,
        ("ArrayRecord",),
    ),
]
