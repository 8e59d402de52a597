"""Small tuples of a Python generator, in batches of 256."""

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np
from timing import main, rate

BATCH = 256


def pairs() -> Iterator[tuple[int, float]]:
    """Yield a whole number and a fraction, for ever."""
    for number in count():
        yield number, number * 0.5


def rows(batch: Any) -> int:
    """Count the rows of a batch."""
    return len(batch[0])


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds, 1)


def _like_tf_data(tf: Any, seconds: float, step: int = 32) -> dict[str, float]:
    spec = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.float32)
    dataset = tf.data.Dataset.from_generator(pairs, output_signature=spec)
    return rate(dataset.batch(BATCH), rows, seconds, step)


def limit(seconds: float) -> dict[str, float]:
    """Turn rows into columns with what Python and NumPy have."""

    def batches() -> Iterator[Any]:
        elements = pairs()
        while True:
            first, second = zip(*islice(elements, BATCH), strict=True)
            yield np.fromiter(first, np.int64, BATCH), np.fromiter(second, np.float32, BATCH)

    return rate(batches(), rows, seconds)


def torch(seconds: float) -> dict[str, float]:
    """Let a DataLoader iterate."""
    from torch.utils.data import DataLoader, IterableDataset

    class Pairs(IterableDataset):
        def __iter__(self) -> Iterator[tuple[int, float]]:
            return pairs()

    return rate(DataLoader(Pairs(), batch_size=BATCH), rows, seconds, step=1)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow, "torch": torch}

if __name__ == "__main__":
    main(VARIANTS)
