"""range: windows of 10 that start at each element, each as a batch; batch 32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, WIDTH, BATCH = 10**9, 10, 32


def rows(batch: Any) -> int:
    """Count the windows of a batch."""
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
    windows = tf.data.Dataset.range(ROWS).window(WIDTH, shift=1, drop_remainder=True)
    batches = windows.flat_map(lambda window: window.batch(WIDTH, drop_remainder=True))
    return rate(batches.batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Gather windows with NumPy."""

    def gathered() -> Iterator[Any]:
        first = 0
        while True:
            numbers = np.arange(first, first + BATCH + WIDTH - 1)
            yield np.lib.stride_tricks.sliding_window_view(numbers, WIDTH).copy()
            first += BATCH

    return rate(gathered(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
