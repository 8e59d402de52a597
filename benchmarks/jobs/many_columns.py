"""Rows of 500 columns with names, in batches of 1024."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, COLUMNS, BATCH = 100_000, 500, 1024


def columns() -> dict[str, Any]:
    """Return the data."""
    return {f"feature_{number}": np.arange(ROWS) for number in range(COLUMNS)}


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
    dataset = tf.data.Dataset.from_tensor_slices(columns()).repeat()
    return rate(dataset.batch(BATCH), rows, seconds, step=1)


def limit(seconds: float) -> dict[str, float]:
    """Cut NumPy arrays."""

    def batches() -> Iterator[Any]:
        data = columns()
        while True:
            for start in range(0, ROWS - BATCH, BATCH):
                yield {name: column[start : start + BATCH] for name, column in data.items()}

    return rate(batches(), rows, seconds, step=1)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
