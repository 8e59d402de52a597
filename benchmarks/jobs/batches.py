"""range in batches of 64, in a plain loop."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 10**9, 64


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return rate(tf.data.Dataset.range(ROWS).batch(BATCH), len, seconds, step=1024)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return rate(tf.data.Dataset.range(ROWS).batch(BATCH), len, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Make each batch by itself."""

    def batches() -> Iterator[Any]:
        for start in range(0, ROWS, BATCH):
            yield np.arange(start, start + BATCH)

    return rate(batches(), len, seconds, step=1024)


def grain(seconds: float) -> dict[str, float]:
    """Let Grain read by position."""
    import grain

    return rate(grain.MapDataset.range(ROWS).batch(BATCH).to_iter_dataset(), len, seconds, step=1)


def torch(seconds: float) -> dict[str, float]:
    """Let a DataLoader count."""
    from torch.utils.data import DataLoader

    return rate(DataLoader(range(ROWS), batch_size=BATCH), len, seconds, step=1)


VARIANTS = {
    "evenfeed": evenfeed,
    "limit": limit,
    "tf.data": tensorflow,
    "Grain": grain,
    "torch": torch,
}

if __name__ == "__main__":
    main(VARIANTS)
