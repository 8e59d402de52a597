"""Rows that are dicts of numbers: batch 1024, over the number of columns. Every number counts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring import main, rate

ROWS, BATCH = 16_384, 1024


def data(columns: int) -> dict[str, Any]:
    """Return the columns."""
    chance = np.random.default_rng(0)
    return {f"column {number}": chance.random(ROWS, np.float32) for number in range(columns)}


def numbers(batch: dict[str, Any]) -> int:
    """Count the numbers of a batch."""
    return len(batch) * len(batch["column 0"])


def part(columns: dict[str, Any], start: int) -> dict[str, Any]:
    """Return a batch by slicing."""
    return {name: column[start : start + BATCH] for name, column in columns.items()}


def evenfeed(columns: int, seconds: float) -> float:
    """Write it like tf.data."""
    import evenfeed as tf

    dataset = tf.data.Dataset.from_tensor_slices(data(columns))
    return rate(dataset.batch(BATCH).repeat(), numbers, seconds)


def limit(columns: int, seconds: float) -> float:
    """Copy slices with NumPy."""
    held = data(columns)

    def batches() -> Iterator[Any]:
        while True:
            for start in range(0, ROWS, BATCH):
                yield {name: column.copy() for name, column in part(held, start).items()}

    return rate(batches(), numbers, seconds)


def tf_data(columns: int, seconds: float) -> float:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(data(columns)).batch(BATCH).repeat()
    return rate(dataset.prefetch(tf.data.AUTOTUNE), numbers, seconds)


def tf_data_by_hand(columns: int, seconds: float) -> float:
    """Slice whole batches."""
    import tensorflow as tf

    held = {name: tf.constant(column) for name, column in data(columns).items()}
    starts = tf.data.Dataset.range(0, ROWS, BATCH)
    batches = starts.map(lambda start: part(held, start), num_parallel_calls=tf.data.AUTOTUNE)
    return rate(batches.repeat().prefetch(tf.data.AUTOTUNE), numbers, seconds)


def grain(columns: int, seconds: float) -> float:
    """Let Grain read rows by position."""
    import grain

    held = data(columns)
    rows = grain.MapDataset.range(ROWS).map(lambda n: {k: v[n] for k, v in held.items()})
    return rate(rows.batch(BATCH).repeat().to_iter_dataset(), numbers, seconds)


def grain_by_hand(columns: int, seconds: float) -> float:
    """Let Grain read whole batches by position."""
    import grain

    held = data(columns)
    batches = grain.MapDataset.range(0, ROWS, BATCH).map(lambda start: part(held, start))
    return rate(batches.repeat().to_iter_dataset(), numbers, seconds)


def torch(columns: int, seconds: float) -> float:
    """Let a DataLoader fetch row by row, as in PyTorch's tutorials."""
    return _torch(columns, seconds, by_hand=False)


def torch_by_hand(columns: int, seconds: float) -> float:
    """Let a DataLoader fetch whole batches by `__getitems__`."""
    return _torch(columns, seconds, by_hand=True)


def _torch(columns: int, seconds: float, *, by_hand: bool) -> float:
    from torch import from_numpy
    from torch.utils.data import DataLoader, Dataset

    held = {name: from_numpy(column) for name, column in data(columns).items()}

    class Single(Dataset):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> Any:
            return {name: column[index] for name, column in held.items()}

    class Whole(Single):
        def __getitems__(self, indices: list[int]) -> Any:
            return part(held, indices[0])

    same = {"collate_fn": lambda batch: batch} if by_hand else {}
    loader = DataLoader(Whole() if by_hand else Single(), BATCH, **same)

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    return rate(batches(), numbers, seconds)


VARIANTS = {
    "evenfeed": evenfeed,
    "NumPy": limit,
    "tf.data": tf_data,
    "tf.data by hand": tf_data_by_hand,
    "Grain": grain,
    "Grain by hand": grain_by_hand,
    "torch": torch,
    "torch by hand": torch_by_hand,
}

if __name__ == "__main__":
    main(VARIANTS)
