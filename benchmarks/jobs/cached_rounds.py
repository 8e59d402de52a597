"""Rows of 8 numbers from a generator, in a cache: shuffle 1000, sine, batch 32, repeat."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, WIDTH, BUFFER, BATCH = 5000, 8, 1000, 32


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
    data, spec = _numbers(), tf.TensorSpec([WIDTH], tf.float32)
    dataset = tf.data.Dataset.from_generator(lambda: iter(data), output_signature=spec).cache()
    batches = dataset.shuffle(BUFFER).map(lambda x: tf.sin(x) * 2).batch(BATCH)
    return rate(batches.repeat(), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Gather from a permutation of all rows with NumPy."""

    def batches() -> Iterator[Any]:
        data, chance = _numbers(), np.random.default_rng(0)
        while True:
            order = chance.permutation(ROWS)
            for start in range(0, ROWS, BATCH):
                yield np.sin(data.take(order[start : start + BATCH], axis=0)) * 2

    return rate(batches(), rows, seconds)


def _numbers() -> Any:
    return np.random.default_rng(0).random((ROWS, WIDTH), dtype=np.float32)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
