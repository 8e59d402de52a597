"""Five rows with a filter and a map, repeated: batch 64."""

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 5, 64


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
    dataset = tf.data.Dataset.range(ROWS).filter(lambda x: x > 1).map(lambda x: x * 2)
    return rate(dataset.repeat().batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Take numbers from a cycle of plain Python."""

    def batches() -> Iterator[Any]:
        source = cycle([4, 6, 8])
        while True:
            yield np.array(list(islice(source, BATCH)))

    return rate(batches(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
