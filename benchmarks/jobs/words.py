"""Lines of words in batches of 1024: lower case, split, and look up the id of each word."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

LINES, WORDS, VOCABULARY, BATCH = 200_000, 10, 10_000, 1024


def lines() -> list[str]:
    """Return lines of 1 to 10 words; one word in ten is not in the vocabulary."""
    drawn = np.random.default_rng(0).zipf(1.3, (LINES, WORDS)) % (VOCABULARY * 10 // 9)
    lengths = np.random.default_rng(1).integers(1, WORDS + 1, LINES).tolist()
    rows = zip(drawn.tolist(), lengths, strict=True)
    return [" ".join(f"Word{number}" for number in row[:length]) for row, length in rows]


def table(tf: Any) -> Any:
    """Return the ids of the words."""
    words = [f"word{number}" for number in range(VOCABULARY)]
    ids = tf.lookup.KeyValueTensorInitializer(words, np.arange(VOCABULARY))
    return tf.lookup.StaticVocabularyTable(ids, num_oov_buckets=100)


def batches(tf: Any) -> Any:
    """Write it as in TensorFlow's guides."""
    known = table(tf)

    def ids(text: Any) -> Any:
        return known.lookup(tf.strings.split(tf.strings.lower(text)))

    return tf.data.Dataset.from_tensor_slices(lines()).repeat().batch(BATCH).map(ids)


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return rate(batches(tf), rows_of, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return rate(batches(tf), rows_of, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Split each line in Python, and look up each word in a dict."""
    known = {f"word{number}".encode(): number for number in range(VOCABULARY)}
    texts = [line.encode() for line in lines()]

    def found() -> Iterator[Any]:
        while True:
            for start in range(0, LINES - BATCH, BATCH):
                rows = [text.lower().split() for text in texts[start : start + BATCH]]
                ids = np.array([known.get(word, -1) for row in rows for word in row])
                yield ids, np.cumsum([len(row) for row in rows])

    return rate(found(), lambda _: BATCH, seconds)


def rows_of(batch: Any) -> int:
    """Return the number of lines in a batch."""
    return batch.shape[0]


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
