"""A zip of 200 ranges: batch 256."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, PARTS, BATCH = 10**9, 200, 256


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
    parts = tuple(tf.data.Dataset.range(ROWS) for _ in range(PARTS))
    return rate(tf.data.Dataset.zip(parts).batch(BATCH), rows, seconds, step=8)


def limit(seconds: float) -> dict[str, float]:
    """Make each part of a batch with NumPy."""

    def batches() -> Iterator[Any]:
        for start in range(0, ROWS, BATCH):
            yield tuple([np.arange(start, start + BATCH) for _ in range(PARTS)])

    return rate(batches(), rows, seconds, step=8)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
