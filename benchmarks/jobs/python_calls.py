"""Python code that holds the GIL, about 20 microseconds for each row, with AUTOTUNE, in batches of 64."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 10**7, 64


def tokens(x: Any) -> Any:
    """Compute something that no compiler sees, as a tokenizer does."""
    words = f"the quick brown fox {int(x)} jumps over the lazy dog".split()
    return np.int64(sum(hash(word) & 0xFFFF for word in words for _ in range(8)))


def rows(_: Any) -> int:
    """Count the rows of a batch."""
    return BATCH


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data, without a wrapper."""
    import evenfeed as tf

    spec = tf.TensorSpec([], tf.int64)
    dataset = tf.data.Dataset.range(ROWS).map(tokens, tf.data.AUTOTUNE, output_signature=spec)
    return rate(dataset.batch(BATCH), rows, seconds, step=8)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    def call(x: Any) -> Any:
        return tf.numpy_function(tokens, [x], tf.int64)

    dataset = tf.data.Dataset.range(ROWS).map(call, tf.data.AUTOTUNE)
    return rate(dataset.batch(BATCH), rows, seconds, step=8)


def limit(seconds: float) -> dict[str, float]:
    """Call it in a loop."""

    def batches() -> Iterator[Any]:
        for start in range(0, ROWS, BATCH):
            yield np.array([tokens(x) for x in range(start, start + BATCH)])

    return rate(batches(), rows, seconds, step=8)


def grain(seconds: float) -> dict[str, float]:
    """Let Grain's threads read."""
    import grain

    dataset = grain.MapDataset.range(ROWS).map(tokens).to_iter_dataset().batch(BATCH)
    return rate(dataset, rows, seconds, step=8)


def torch(seconds: float) -> dict[str, float]:
    """Let a DataLoader call it."""
    from torch.utils.data import DataLoader, Dataset

    class Tokens(Dataset):
        """The rows by number."""

        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> Any:
            return tokens(index)

    return rate(DataLoader(Tokens(), BATCH), rows, seconds, step=8)


VARIANTS = {
    "evenfeed": evenfeed,
    "limit": limit,
    "tf.data": tensorflow,
    "Grain": grain,
    "torch": torch,
}

if __name__ == "__main__":
    main(VARIANTS)
