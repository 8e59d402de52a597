"""Thirty maps in a row, in batches of 1024; the limit is one map of the composed function."""

from typing import Any

from timing import main, rate

ROWS, MAPS, BATCH = 10**9, 30, 1024


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
    for number in range(MAPS):
        dataset = dataset.map(lambda x, number=number: (x ^ number) + 1)
    return rate(dataset.batch(BATCH), rows, seconds, step=64)


def limit(seconds: float) -> dict[str, float]:
    """Write the thirty functions as one."""
    import evenfeed as tf

    def composed(x: Any) -> Any:
        for number in range(MAPS):
            x = (x ^ number) + 1
        return x

    dataset = tf.data.Dataset.range(ROWS).map(composed)
    return rate(dataset.batch(BATCH), rows, seconds, step=64)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
