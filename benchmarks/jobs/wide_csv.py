"""A CSV file of 40 columns of floats, in batches of 1024."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import main, rate

ROWS, COLUMNS, BATCH = 50_000, 40, 1024


def written(folder: str) -> str:
    """Write the file, and return its name."""
    rows = np.random.default_rng(0).random((ROWS, COLUMNS)).round(6).tolist()
    lines = [",".join(map(str, row)) for row in rows]
    Path(folder, "wide.csv").write_text("\n".join(lines) + "\n")
    return f"{folder}/wide.csv"


def _read(tf: Any, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        rows = tf.data.experimental.CsvDataset(written(folder), [tf.float32] * COLUMNS)
        return rate(rows.batch(BATCH).repeat(), lambda batch: len(batch[0]), seconds)


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _read(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _read(tf, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Let pyarrow read the file, to NumPy."""
    import pyarrow as pa
    from pyarrow import csv

    names = list(map(str, range(COLUMNS)))
    named = csv.ReadOptions(column_names=names)
    typed = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()))

    def batches(name: str) -> Iterator[Any]:
        while True:
            for table in csv.open_csv(name, named, convert_options=typed):
                yield [column.to_numpy() for column in table.columns]

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(folder)), lambda batch: len(batch[0]), seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
