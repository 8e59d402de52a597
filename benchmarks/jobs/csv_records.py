"""Records of two whole numbers, two floats and text in four CSV files, in batches of 1024."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import main, rate

FILES, ROWS, BATCH = 4, 100_000, 1024


def written(folder: str) -> list[str]:
    """Write the files, and return their names."""
    names = [f"{folder}/{number}.csv" for number in range(FILES)]
    for name in names:
        rows = (
            f"{row},{row / 7:.5f},{row / 3:.9f},name {row % 99},{row % 5}\n" for row in range(ROWS)
        )
        Path(name).write_text("".join(rows))
    return names


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _read(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _read(tf, seconds)


def _read(tf: Any, seconds: float) -> dict[str, float]:
    kinds = [tf.int64, tf.float32, tf.float64, tf.string, tf.int32]
    with tempfile.TemporaryDirectory() as folder:
        records = tf.data.experimental.CsvDataset(written(folder), kinds)
        return rate(records.batch(BATCH).repeat(), lambda batch: len(batch[0]), seconds)


def limit(seconds: float) -> dict[str, float]:
    """Read each file whole, cut it once, and convert its columns."""

    def batches(names: list[str]) -> Iterator[Any]:
        while True:
            for name in names:
                fields = Path(name).read_bytes().replace(b"\n", b",").split(b",")
                columns = [
                    np.array(list(map(int, fields[:-1:5]))),
                    np.array(list(map(float, fields[1::5])), np.float32),
                    np.array(list(map(float, fields[2::5]))),
                    np.array(fields[3::5], object),
                    np.array(list(map(int, fields[4::5])), np.int32),
                ]
                for start in range(0, ROWS, BATCH):
                    yield [column[start : start + BATCH] for column in columns]

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(folder)), lambda batch: len(batch[0]), seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
