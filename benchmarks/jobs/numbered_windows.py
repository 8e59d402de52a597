"""range: windows of 5, numbered; each a batch, to which its number is added; batch 32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, WIDTH, BATCH = 10**9, 5, 32


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
    def shifted(number: Any, window: Any) -> Any:
        return window.batch(WIDTH).map(lambda part: part + number)

    windows = tf.data.Dataset.range(ROWS).window(WIDTH, drop_remainder=True)
    return rate(windows.enumerate().flat_map(shifted).batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Cut and add with NumPy."""

    def cut() -> Iterator[Any]:
        first = 0
        while True:
            numbers = np.arange(first * WIDTH, (first + BATCH) * WIDTH).reshape(BATCH, WIDTH)
            yield numbers + np.arange(first, first + BATCH)[:, None]
            first += BATCH

    return rate(cut(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
