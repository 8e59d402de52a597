"""pictures of 5 x 2 numbers: flat_map to their rows, and those to their numbers; batch 100."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, HEIGHT, WIDTH, BATCH = 10_000, 5, 2, 100


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
    pictures = data.from_tensor_slices(_numbers()).repeat()

    def numbers(picture: Any) -> Any:
        return data.from_tensor_slices(picture).flat_map(data.from_tensor_slices)

    return rate(pictures.flat_map(numbers).batch(BATCH), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Cut the array with NumPy."""

    def cut() -> Iterator[Any]:
        flat = _numbers().reshape(-1)
        while True:
            for start in range(0, len(flat), BATCH):
                yield flat[start : start + BATCH].copy()

    return rate(cut(), rows, seconds)


def _numbers() -> Any:
    shape = ROWS, HEIGHT, WIDTH
    return np.arange(ROWS * HEIGHT * WIDTH, dtype=np.float32).reshape(shape)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
