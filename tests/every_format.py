"""A small file of every format: written, and read as a dataset."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow
import pyarrow.parquet
from array_record.python.array_record_module import ArrayRecordWriter

import evenfeed as tf

Dataset = tf.data.Dataset
ROWS: Final = 8  # of each file


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        write: Writes rows with these numbers to a path.
        read: Makes a dataset of all rows of some paths.
        checks: Whether a changed byte is noticed wherever it is.
    """

    write: Callable[[str, Sequence[int]], Any]
    read: Callable[[list[str]], Dataset]
    checks: bool = False


def _records(kind: str) -> Format:
    def write(path: str, numbers: Sequence[int]) -> None:
        with tf.io.TFRecordWriter(path, kind) as writer:
            for number in numbers:
                writer.write(b"record %d" % number * (1 + number % 3))

    return Format(write, lambda paths: tf.data.TFRecordDataset(paths, kind), checks=True)


def _bytes(row: str, read: Callable[[list[str], str], Dataset], kind: str) -> Format:
    packed = {"": bytes, "GZIP": partial(gzip.compress, mtime=0), "ZLIB": zlib.compress}[kind]

    def write(path: str, numbers: Sequence[int]) -> None:
        Path(path).write_bytes(packed("".join(row % number for number in numbers).encode()))

    return Format(write, lambda paths: read(paths, kind), checks=bool(kind))


def _csv(paths: list[str], kind: str) -> Dataset:
    return tf.data.experimental.CsvDataset(paths, [tf.int64, tf.string], compression_type=kind)


def _json(paths: list[str], kind: str) -> Dataset:
    return Dataset.from_json_lines(paths, {"x": tf.TensorSpec([], tf.int64)}, kind)


def _fixed(paths: list[str], kind: str) -> Dataset:
    return tf.data.FixedLengthRecordDataset(paths, 4, compression_type=kind)


def _table(numbers: Sequence[int]) -> pyarrow.Table:
    return pyarrow.table({"x": list(numbers), "y": [f"row {number}" for number in numbers]})


def _write_parquet(path: str, numbers: Sequence[int]) -> None:
    pyarrow.parquet.write_table(_table(numbers), path, row_group_size=3)


def _arrow(open_writer: Callable[..., Any]) -> Format:
    def write(path: str, numbers: Sequence[int]) -> None:
        table = _table(numbers)
        with open_writer(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)

    return Format(write, Dataset.from_arrow)


def _write_tar(path: str, numbers: Sequence[int]) -> None:
    with tarfile.open(path, "w") as tar:
        for number in numbers:
            member, content = tarfile.TarInfo(f"{number:03}.txt"), b"text %d" % number
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def _write_array_records(path: str, numbers: Sequence[int]) -> None:
    writer = ArrayRecordWriter(path, "group_size:1")
    for number in numbers:
        writer.write(b"record %d" % number)
    writer.close()


def _saved(kind: str | None) -> Format:
    """Saved datasets, of which the one file of pages gets the name that the test knows."""

    def write(path: str, numbers: Sequence[int]) -> None:
        Dataset.from_tensor_slices(np.array(numbers)).save(f"{path}-saved", kind)
        (pages,) = Path(f"{path}-saved").glob("*/*.pages")
        Path(path).unlink(missing_ok=True)
        Path(path).hardlink_to(pages)

    def read(paths: list[str]) -> Dataset:
        whole = Dataset.load(f"{paths[0]}-saved")
        for path in paths[1:]:
            whole = whole.concatenate(Dataset.load(f"{path}-saved"))
        return whole

    return Format(write, read, checks=True)


FORMATS: Final = {
    **{f"records {kind}": _records(kind) for kind in ("", "GZIP", "ZLIB")},
    **{
        f"{name} {kind}": _bytes(row, read, kind)
        for kind in ("", "GZIP", "ZLIB")
        for name, row, read in (
            ("lines", "line %d\n", tf.data.TextLineDataset),
            ("csv", "%d,a\n", _csv),
            ("json", '{"x": %d}\n', _json),
            ("fixed", "%04d", _fixed),
        )
    },
    "parquet": Format(_write_parquet, Dataset.from_parquet),
    "arrow": _arrow(pyarrow.ipc.new_file),
    "arrow stream": _arrow(pyarrow.ipc.new_stream),
    "webdataset": Format(_write_tar, lambda paths: Dataset.from_webdataset(paths, ["txt"])),
    "array_record": Format(_write_array_records, Dataset.from_array_record, checks=True),
    "saved": _saved(None),
    "saved GZIP": _saved("GZIP"),
}


def written(name: str, folder: Path, files: int = 2) -> list[str]:
    """Write files of a format, and return their paths: rows 0 to 7, 8 to 15 and so on."""
    paths = [str(folder / f"{number}.file") for number in range(files)]
    for number, path in enumerate(paths):
        FORMATS[name].write(path, range(number * ROWS, (number + 1) * ROWS))
    return paths
