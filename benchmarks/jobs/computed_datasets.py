"""range: flat_map to datasets of computed values, batch 100."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, LENGTH, BATCH = 10_000, 10, 100


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
    numbers = data.range(ROWS).repeat()

    def counted(number: Any) -> Any:
        return data.range(number * LENGTH, (number + 1) * LENGTH)

    return rate(numbers.flat_map(counted).batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Count with NumPy."""

    def count() -> Iterator[Any]:
        while True:
            for start in range(0, ROWS * LENGTH, BATCH):
                yield np.arange(start, start + BATCH)

    return rate(count(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
