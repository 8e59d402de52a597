"""Numbers of ten labels: group_by_window, each group a batch of 32 of one label."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, LABELS, BATCH = 20_000, 10, 32


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
    dataset = tf.data.Dataset.from_tensor_slices(_labelled()).repeat()
    grouped = dataset.group_by_window(
        key_func=lambda label, _: label,
        reduce_func=lambda _, group: group.batch(BATCH),
        window_size=BATCH,
    )
    return rate(grouped, rows, seconds, step=8)


def limit(seconds: float) -> dict[str, float]:
    """Sort the labels of all rows once, and gather the rows of each batch with NumPy."""

    def batches() -> Iterator[Any]:
        labels, numbers = _labelled()
        groups = [np.flatnonzero(labels == label) for label in range(LABELS)]
        while True:
            for label, group in enumerate(groups):
                for start in range(0, len(group) - BATCH + 1, BATCH):
                    yield np.full(BATCH, label), numbers.take(group[start : start + BATCH])

    return rate(batches(), rows, seconds, step=8)


def _labelled() -> tuple[Any, Any]:
    labels = np.random.default_rng(0).integers(0, LABELS, ROWS)
    return labels, np.arange(ROWS, dtype=np.float32)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
