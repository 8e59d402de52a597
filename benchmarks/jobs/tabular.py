"""200,000 rows of 32 float32 and a label: shuffled, mapped, in batches of 1024, again and again, prefetched."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 200_000, 1024
X = np.random.default_rng(0).random((ROWS, 32), dtype=np.float32)
Y = np.arange(ROWS)


def rows(batch: Any) -> int:
    """Count the rows of a batch."""
    return len(batch[0])


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds)


def _like_tf_data(tf: Any, seconds: float) -> dict[str, float]:
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(ROWS)
    dataset = dataset.map(lambda a, b: (a * 2 - 1, b)).batch(BATCH).repeat().prefetch(2)
    return rate(dataset, rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Gather and map in place with NumPy, in this thread."""

    def batches() -> Iterator[Any]:
        random = np.random.default_rng(0)
        while True:
            order = random.permutation(ROWS)
            for start in range(0, ROWS, BATCH):
                chosen = order[start : start + BATCH]
                a = X.take(chosen, axis=0)
                a *= 2
                a -= 1
                yield a, Y.take(chosen)

    return rate(batches(), rows, seconds)


def grain(seconds: float) -> dict[str, float]:
    """Let Grain read by position."""
    import grain

    class Source:
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> Any:
            return X[index], Y[index]

    dataset = grain.MapDataset.source(Source()).shuffle(seed=0)
    dataset = dataset.map(lambda pair: (pair[0] * 2 - 1, pair[1])).batch(BATCH).repeat()
    return rate(dataset.to_iter_dataset(), rows, seconds, step=1)


def torch(seconds: float) -> dict[str, float]:
    """Let a DataLoader fetch row by row, as in PyTorch's tutorials."""
    return _torch(seconds, by_hand=False)


def torch_by_hand(seconds: float) -> dict[str, float]:
    """Let a DataLoader fetch whole batches by `__getitems__`."""
    return _torch(seconds, by_hand=True)


def _torch(seconds: float, *, by_hand: bool) -> dict[str, float]:
    from torch import from_numpy, set_num_threads
    from torch.utils.data import DataLoader, Dataset

    if by_hand:
        set_num_threads(1)  # two wait for each other where other programs run: a tenth of the rate
    x, y = from_numpy(X), from_numpy(Y)

    class Single(Dataset):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> Any:
            return x[index] * 2 - 1, y[index]

    class Whole(Single):
        def __getitems__(self, indices: list[int]) -> Any:
            chosen = from_numpy(np.array(indices))  # twice as fast as the list itself
            return x[chosen] * 2 - 1, y[chosen]

    def batches() -> Iterator[Any]:
        source = Whole() if by_hand else Single()
        same = {"collate_fn": lambda batch: batch} if by_hand else {}
        while True:
            yield from DataLoader(source, batch_size=BATCH, shuffle=True, **same)

    return rate(batches(), rows, seconds, step=1)


VARIANTS = {
    "evenfeed": evenfeed,
    "limit": limit,
    "tf.data": tensorflow,
    "Grain": grain,
    "torch": torch,
    "torch by hand": torch_by_hand,
}

if __name__ == "__main__":
    main(VARIANTS)
