"""Bad input, one table row per kind: TFRecord files and examples. `bad_tables` has the other formats."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import evenfeed as tf
from evenfeed.errors import DataLossError, InvalidArgumentError, NotFoundError

Dataset = tf.data.Dataset
Damage = Callable[[bytearray], Any]
Write = Callable[[str], Any]
SOME: Any = object()  # an offset that the test does not know


@dataclass(frozen=True)
class Bad:
    """A row of the table.

    Attributes:
        what: What is wrong.
        write: Writes the file.
        read: Creates the dataset; raises at once if `rows` is None.
        error: The class of the error.
        says: What the error says besides the path of the file.
        offset: The byte that it names.
        rows: The number of good rows before and after the error.
    """

    what: str
    write: Write
    read: Callable[[str], Dataset]
    error: type[Exception]
    says: tuple[str, ...]
    offset: Any = None
    rows: tuple[int, int] | None = (0, 0)


def plain(content: bytes) -> Write:
    return lambda path: Path(path).write_bytes(content)


def damaged(write: Write, damage: Damage) -> Write:
    def written(path: str) -> None:
        write(path)
        content = bytearray(Path(path).read_bytes())
        damage(content)
        Path(path).write_bytes(content)

    return written


def flip(place: int) -> Damage:
    def damage(content: bytearray) -> None:
        content[place] ^= 1

    return damage


def cut(count: int) -> Damage:
    def damage(content: bytearray) -> None:
        del content[-count:]

    return damage


def nothing(_: str) -> None:
    pass


# TFRecord files: the framing adds 16 bytes to each payload.


def records(*payloads: bytes, compression: str = "") -> Write:
    def write(path: str) -> None:
        with tf.io.TFRecordWriter(path, compression) as writer:
            for payload in payloads:
                writer.write(payload)

    return write


def read_records(path: str) -> Dataset:
    return tf.data.TFRecordDataset(path)


def read_packed_records(path: str) -> Dataset:
    return tf.data.TFRecordDataset(path, "GZIP")


THREE = records(b"abcd", b"efgh", b"ijkl")
PACKED = records(*np.random.default_rng(0).bytes(9000).split(b"a"), compression="GZIP")

RECORDS = [
    Bad("no file", nothing, read_records, NotFoundError, ("does not exist",)),
    Bad(
        "a record cut off",
        damaged(THREE, cut(6)),
        read_records,
        DataLossError,
        ("byte 40", "is cut off"),
        40,
        (2, 0),
    ),
    Bad(
        "a length cut off",
        damaged(THREE, cut(15)),
        read_records,
        DataLossError,
        ("byte 40", "the record length is cut off"),
        40,
        (2, 0),
    ),
    Bad(
        "a bit of a length",
        damaged(THREE, flip(20)),
        read_records,
        DataLossError,
        ("byte 20", "checksum of the record length"),
        20,
        (1, 0),
    ),
    Bad(
        "a bit of the checksum of a length",
        damaged(THREE, flip(28)),
        read_records,
        DataLossError,
        ("byte 20", "checksum of the record length"),
        20,
        (1, 0),
    ),
    Bad(
        "a bit of a payload",
        damaged(THREE, flip(32)),
        read_records,
        DataLossError,
        ("byte 32", "checksum of the record is wrong"),
        32,
        (1, 1),
    ),
    Bad(
        "a bit of the checksum of a payload",
        damaged(THREE, flip(36)),
        read_records,
        DataLossError,
        ("byte 32", "checksum of the record is wrong"),
        32,
        (1, 1),
    ),
    Bad(
        "compressed records read as plain ones",
        PACKED,
        read_records,
        DataLossError,
        ("byte 0", "is this an uncompressed TFRecord file?"),
        0,
    ),
    Bad(
        "plain records read as compressed ones",
        THREE,
        read_packed_records,
        DataLossError,
        ("at byte 0", "GZIP"),
        0,
    ),
    Bad(
        "a compressed file without records",
        plain(gzip.compress(b"no records at all")),
        read_packed_records,
        DataLossError,
        ("byte 0", "checksum of the record length"),
        0,
    ),
]

# Examples, the second of which is bad.


def example(**features: list[Any]) -> bytes:
    kinds = {
        int: lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
        float: lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
    }
    made = {name: kinds[type(values[0])](values) for name, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


GOOD = example(x=[1.0, 2.0], y=[3])
WANTED = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}


def examples(bad: bytes) -> Write:
    return records(GOOD, bad, GOOD)


def read_examples(path: str) -> Dataset:
    return read_records(path).map(lambda record: tf.io.parse_single_example(record, WANTED))


def read_shuffled_examples(path: str) -> Dataset:
    records = read_records(path).shuffle(1).skip(0)
    return records.map(lambda record: tf.io.parse_single_example(record, WANTED))


def read_examples_in_turn(path: str) -> Dataset:
    records = tf.data.TFRecordDataset([path], num_parallel_reads=2)
    return records.map(lambda record: tf.io.parse_single_example(record, WANTED))


def read_batches_of_examples(path: str) -> Dataset:
    batches = read_records(path).batch(1)
    return batches.map(lambda records: tf.io.parse_example(records, WANTED))


AT = len(GOOD) + 16
PLACE = ("row 1 ", f"at byte {AT}")
EXAMPLES = [
    Bad(
        f"{what}, {reading.__name__}",
        examples(bad),
        reading,
        InvalidArgumentError,
        (*says, *PLACE),
        AT,
        (1, 1),
    )
    for reading in (
        read_examples,
        read_shuffled_examples,
        read_examples_in_turn,
        read_batches_of_examples,
    )
    for what, bad, says in (
        ("a feature that is missing", example(x=[1.0, 2.0]), ("'y' (int64) is required",)),
        (
            "a feature of another type",
            example(x=[1, 2], y=[3]),
            ("'x'", "has dtype int64, but float32"),
        ),
        ("a feature of another length", example(x=[1.0], y=[3]), ("'x'", "has 1 values")),
        ("a record that is no example", b"\xff" * 9, ("is not a valid Example",)),
    )
]
