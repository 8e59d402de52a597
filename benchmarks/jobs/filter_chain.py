"""Thirty filters in a row, in batches of 1024; the limit is one filter with thirty conditions."""

from typing import Any

from timing import main, rate

ROWS, FILTERS, BATCH = 10**9, 30, 1024


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
    dataset = tf.data.Dataset.range(ROWS)
    for number in range(FILTERS):
        dataset = dataset.filter(lambda x, number=number: x != number)
    return rate(dataset.batch(BATCH), rows, seconds, step=64)


def limit(seconds: float) -> dict[str, float]:
    """Write the thirty conditions in one filter."""
    import evenfeed as tf

    def kept(x: Any) -> Any:
        found = x != 0
        for number in range(1, FILTERS):
            found &= x != number
        return found

    dataset = tf.data.Dataset.range(ROWS).filter(kept)
    return rate(dataset.batch(BATCH), rows, seconds, step=64)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
