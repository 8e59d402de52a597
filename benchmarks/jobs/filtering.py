"""range(10^8), mapped by x * 3 + 1, filtered by x % 2 == 0, in batches of 1024. Rows are those of the range."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH, CHUNK = 10**8, 1024, 1 << 14


def rows(batch: Any) -> int:
    """Count the rows that a batch was made of: every other one stays."""
    return 2 * len(batch)


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds, 32)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds, 1)


def _like_tf_data(tf: Any, seconds: float, step: int) -> dict[str, float]:
    dataset = tf.data.Dataset.range(ROWS).map(lambda x: x * 3 + 1)
    dataset = dataset.filter(lambda x: x % 2 == 0).batch(BATCH).repeat()
    return rate(dataset, rows, seconds, step)


def limit(seconds: float) -> dict[str, float]:
    """Compute in place with NumPy, as many rows at a time as stay in the cache."""

    def kept() -> Iterator[Any]:
        base = np.arange(CHUNK)
        while True:
            for start in range(0, ROWS, CHUNK):
                x = base + start
                x *= 3
                x += 1
                yield x[x % 2 == 0]

    return rate(kept(), rows, seconds)


def grain(seconds: float) -> dict[str, float]:
    """Let Grain read by position."""
    import grain

    dataset = grain.MapDataset.range(ROWS).map(lambda x: x * 3 + 1)
    dataset = dataset.to_iter_dataset().filter(lambda x: x % 2 == 0).batch(BATCH)
    return rate(dataset, rows, seconds, step=1)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow, "Grain": grain}

if __name__ == "__main__":
    main(VARIANTS)
