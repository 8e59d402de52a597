"""A million rows of a number, two floats and a tensor of 16 in Parquet files, in batches of 1024."""

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

FILES, ROWS, BATCH = 4, 250_000, 1024
COLUMNS = ["id", "x", "y", "features"]


def written(folder: str) -> list[str]:
    """Write the files, and return their names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"{folder}/{number}.parquet" for number in range(FILES)]
    for name in names:
        features = pa.array(rng.random(ROWS * 16, np.float32))
        table = {
            "id": np.arange(ROWS),
            "x": rng.random(ROWS, np.float32),
            "y": rng.random(ROWS),
            "unused": rng.random(ROWS),
            "features": pa.FixedSizeListArray.from_arrays(features, 16),
        }
        pq.write_table(pa.table(table), name, row_group_size=50_000)
    return names


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it in one line."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        rows = tf.data.Dataset.from_parquet(written(folder), columns=COLUMNS)
        return rate(rows.batch(BATCH).repeat(), lambda batch: len(batch["id"]), seconds)


def limit(seconds: float) -> dict[str, float]:
    """Let pyarrow.dataset read the same columns, to NumPy."""
    import pyarrow.dataset as ds

    def batches(names: list[str]) -> Iterator[Any]:
        while True:
            for batch in ds.dataset(names).to_batches(columns=COLUMNS, batch_size=BATCH):
                flat = batch.column("features").flatten().to_numpy()
                yield [
                    *(batch.column(name).to_numpy() for name in COLUMNS[:3]),
                    flat.reshape(-1, 16),
                ]

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(folder)), lambda batch: len(batch[0]), seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit}

if __name__ == "__main__":
    main(VARIANTS)
