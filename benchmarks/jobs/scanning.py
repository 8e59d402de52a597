"""A running mean: scan with a state of two floats, in batches of 32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 10**7, 32


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
    def carried(state: Any, x: Any) -> Any:
        total, count = state[0] * 0.9 + tf.cast(x, tf.float32), state[1] + 1.0
        return (total, count), total / count

    dataset = tf.data.Dataset.range(ROWS).scan((np.float32(0), np.float32(0)), carried)
    return rate(dataset.batch(BATCH), rows, seconds, step=8)


def limit(seconds: float) -> dict[str, float]:
    """Compute it in a loop of Python."""

    def batches() -> Iterator[Any]:
        total, count = 0.0, 0.0
        for start in range(0, ROWS, BATCH):
            means: list[float] = []
            for x in range(start, start + BATCH):
                total, count = total * 0.9 + x, count + 1.0
                means.append(total / count)
            yield np.array(means, np.float32)

    return rate(batches(), rows, seconds, step=8)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
