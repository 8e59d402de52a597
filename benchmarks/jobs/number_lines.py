"""Lines of eight numbers in tags, in batches of 1024: regex_replace the tags, split at ";", and parse the numbers."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate
from words import BATCH, rows_of

LINES, NUMBERS = 50_000, 8
TAG = "<[^>]+>"


def lines() -> list[str]:
    """Return lines such as <b>0.5</b>;<b>-1.25</b>."""
    drawn = np.random.default_rng(0).normal(size=(LINES, NUMBERS))
    return [";".join(f"<b>{number:.3f}</b>" for number in row) for row in drawn.tolist()]


def batches(tf: Any) -> Any:
    """Write it as in TensorFlow's guides."""

    def numbers(text: Any) -> Any:
        plain = tf.strings.regex_replace(text, TAG, "")
        return tf.strings.to_number(tf.strings.split(plain, ";"))

    return tf.data.Dataset.from_tensor_slices(lines()).repeat().batch(BATCH).map(numbers)


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return rate(batches(tf), rows_of, seconds, step=8)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return rate(batches(tf), rows_of, seconds, step=8)


def limit(seconds: float) -> dict[str, float]:
    """Use Python's regular expressions, line by line."""
    texts, tag = [line.encode() for line in lines()], re.compile(TAG.encode())

    def found() -> Iterator[Any]:
        while True:
            for start in range(0, LINES - BATCH, BATCH):
                rows = [tag.sub(b"", text).split(b";") for text in texts[start : start + BATCH]]
                yield np.array([float(word) for row in rows for word in row], np.float32)

    return rate(found(), lambda _: BATCH, seconds, step=8)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
