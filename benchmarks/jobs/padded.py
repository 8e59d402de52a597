"""Sequences of 1 to 59 numbers in a cache: shuffle 1000, padded_batch 32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BUFFER, BATCH = 5000, 1000, 32


def sequences() -> list[Any]:
    """Return sequences of different lengths."""
    chance = np.random.default_rng(0)
    return [chance.integers(0, 100, size=chance.integers(1, 60)) for _ in range(ROWS)]


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds)


def _like_tf_data(tf: Any, seconds: float) -> dict[str, float]:
    held, spec = sequences(), tf.TensorSpec([None], tf.int64)
    dataset = tf.data.Dataset.from_generator(lambda: iter(held), output_signature=spec).cache()
    return rate(dataset.shuffle(BUFFER).padded_batch(BATCH).repeat(), len, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Pad with NumPy, from a permutation of all rows."""
    held, chance = sequences(), np.random.default_rng(0)

    def batches() -> Iterator[Any]:
        while True:
            order = chance.permutation(ROWS)
            for start in range(0, ROWS, BATCH):
                chosen = [held[row] for row in order[start : start + BATCH].tolist()]
                lengths = np.array(list(map(len, chosen)))
                batch = np.zeros((len(chosen), lengths.max()), np.int64)
                batch[np.arange(batch.shape[1]) < lengths[:, None]] = np.concatenate(chosen)
                yield batch

    return rate(batches(), len, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
