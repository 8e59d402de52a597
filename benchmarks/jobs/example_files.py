"""100k examples of 32 floats and a label in eight TFRecord files, for the jobs that read them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILES, EXAMPLES, FLOATS, BATCH = 8, 12_500, 32, 1024


def written(tf: Any, folder: str, longest: int = 0) -> list[str]:
    """Write the files with a library that has TensorFlow's names, and return their names.

    With `longest`, each example has a text too, of any length up to that: no two neighbours are alike.
    """
    names = [f"{folder}/{number}.tfrecord" for number in range(FILES)]
    chance = np.random.default_rng(0)
    values = chance.random((EXAMPLES, FLOATS), np.float32)
    with tf.io.TFRecordWriter(names[0]) as writer:
        for number, row in enumerate(values):
            floats = tf.train.Feature(float_list=tf.train.FloatList(value=row.tolist()))
            label = tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 10]))
            feature = {"x": floats, "label": label}
            if longest:
                text = tf.train.BytesList(value=[b"a" * int(chance.integers(longest))])
                feature["text"] = tf.train.Feature(bytes_list=text)
            features = tf.train.Features(feature=feature)
            writer.write(tf.train.Example(features=features).SerializeToString())
    for name in names[1:]:
        shutil.copy(names[0], name)
    return names


def wanted(tf: Any) -> dict[str, Any]:
    """Return what to parse."""
    return {
        "x": tf.io.FixedLenFeature([FLOATS], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }


def rows_of(batch: dict[str, Any]) -> int:
    """Return how many examples a batch has."""
    return batch["label"].shape[0]


def cut(names: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the floats and labels of each file, cut out where they are in its first record: nothing is verified."""
    for name in names:
        raw = Path(name).read_bytes()
        rows = np.frombuffer(raw, np.uint8).reshape(EXAMPLES, -1)
        first = raw[: rows.shape[1]]
        x, label = first.index(b"\n\x80\x01") + 3, first.index(b"\x1a\x03\n\x01") + 4
        floats = np.ascontiguousarray(rows[:, x : x + 4 * FLOATS]).view("<f4")
        yield floats, rows[:, label].astype(np.int64)
