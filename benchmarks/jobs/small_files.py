"""Many files of ten rows each, for the jobs that read them."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import rate

FILES, ROWS, BATCH, LENGTH = 2000, 10, 128, 100
Records = Callable[[Any, list[str]], Any]


def written(tf: Any, folder: str) -> list[str]:
    """Write TFRecord files with a library that has TensorFlow's names, and return their names."""
    names = [f"{folder}/{number:05}.tfrecord" for number in range(FILES)]
    chance = np.random.default_rng(0)
    for name in names:
        with tf.io.TFRecordWriter(name) as writer:
            for _ in range(ROWS):
                writer.write(chance.bytes(LENGTH))
    return names


def figures(tf: Any, records: Records, seconds: float) -> dict[str, float]:
    """Return the rate of batches of the records of all files."""
    with tempfile.TemporaryDirectory() as folder:
        batches = records(tf, written(tf, folder)).batch(BATCH).repeat()
        return rate(batches, lambda batch: batch.shape[0], seconds)


def variants(records: Records) -> dict[str, Callable[[float], dict[str, float]]]:
    """Return a job in which evenfeed and TensorFlow read the files with the same lines of code."""

    def evenfeed(seconds: float) -> dict[str, float]:
        import evenfeed

        return figures(evenfeed, records, seconds)

    def tensorflow(seconds: float) -> dict[str, float]:
        import tensorflow

        return figures(tensorflow, records, seconds)

    return {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}


def limit(seconds: float) -> dict[str, float]:
    """Read each file whole, and cut it once: nothing is verified or shuffled."""
    import evenfeed

    def batches(names: list[str]) -> Iterator[Any]:
        while True:
            for name in names:
                raw = np.frombuffer(Path(name).read_bytes(), np.uint8)
                yield np.ascontiguousarray(raw.reshape(ROWS, -1)[:, 12:-4]).view(f"V{LENGTH}")

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(evenfeed, folder)), len, seconds)
