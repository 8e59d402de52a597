"""A Python function that waits 2 ms for each row, over the number of rows that may be in progress."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from measuring import main, rate

ROWS, WAIT = 10**6, 0.002


def wait(x: Any) -> Any:
    """Take as long as a file that is far away."""
    time.sleep(WAIT)
    return np.int64(x)


def one(_: Any) -> int:
    """Count an element."""
    return 1


def evenfeed(threads: int, seconds: float) -> float:
    """Write it like tf.data, without a wrapper."""
    import evenfeed as tf

    return rate(tf.data.Dataset.range(ROWS).map(wait, threads, vectorize=False), one, seconds)


def limit(threads: int, seconds: float) -> float:
    """Let a pool of threads call the function."""

    def rows() -> Iterator[Any]:
        with ThreadPoolExecutor(threads) as pool:
            waiting = [pool.submit(wait, row) for row in range(2 * threads)]
            for row in range(2 * threads, ROWS):
                found = waiting[row % len(waiting)]
                waiting[row % len(waiting)] = pool.submit(wait, row)
                yield found.result()

    return rate(rows(), one, seconds)


def tf_data(threads: int, seconds: float) -> float:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    def call(x: Any) -> Any:
        return tf.numpy_function(wait, [x], tf.int64)

    return rate(tf.data.Dataset.range(ROWS).map(call, threads), one, seconds)


def grain(threads: int, seconds: float) -> float:
    """Let Grain's threads read."""
    import grain

    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=2 * threads)
    return rate(grain.MapDataset.range(ROWS).map(wait).to_iter_dataset(options), one, seconds)


def torch(threads: int, seconds: float) -> float:
    """Let the processes of a DataLoader fetch rows; PyTorch has no threads for this."""
    from torch.utils.data import DataLoader, Dataset

    class Waiting(Dataset):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> Any:
            return wait(index)

    return rate(DataLoader(Waiting(), batch_size=None, num_workers=threads), one, seconds)


VARIANTS = {
    "evenfeed": evenfeed,
    "a thread pool": limit,
    "tf.data": tf_data,
    "Grain": grain,
    "torch": torch,
}

if __name__ == "__main__":
    main(VARIANTS)
