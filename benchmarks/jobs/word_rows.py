"""The same words, line by line: lower case, split, look up, then `ragged_batch` of 1024."""

from typing import Any

from timing import main, rate
from words import BATCH, limit, lines, rows_of, table


def batches(tf: Any) -> Any:
    """Write it as in TensorFlow's guides."""
    known = table(tf)

    def ids(text: Any) -> Any:
        return known.lookup(tf.strings.split(tf.strings.lower(text)))

    return tf.data.Dataset.from_tensor_slices(lines()).repeat().map(ids).ragged_batch(BATCH)


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return rate(batches(tf), rows_of, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return rate(batches(tf), rows_of, seconds, step=4)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
