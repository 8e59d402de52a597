"""The same lines in batches of 1024: split, and map each word to one of 1000 buckets by its hash."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate
from words import BATCH, LINES, lines, rows_of

BUCKETS = 1000


def batches(tf: Any) -> Any:
    """Write it as in TensorFlow's guides."""

    def buckets(text: Any) -> Any:
        return tf.strings.to_hash_bucket_fast(tf.strings.split(text), BUCKETS)

    return tf.data.Dataset.from_tensor_slices(lines()).repeat().batch(BATCH).map(buckets)


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return rate(batches(tf), rows_of, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return rate(batches(tf), rows_of, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Split each line in Python, and use Python's own hash."""
    texts = [line.encode() for line in lines()]

    def found() -> Iterator[Any]:
        while True:
            for start in range(0, LINES - BATCH, BATCH):
                rows = [text.split() for text in texts[start : start + BATCH]]
                hashed = np.array([hash(word) for row in rows for word in row]) % BUCKETS
                yield hashed, np.cumsum([len(row) for row in rows])

    return rate(found(), lambda _: BATCH, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
