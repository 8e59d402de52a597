"""Sequences of 1 to 199 numbers in a cache: bucket_by_sequence_length in batches of 32."""

from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 5000, 32


def sequences() -> list[Any]:
    """Return the data."""
    lengths = np.random.default_rng(0).integers(1, 200, ROWS)
    return [np.arange(length) for length in lengths]


def rows(_: Any) -> int:
    """Count the rows of a batch."""
    return BATCH


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds)


def _like_tf_data(tf: Any, seconds: float) -> dict[str, float]:
    data = sequences()
    spec = tf.TensorSpec([None], tf.int64)
    dataset = tf.data.Dataset.from_generator(lambda: iter(data), output_signature=spec).cache()
    buckets = dataset.repeat().bucket_by_sequence_length(
        lambda row: tf.shape(row)[0], [25, 50, 100, 150], [BATCH] * 5
    )
    return rate(buckets, rows, seconds, step=8)


def limit(seconds: float) -> dict[str, float]:
    """Sort rows into lists, and copy each full list into an array."""

    def batches() -> Any:
        data, groups = sequences(), [[] for _ in range(5)]
        while True:
            for row in data:
                group = groups[np.searchsorted([25, 50, 100, 150], len(row), "right")]
                group.append(row)
                if len(group) == BATCH:
                    batch = np.zeros((BATCH, max(map(len, group))), np.int64)
                    for index, one in enumerate(group):
                        batch[index, : len(one)] = one
                    group.clear()
                    yield batch

    return rate(batches(), rows, seconds, step=8)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
