"""100k examples in eight TFRecord files: each parsed, shuffled, batches of 1024."""

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from example_files import BATCH, EXAMPLES, FILES, cut, rows_of, wanted, written
from timing import main, rate


def parsed(tf: Any, names: list[str]) -> Any:
    """Write it as in TensorFlow's guides."""
    features = wanted(tf)
    records = tf.data.TFRecordDataset(names)
    examples = records.map(lambda record: tf.io.parse_single_example(record, features))
    return examples.shuffle(10_000).batch(BATCH).repeat()


def evenfeed(seconds: float) -> dict[str, float]:
    """Run it with evenfeed."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        return rate(parsed(tf, written(tf, folder)), rows_of, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Run it with TensorFlow."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        return rate(parsed(tf, written(tf, folder)), rows_of, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Cut the values out of whole files, and gather them in any order."""
    import evenfeed as tf

    def batches(names: list[str]) -> Iterator[Any]:
        while True:
            parts = list(zip(*cut(names), strict=True))
            x, label = map(np.concatenate, parts)
            order = np.random.default_rng().permutation(FILES * EXAMPLES)
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                yield {"x": x[rows], "label": label[rows]}

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(tf, folder)), rows_of, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
