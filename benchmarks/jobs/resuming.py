"""Saves the position at 90 % of an epoch, and continues from it with a new iterator. Each is written as its guide does."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

BATCH, BUFFER = 100, 10_000
PIPELINES = ("shuffled", "filtered", "filtered and shuffled")

Found = dict[str, dict[str, float]]


def rows_of(count: int) -> np.ndarray[Any, Any]:
    """Return rows of eight floats."""
    return np.arange(count * 8, dtype=np.float32).reshape(count, 8)


def measured(
    make: Callable[[str], Any],
    save: Callable[[Any], Any],
    load: Callable[[Any, Any], None],
    count: int,
) -> Found:
    """Return the milliseconds to save, the bytes saved, and the milliseconds until the next batch is there."""
    found: Found = {}
    for pipeline in PIPELINES:
        kept = count if pipeline == "shuffled" else count // 2
        first = make(pipeline)
        for _ in range(kept * 9 // 10 // BATCH):
            next(first)
        save(first)  # the first call may import or compile
        start = perf_counter()
        state, size = save(first)
        saved = perf_counter()
        expected = np.asarray(next(first))
        second = make(pipeline)
        begun = perf_counter()
        load(second, state)
        batch = np.asarray(next(second))
        ended = perf_counter()
        assert np.array_equal(batch, expected), pipeline
        found[pipeline] = {
            "save": 1000 * (saved - start),
            "bytes": size,
            "restore": 1000 * (ended - begun),
        }
    return found


def evenfeed(count: int) -> Found:
    """Write it like tf.data."""
    import evenfeed as tf

    x = rows_of(count)

    def make(pipeline: str) -> Iterator[Any]:
        data = tf.data.Dataset.from_tensor_slices(x)
        if pipeline != "shuffled":
            data = data.filter(lambda row: row[0] % 16 == 0)
        if pipeline != "filtered":
            data = data.shuffle(BUFFER, seed=1)
        return iter(data.map(lambda row: row * 2).batch(BATCH))

    def save(iterator: Any) -> tuple[Any, int]:
        text = json.dumps(iterator.get_state())
        return text, len(text)

    return measured(make, save, lambda it, text: it.set_state(json.loads(text)), count)


def grain(count: int) -> Found:
    """Shuffle by position where Grain can, and in windows behind a filter."""
    import grain.python as pygrain

    x = rows_of(count)

    def make(pipeline: str) -> Any:
        data = pygrain.MapDataset.source(x)
        if pipeline == "shuffled":
            return iter(
                data.seed(1).shuffle().map(lambda row: row * 2).batch(BATCH).to_iter_dataset()
            )
        rows = data.to_iter_dataset().filter(lambda row: row[0] % 16 == 0)
        if pipeline == "filtered and shuffled":
            rows = pygrain.experimental.WindowShuffleIterDataset(rows, window_size=BUFFER, seed=1)
        return iter(rows.map(lambda row: row * 2).batch(BATCH))

    def save(iterator: Any) -> tuple[Any, int]:
        text = json.dumps(iterator.get_state())
        return text, len(text)

    return measured(make, save, lambda it, text: it.set_state(json.loads(text)), count)


def tf_data(count: int) -> Found:
    """Save the iterator in a checkpoint."""
    import tensorflow as tf

    x = rows_of(count)

    def make(pipeline: str) -> Any:
        data = tf.data.Dataset.from_tensor_slices(x)
        if pipeline != "shuffled":
            data = data.filter(lambda row: row[0] % 16 == 0)
        if pipeline != "filtered":
            data = data.shuffle(BUFFER, seed=1)
        return iter(data.map(lambda row: row * 2).batch(BATCH))

    def save(iterator: Any) -> tuple[Any, int]:
        folder = tempfile.mkdtemp()
        path = tf.train.Checkpoint(iterator=iterator).write(f"{folder}/state")
        return path, sum(file.stat().st_size for file in Path(folder).iterdir())

    def load(iterator: Any, path: str) -> None:
        tf.train.Checkpoint(iterator=iterator).read(path)

    return measured(make, save, load, count)


VARIANTS = {"evenfeed": evenfeed, "Grain": grain, "tf.data": tf_data}

if __name__ == "__main__":
    print(json.dumps(VARIANTS[sys.argv[1]](int(float(sys.argv[2])))))
