"""numpy_function with hardly any work in it, for each row in two threads, in batches of 64."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH, CALLS = 10**7, 64, 2


def added(x: Any) -> Any:
    """Take hardly any time: what is measured is the call."""
    return x + np.int64(1)


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
    def call(x: Any) -> Any:
        return tf.numpy_function(added, [x], tf.int64)

    dataset = tf.data.Dataset.range(ROWS).map(call, CALLS)
    return rate(dataset.batch(BATCH), rows, seconds, step=8)


def limit(seconds: float) -> dict[str, float]:
    """Call it in a loop."""

    def batches() -> Iterator[Any]:
        for start in range(0, ROWS, BATCH):
            yield np.array([added(x) for x in np.arange(start, start + BATCH)])

    return rate(batches(), rows, seconds, step=8)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
