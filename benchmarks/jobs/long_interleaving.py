"""eight long ranges: interleave their numbers one by one, batch 32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

RANGES, LENGTH, BATCH = 8, 10**9, 32


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

    def long(x: Any) -> Any:
        return data.range(x * LENGTH, (x + 1) * LENGTH)

    mixed = data.range(RANGES).interleave(long, cycle_length=RANGES)
    return rate(mixed.batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Add up numbers with NumPy."""

    def added() -> Iterator[Any]:
        starts = np.arange(RANGES) * LENGTH
        first, each = 0, BATCH // RANGES
        while True:
            yield (np.arange(first, first + each)[:, None] + starts).ravel()
            first += each

    return rate(added(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
