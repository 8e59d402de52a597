"""Rows of 256 floats: sorted sines and exponentials, AUTOTUNE, batches of 128."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 20_000, 128
X = np.random.default_rng(0).random((ROWS, 256), dtype=np.float32)


def like_tensorflow(tf: Any, seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides; evenfeed runs the same lines."""
    dataset = tf.data.Dataset.from_tensor_slices(X).repeat()
    dataset = dataset.map(lambda x: tf.sort(tf.sin(x) * tf.exp(x)), tf.data.AUTOTUNE)
    return rate(dataset.batch(BATCH), len, seconds, step=4)


def evenfeed(seconds: float) -> dict[str, float]:
    """Run the same lines."""
    import evenfeed as tf

    return like_tensorflow(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Run the same lines."""
    import tensorflow as tf

    return like_tensorflow(tf, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Compile the function for a batch with JAX, and call it in a thread for each core."""
    import jax
    import jax.numpy as jnp

    compute = jax.jit(jax.vmap(lambda x: jnp.sort(jnp.sin(x) * jnp.exp(x))))
    starts = range(0, ROWS - BATCH, BATCH)

    def computed(start: int) -> np.ndarray:
        return np.asarray(compute(X[start : start + BATCH]))

    def batches(pool: ThreadPoolExecutor) -> Iterator[Any]:
        while True:
            yield from pool.map(computed, starts)

    with ThreadPoolExecutor(cpu_count()) as pool:
        return rate(batches(pool), len, seconds, step=4)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
