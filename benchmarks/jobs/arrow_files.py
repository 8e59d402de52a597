"""The rows of the Parquet job in Arrow files that are not compressed, in batches of 1024."""

import tempfile

from parquet import BATCH, COLUMNS, FILES, ROWS_TOGETHER, batches, tables
from timing import main, rate


def written(folder: str) -> list[str]:
    """Write the files, and return their names."""
    from pyarrow import ipc

    names = [f"{folder}/{number}.arrow" for number in range(FILES)]
    for name, table in zip(names, tables(), strict=True):
        with ipc.new_file(name, table.schema) as writer:
            writer.write_table(table, max_chunksize=ROWS_TOGETHER)
    return names


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it in one line."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        rows = tf.data.Dataset.from_arrow(written(folder), columns=COLUMNS)
        return rate(rows.batch(BATCH).repeat(), lambda batch: len(batch["id"]), seconds)


def limit(seconds: float) -> dict[str, float]:
    """Let pyarrow.dataset read the same columns, to NumPy."""
    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(folder), "ipc"), lambda batch: len(batch[0]), seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit}

if __name__ == "__main__":
    main(VARIANTS)
