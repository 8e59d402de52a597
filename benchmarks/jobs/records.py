"""100k examples in eight TFRecord files: batches of 1024, each parsed at once."""

import tempfile
from collections.abc import Iterator
from typing import Any

from example_files import BATCH, EXAMPLES, cut, rows_of, wanted, written
from timing import main, rate


def parsed(tf: Any, names: list[str]) -> Any:
    """Write it as in TensorFlow's guides."""
    features = wanted(tf)
    records = tf.data.TFRecordDataset(names)
    batches = records.batch(BATCH).map(lambda batch: tf.io.parse_example(batch, features))
    return batches.repeat()


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
    """Cut the values out of whole files."""
    import evenfeed as tf

    def batches(names: list[str]) -> Iterator[Any]:
        while True:
            for x, label in cut(names):
                for start in range(0, EXAMPLES, BATCH):
                    rows = slice(start, start + BATCH)
                    yield {"x": x[rows], "label": label[rows]}

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(tf, folder)), rows_of, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
