"""100,000 records of 100 bytes in TFRecord files: a whole pass in batches of 1024, over the number of files."""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import main, pass_rate

RECORDS, BYTES, BATCH = 100_000, 100, 1024
FRAME = 16  # bytes around each record: its length and two checksums


def written(tf: Any, folder: str, files: int) -> list[str]:
    """Write files of equal lengths with a library that has TensorFlow's names; return their names."""
    first = Path(folder) / "0.tfrecord"
    with tf.io.TFRecordWriter(str(first)) as writer:
        for _ in range(RECORDS // files):
            writer.write(b"x" * BYTES)
    others = [Path(folder) / f"{number}.tfrecord" for number in range(1, files)]
    for other in others:
        other.write_bytes(first.read_bytes())
    return [str(first), *map(str, others)]


def evenfeed(files: int, seconds: float) -> float:
    """Write it like tf.data."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        names = written(tf, folder, files)
        return pass_rate(lambda: tf.data.TFRecordDataset(names).batch(BATCH), len, seconds)


def limit(files: int, seconds: float) -> float:
    """Read each file whole, and cut it in plain Python: nothing is verified."""
    import evenfeed as tf

    def batches(names: list[str]) -> Iterator[list[bytes]]:
        found: list[bytes] = []
        for name in names:
            raw, start = Path(name).read_bytes(), 0
            while start < len(raw):
                (length,) = struct.unpack_from("<Q", raw, start)
                found.append(raw[start + 12 : start + 12 + length])
                start += FRAME + length
                if len(found) == BATCH:
                    yield found
                    found = []
        yield found

    with tempfile.TemporaryDirectory() as folder:
        names = written(tf, folder, files)
        return pass_rate(lambda: batches(names), len, seconds)


def tf_data(files: int, seconds: float) -> float:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    def batches(names: list[str]) -> Any:
        return tf.data.TFRecordDataset(names).batch(BATCH).prefetch(tf.data.AUTOTUNE)

    with tempfile.TemporaryDirectory() as folder:
        names = written(tf, folder, files)
        return pass_rate(lambda: batches(names), len, seconds)


def tf_data_by_hand(files: int, seconds: float) -> float:
    """Read several files at a time, as the guide to performance recommends for many."""
    import tensorflow as tf

    def batches(names: list[str]) -> Any:
        records = tf.data.Dataset.from_tensor_slices(names).interleave(
            tf.data.TFRecordDataset,
            cycle_length=16,
            block_length=16,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=False,
        )
        return records.batch(BATCH).prefetch(tf.data.AUTOTUNE)

    with tempfile.TemporaryDirectory() as folder:
        names = written(tf, folder, files)
        return pass_rate(lambda: batches(names), len, seconds)


VARIANTS = {
    "evenfeed": evenfeed,
    "plain Python": limit,
    "tf.data": tf_data,
    "tf.data by hand": tf_data_by_hand,
}

if __name__ == "__main__":
    main(VARIANTS)
