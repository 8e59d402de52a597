"""range: a map that adds noise by tf.random with a seed, batch 256."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, WIDTH, BATCH = 10**9, 8, 256


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
    def noisy(x: Any) -> Any:
        return tf.cast(x, tf.float32) + tf.random.normal([WIDTH], seed=3)

    dataset = tf.data.Dataset.range(ROWS).map(noisy, num_parallel_calls=tf.data.AUTOTUNE)
    return rate(dataset.batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Draw whole batches with NumPy."""

    def drawn() -> Iterator[Any]:
        generator, first = np.random.default_rng(3), 0
        while True:
            numbers = np.arange(first, first + BATCH, dtype=np.float32)[:, None]
            yield numbers + generator.standard_normal((BATCH, WIDTH), np.float32)
            first += BATCH

    return rate(drawn(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
