"""Shuffle, map, batch: the same pipeline by all libraries, for the curves over rows, width and batch size.

Each peer is written as its documentation recommends, and also vectorised by hand: positions are shuffled and batched,
and one call gathers and maps a whole batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from measuring import Variants, rate

# TensorFlow fills its buffer before the first element: a larger one would take minutes, or more memory than there is.
BUFFER = 10**6


@dataclass(frozen=True)
class Pipeline:
    """Rows of floats, or the numbers of a range if `width` is 0; how many rows a batch has, and what a row counts."""

    rows: int
    width: int
    batch: int
    weight: int = 1

    def data(self) -> Any:
        """Return the rows in memory."""
        return np.random.default_rng(0).random((self.rows, self.width), np.float32)

    def rate(self, batches: Any, seconds: float) -> float:
        """Return how much is read per second."""
        weight = self.weight
        return rate(batches, lambda batch: weight * len(batch), seconds)


def mapped(x: Any) -> Any:
    """Compute a row, or a batch of rows."""
    return x * 2 - 1


def evenfeed(job: Pipeline, seconds: float) -> float:
    """Write it like tf.data."""
    import evenfeed as tf

    dataset = _rows(tf, job).shuffle(job.rows).map(mapped)
    return job.rate(dataset.batch(job.batch).repeat().prefetch(2), seconds)


def limit(job: Pipeline, seconds: float) -> float:
    """Gather and map in place with NumPy."""
    data = job.data() if job.width else None

    def batches() -> Iterator[Any]:
        draws = np.random.default_rng(0)
        while True:
            order = draws.permutation(job.rows)
            for start in range(0, job.rows, job.batch):
                chosen = order[start : start + job.batch]
                batch = chosen * 2 if data is None else data.take(chosen, axis=0)
                if data is not None:
                    batch *= 2
                batch -= 1
                yield batch

    return job.rate(batches(), seconds)


def tf_data(job: Pipeline, seconds: float) -> float:
    """Write it as in TensorFlow's guide to performance."""
    import tensorflow as tf

    dataset = _rows(tf, job).shuffle(min(job.rows, BUFFER))
    dataset = dataset.map(mapped, num_parallel_calls=tf.data.AUTOTUNE).batch(job.batch).repeat()
    return job.rate(dataset.prefetch(tf.data.AUTOTUNE), seconds)


def tf_data_by_hand(job: Pipeline, seconds: float) -> float:
    """Shuffle positions, and gather whole batches."""
    import tensorflow as tf

    data = tf.constant(job.data()) if job.width else None
    positions = tf.data.Dataset.range(job.rows).shuffle(min(job.rows, BUFFER)).batch(job.batch)

    def gathered(chosen: Any) -> Any:
        return mapped(chosen if data is None else tf.gather(data, chosen))

    batches = positions.map(gathered, num_parallel_calls=tf.data.AUTOTUNE).repeat()
    return job.rate(batches.prefetch(tf.data.AUTOTUNE), seconds)


def _rows(tf: Any, job: Pipeline) -> Any:
    if job.width:
        return tf.data.Dataset.from_tensor_slices(job.data())
    return tf.data.Dataset.range(job.rows)


def grain(job: Pipeline, seconds: float) -> float:
    """Let Grain read rows by position."""
    import grain

    rows = grain.MapDataset.source(job.data()) if job.width else grain.MapDataset.range(job.rows)
    batches = rows.shuffle(seed=0).map(mapped).batch(job.batch).repeat()
    return job.rate(batches.to_iter_dataset(), seconds)


def grain_by_hand(job: Pipeline, seconds: float) -> float:
    """Let Grain shuffle positions, and gather whole batches."""
    import grain

    data = job.data() if job.width else None
    positions = grain.MapDataset.range(job.rows).shuffle(seed=0).batch(job.batch)
    batches = positions.map(lambda chosen: mapped(chosen if data is None else data[chosen]))
    return job.rate(batches.repeat().to_iter_dataset(), seconds)


def torch(job: Pipeline, seconds: float) -> float:
    """Let a DataLoader fetch row by row, as in PyTorch's tutorials."""
    return _torch(job, seconds, by_hand=False)


def torch_by_hand(job: Pipeline, seconds: float) -> float:
    """Let a DataLoader fetch whole batches by `__getitems__`."""
    return _torch(job, seconds, by_hand=True)


def _torch(job: Pipeline, seconds: float, *, by_hand: bool) -> float:
    from torch import from_numpy, set_num_threads
    from torch.utils.data import DataLoader, Dataset

    if by_hand:
        set_num_threads(1)  # two wait for each other where other programs run
    data = from_numpy(job.data()) if job.width else None

    class Single(Dataset):
        def __len__(self) -> int:
            return job.rows

        def __getitem__(self, index: Any) -> Any:
            return mapped(index if data is None else data[index])

    class Whole(Single):
        def __getitems__(self, indices: list[int]) -> Any:
            return self[from_numpy(np.array(indices))]

    same = {"collate_fn": lambda batch: batch} if by_hand else {}
    loader = DataLoader(Whole() if by_hand else Single(), job.batch, shuffle=True, **same)

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    return job.rate(batches(), seconds)


def variants(pipeline: Callable[[int], Pipeline]) -> Variants:
    """Return all variants of a curve, from the pipeline at each place of its axis."""
    libraries = {
        "evenfeed": evenfeed,
        "NumPy": limit,
        "tf.data": tf_data,
        "tf.data by hand": tf_data_by_hand,
        "Grain": grain,
        "Grain by hand": grain_by_hand,
        "torch": torch,
        "torch by hand": torch_by_hand,
    }
    return {
        name: lambda place, seconds, run=run: run(pipeline(place), seconds)
        for name, run in libraries.items()
    }
