"""A map that waits 5 ms for each element, 16 at a time."""

import time
from typing import Any

import numpy as np
from timing import main, rate

ROWS, WAIT, CALLS = 10**6, 0.005, 16


def wait(x: Any) -> Any:
    """Take as long as a file that is far away."""
    time.sleep(WAIT)
    return np.int64(x)


def one(_: Any) -> int:
    """Count an element."""
    return 1


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data, without a wrapper."""
    import evenfeed as tf

    dataset = tf.data.Dataset.range(ROWS).map(wait, CALLS, vectorize=False)
    return rate(dataset, one, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    def call(x: Any) -> Any:
        return tf.numpy_function(wait, [x], tf.int64)

    return rate(tf.data.Dataset.range(ROWS).map(call, CALLS), one, seconds)


def limit(_: float) -> dict[str, float]:
    """Compute it: no element waits for another."""
    return {"rate": CALLS / WAIT}


def grain(seconds: float) -> dict[str, float]:
    """Let Grain's threads read."""
    import grain

    options = grain.ReadOptions(num_threads=CALLS, prefetch_buffer_size=2 * CALLS)
    return rate(grain.MapDataset.range(ROWS).map(wait).to_iter_dataset(options), one, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow, "Grain": grain}

if __name__ == "__main__":
    main(VARIANTS)
