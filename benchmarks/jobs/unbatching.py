"""range, in batches of 32 that are cut up again, four times, then in batches of 1024."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, SMALL, TIMES, BATCH = 10**8, 32, 4, 1024


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
    dataset = tf.data.Dataset.range(ROWS)
    for _ in range(TIMES):
        dataset = dataset.batch(SMALL).unbatch()
    return rate(dataset.batch(BATCH, drop_remainder=True).repeat(), rows, seconds, step=4)


def limit(seconds: float) -> dict[str, float]:
    """Compute what comes out: the numbers."""

    def batches() -> Iterator[Any]:
        while True:
            for start in range(0, ROWS - BATCH + 1, BATCH):
                yield np.arange(start, start + BATCH)

    return rate(batches(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
