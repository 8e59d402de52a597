"""A range with one map after the other: batch 1024, over the number of maps."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring import main, rate

ROWS, BATCH = 10**9, 1024


def added(x: Any) -> Any:
    """Compute a row, or a batch of rows."""
    return x + 1


def evenfeed(depth: int, seconds: float) -> float:
    """Write it like tf.data."""
    import evenfeed as tf

    dataset = tf.data.Dataset.range(ROWS)
    for _ in range(depth):
        dataset = dataset.map(added)
    return rate(dataset.batch(BATCH), len, seconds)


def limit(depth: int, seconds: float) -> float:
    """Add in place with NumPy."""

    def batches() -> Iterator[Any]:
        for start in range(0, ROWS, BATCH):
            batch = np.arange(start, start + BATCH)
            for _ in range(depth):
                batch += 1
            yield batch

    return rate(batches(), len, seconds)


def tf_data(depth: int, seconds: float) -> float:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(ROWS)
    for _ in range(depth):
        dataset = dataset.map(added, num_parallel_calls=tf.data.AUTOTUNE)
    return rate(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE), len, seconds)


def tf_data_by_hand(depth: int, seconds: float) -> float:
    """Map whole batches."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(ROWS).batch(BATCH)
    for _ in range(depth):
        dataset = dataset.map(added)
    return rate(dataset.prefetch(tf.data.AUTOTUNE), len, seconds)


def grain(depth: int, seconds: float) -> float:
    """Let Grain read rows by position."""
    import grain

    dataset = grain.MapDataset.range(ROWS)
    for _ in range(depth):
        dataset = dataset.map(added)
    return rate(dataset.batch(BATCH).to_iter_dataset(), len, seconds)


def grain_by_hand(depth: int, seconds: float) -> float:
    """Let Grain map whole batches."""
    import grain

    dataset = grain.MapDataset.range(0, ROWS, BATCH).map(lambda n: np.arange(n, n + BATCH))
    for _ in range(depth):
        dataset = dataset.map(added)
    return rate(dataset.to_iter_dataset(), len, seconds)


VARIANTS = {
    "evenfeed": evenfeed,
    "NumPy": limit,
    "tf.data": tf_data,
    "tf.data by hand": tf_data_by_hand,
    "Grain": grain,
    "Grain by hand": grain_by_hand,
}

if __name__ == "__main__":
    main(VARIANTS)
