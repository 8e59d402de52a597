"""range(10^9), of which a filter keeps one row in 20 000. Rows are those that it looks at."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, EACH, CHUNK = 10**9, 20_000, 1 << 14


def rows(_: Any) -> int:
    """Count the rows up to the next one that is kept."""
    return EACH


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds)


def _like_tf_data(tf: Any, seconds: float) -> dict[str, float]:
    dataset = tf.data.Dataset.range(ROWS).filter(lambda x: x % EACH == 5)
    return rate(dataset.repeat(), rows, seconds, step=1)


def limit(seconds: float) -> dict[str, float]:
    """Compute with NumPy, as many rows at a time as stay in the cache."""

    def kept() -> Iterator[Any]:
        base = np.arange(CHUNK)
        while True:
            for start in range(0, ROWS, CHUNK):
                x = base + start
                yield from x[x % EACH == 5]

    return rate(kept(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
