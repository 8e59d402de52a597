"""200 000 rows of 0 to 19 numbers from memory: shuffle 10 000, batch 1024, to_tensor."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate
from words import rows_of

ROWS, LONGEST, BUFFER, BATCH = 200_000, 19, 10_000, 1024


def values() -> tuple[Any, Any]:
    """Return the numbers of all rows, and the length of each row."""
    random = np.random.default_rng(0)
    lengths = random.integers(0, LONGEST + 1, ROWS)
    return random.integers(0, 1000, int(lengths.sum())), lengths


def batches(tf: Any) -> Any:
    """Write it as in TensorFlow's guides."""
    rows = tf.data.Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(*values()))
    return rows.shuffle(BUFFER).repeat().batch(BATCH).map(lambda batch: batch.to_tensor())


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return rate(batches(tf), rows_of, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return rate(batches(tf), rows_of, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Gather shuffled rows with NumPy."""
    flat, lengths = values()
    starts, random = np.cumsum(lengths) - lengths, np.random.default_rng(0)

    def found() -> Iterator[Any]:
        while True:
            order = random.permutation(ROWS)
            for first in range(0, ROWS - BATCH, BATCH):
                rows = order[first : first + BATCH]
                counts = lengths[rows]
                inside = np.arange(counts.max()) < counts[:, None]
                dense = np.zeros(inside.shape, flat.dtype)
                within = np.nonzero(inside)[1]
                dense[inside] = flat[np.repeat(starts[rows], counts) + within]
                yield dense

    return rate(found(), len, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
