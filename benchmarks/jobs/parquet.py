"""A million rows of a number, two floats and a tensor of 16 in Parquet files, in batches of 1024."""

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

FILES, ROWS, ROWS_TOGETHER, BATCH = 4, 250_000, 50_000, 1024
COLUMNS = ["id", "x", "y", "features"]


def written(folder: str) -> list[str]:
    """Write the files, and return their names."""
    import pyarrow.parquet as pq

    names = [f"{folder}/{number}.parquet" for number in range(FILES)]
    for name, table in zip(names, tables(), strict=True):
        pq.write_table(table, name, row_group_size=ROWS_TOGETHER)
    return names


def tables() -> Iterator[Any]:
    """Yield what stands in each file."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    for _ in range(FILES):
        features = pa.array(rng.random(ROWS * 16, np.float32))
        yield pa.table(
            {
                "id": np.arange(ROWS),
                "x": rng.random(ROWS, np.float32),
                "y": rng.random(ROWS),
                "unused": rng.random(ROWS),
                "features": pa.FixedSizeListArray.from_arrays(features, 16),
            }
        )


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it in one line."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        rows = tf.data.Dataset.from_parquet(written(folder), columns=COLUMNS)
        return rate(rows.batch(BATCH).repeat(), lambda batch: len(batch["id"]), seconds)


def limit(seconds: float) -> dict[str, float]:
    """Let pyarrow.dataset read the same columns, to NumPy."""
    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(folder), "parquet"), lambda batch: len(batch[0]), seconds)


def batches(names: list[str], kind: str) -> Iterator[Any]:
    """Yield batches of pyarrow's, as NumPy arrays, without end."""
    import pyarrow.dataset as ds

    while True:
        dataset = ds.dataset(names, format=kind)
        for batch in dataset.to_batches(columns=COLUMNS, batch_size=BATCH):
            flat = batch.column("features").flatten().to_numpy()
            yield [*(batch.column(name).to_numpy() for name in COLUMNS[:3]), flat.reshape(-1, 16)]


VARIANTS = {"evenfeed": evenfeed, "limit": limit}

if __name__ == "__main__":
    main(VARIANTS)
