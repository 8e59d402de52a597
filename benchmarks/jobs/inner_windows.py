"""range: windows of 6, each cut into windows of 3 as batches; batch 32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, OUTER, WIDTH, BATCH = 10**9, 6, 3, 32
EACH = OUTER - WIDTH + 1  # the windows of a window


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
    def inner(window: Any) -> Any:
        windows = window.window(WIDTH, shift=1, drop_remainder=True)
        return windows.flat_map(lambda one: one.batch(WIDTH, drop_remainder=True))

    outer = tf.data.Dataset.range(ROWS).window(OUTER, drop_remainder=True)
    return rate(outer.flat_map(inner).batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Gather windows with NumPy."""

    def gathered() -> Iterator[Any]:
        count = BATCH // EACH
        first = 0
        while True:
            numbers = np.arange(first, first + count * OUTER).reshape(count, OUTER)
            windows = np.lib.stride_tricks.sliding_window_view(numbers, WIDTH, axis=1)
            yield windows.reshape(-1, WIDTH).copy()
            first += count * OUTER

    return rate(gathered(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
