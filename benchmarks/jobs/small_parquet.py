"""2,000 Parquet files of ten rows of a number, two floats and a text, in batches of 128."""

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import main, rate

FILES, ROWS, BATCH = 2000, 10, 128
COLUMNS = ["id", "name", "x", "y"]
Order = Callable[[Any], Any]


def written(folder: str) -> list[str]:
    """Write the files, and return their names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"{folder}/{number:05}.parquet" for number in range(FILES)]
    rng = np.random.default_rng(0)
    for name in names:
        columns = [np.arange(ROWS), [f"name {row}" for row in range(ROWS)]]
        columns += [rng.random(ROWS, np.float32), rng.random(ROWS)]
        pq.write_table(pa.table(columns, COLUMNS), name)
    return names


def variants(order: Order) -> dict[str, Callable[[float], dict[str, float]]]:
    """Return a job that reads the rows in some order: evenfeed, and what pyarrow reads file by file."""

    def evenfeed(seconds: float) -> dict[str, float]:
        import evenfeed as tf

        with tempfile.TemporaryDirectory() as folder:
            rows = order(tf.data.Dataset.from_parquet(written(folder)))
            return rate(rows.batch(BATCH).repeat(), lambda batch: len(batch["id"]), seconds)

    return {"evenfeed": evenfeed, "limit": limit}


def limit(seconds: float) -> dict[str, float]:
    """Let pyarrow read each file, to NumPy, in the order of the files."""
    import pyarrow.parquet as pq

    def tables(names: list[str]) -> Iterator[Any]:
        while True:
            for name in names:
                with pq.ParquetFile(name) as file:
                    table = file.read_row_group(0, COLUMNS, use_threads=False)
                yield [table.column(name).to_numpy() for name in COLUMNS]

    with tempfile.TemporaryDirectory() as folder:
        return rate(tables(written(folder)), lambda table: len(table[0]), seconds)


VARIANTS = variants(lambda rows: rows)

if __name__ == "__main__":
    main(VARIANTS)
