"""100k examples of many lengths in eight TFRecord files: batches of 1024, each parsed at once."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from example_files import BATCH, EXAMPLES, FLOATS, rows_of, wanted, written
from timing import main, rate

LONGEST = 64


def parsed(tf: Any, names: list[str]) -> Any:
    """Write it as in TensorFlow's guides."""
    features = {**wanted(tf), "text": tf.io.FixedLenFeature([], tf.string)}
    records = tf.data.TFRecordDataset(names)
    batches = records.batch(BATCH).map(lambda batch: tf.io.parse_example(batch, features))
    return batches.repeat()


def evenfeed(seconds: float) -> dict[str, float]:
    """Run it with evenfeed."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        return rate(parsed(tf, written(tf, folder, LONGEST)), rows_of, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Run it with TensorFlow."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        return rate(parsed(tf, written(tf, folder, LONGEST)), rows_of, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Gather the values from places that are known before: nothing is searched or verified."""
    import evenfeed as tf

    def batches(names: list[str], places: np.ndarray) -> Iterator[Any]:
        while True:
            for name in names:
                raw = Path(name).read_bytes()
                pieces = np.ndarray(len(raw) - 4 * FLOATS + 1, f"V{4 * FLOATS}", raw, strides=(1,))
                every = np.frombuffer(raw, np.uint8)
                for start in range(0, EXAMPLES, BATCH):
                    x, label, text, stop = places[:, start : start + BATCH]
                    spans = zip(text.tolist(), stop.tolist(), strict=True)
                    yield {
                        "x": pieces[x].view("<f4").reshape(len(x), FLOATS),
                        "label": every[label].astype(np.int64),
                        "text": [raw[first:last] for first, last in spans],
                    }

    with tempfile.TemporaryDirectory() as folder:
        names = written(tf, folder, LONGEST)
        return rate(batches(names, places_of(Path(names[0]).read_bytes())), rows_of, seconds)


def places_of(raw: bytes) -> np.ndarray:
    """Return where the floats, the label and the text of each example begin, and where the text ends."""
    found, at = [], 0
    while at < len(raw):
        stop = at + 16 + int.from_bytes(raw[at : at + 8], "little")
        x = raw.index(b"\n\x80\x01", at) + 3
        label = raw.index(b"\x1a\x03\n\x01", at) + 4
        text = raw.index(b"\n\x04text\x12", at) + 12  # behind three fields of lengths of one byte
        found.append((x, label, text, text + raw[text - 1]))
        at = stop
    return np.array(found).T


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
