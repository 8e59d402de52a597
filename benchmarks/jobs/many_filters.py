"""sample_from_datasets of 100 ranges, each with a filter of its own that keeps every seventh row."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, SOURCES = 10**7, 100


def rows(_: Any) -> int:
    """Count an element."""
    return 1


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds)


def _like_tf_data(tf: Any, seconds: float) -> dict[str, float]:
    sources = [
        tf.data.Dataset.range(ROWS).filter(lambda x: x % 7 == 3).repeat() for _ in range(SOURCES)
    ]
    return rate(tf.data.Dataset.sample_from_datasets(sources, seed=1), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Draw the sources with NumPy, many at a time."""

    def drawn() -> Iterator[int]:
        generator = np.random.default_rng(1)
        next_of = [3] * SOURCES
        while True:
            for source in generator.integers(SOURCES, size=1024).tolist():
                yield next_of[source]
                next_of[source] += 7

    return rate(drawn(), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
