"""Rows of 10 numbers: flat_map to their elements, shuffled, batch 100."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, WIDTH, BATCH = 10_000, 10, 100


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
    numbers = data.from_tensor_slices(_numbers()).repeat()
    shuffled = numbers.flat_map(lambda row: data.from_tensor_slices(row).shuffle(WIDTH, seed=1))
    return rate(shuffled.batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Gather the columns in one order with NumPy."""

    def batches() -> Iterator[Any]:
        numbers, order = _numbers(), np.random.default_rng(1).permutation(WIDTH)
        while True:
            for start in range(0, ROWS, BATCH // WIDTH):
                yield numbers[start : start + BATCH // WIDTH].take(order, axis=1).reshape(-1)

    return rate(batches(), rows, seconds)


def _numbers() -> Any:
    return np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
