"""sample_from_datasets of a short and a long dataset, batch 100."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

SHORT, LONG, BATCH = 1_000, 20_000, 100


def rows(batch: Any) -> int:
    """Count the rows of a batch."""
    return len(batch)


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds)


def _like_tf_data(tf: Any, seconds: float) -> dict[str, float]:
    data = tf.data.Dataset
    parts = [data.range(SHORT), data.range(LONG)]
    return rate(data.sample_from_datasets(parts, seed=1).repeat().batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Draw with NumPy, without an end."""

    def draw() -> Iterator[Any]:
        generator, done = np.random.default_rng(1), np.zeros(2, np.int64)
        while True:
            choices = generator.integers(0, 2, BATCH)
            batch = np.empty(BATCH, np.int64)
            for number in range(2):
                places = choices == number
                count = int(places.sum())
                batch[places] = np.arange(done[number], done[number] + count)
                done[number] += count
            yield batch

    return rate(draw(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
