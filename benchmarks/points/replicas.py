"""200,000 rows of 32 floats: shuffle, map, batches of 1024 that reach the replicas, over their number."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measuring import main, rate

ROWS, WIDTH, BATCH = 200_000, 32, 1024


def data() -> Any:
    """Return the rows in memory."""
    return np.random.default_rng(0).random((ROWS, WIDTH), np.float32)


def strategy_of(tf: Any, replicas: int) -> Any:
    """Return a strategy on so many CPU devices, in evenfeed or TensorFlow."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * replicas
    tf.config.set_logical_device_configuration(cpu, devices)
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(replicas)])


def fed(tf: Any, replicas: int, seconds: float, batched: Callable[[Any], Any]) -> float:
    """Return how many rows per second reach the replicas."""
    strategy = strategy_of(tf, replicas)
    batches = batched(tf.data.Dataset.from_tensor_slices(data()).shuffle(ROWS))
    return rate(
        strategy.experimental_distribute_dataset(batches.repeat()), lambda _: BATCH, seconds
    )


def one_by_one(rows: Any) -> Any:
    """Map rows, as in the guides."""
    return rows.map(lambda x: x * 2 - 1).batch(BATCH, drop_remainder=True)


def by_batches(rows: Any) -> Any:
    """Map whole batches."""
    return rows.batch(BATCH, drop_remainder=True).map(lambda x: x * 2 - 1)


def evenfeed(replicas: int, seconds: float) -> float:
    """Write it like TensorFlow."""
    import evenfeed as tf

    return fed(tf, replicas, seconds, one_by_one)


def limit(replicas: int, seconds: float) -> float:
    """Gather with NumPy, and put each batch on all devices by one call of JAX."""
    import jax

    import evenfeed as tf

    sharding, rows = strategy_of(tf, replicas).sharding("replica"), data()

    def batches() -> Iterator[Any]:
        draws = np.random.default_rng(0)
        while True:
            order = draws.permutation(ROWS)
            for start in range(0, ROWS - BATCH + 1, BATCH):
                batch = rows.take(order[start : start + BATCH], axis=0)
                batch *= 2
                batch -= 1
                yield jax.device_put(batch, sharding)

    return rate(batches(), len, seconds)


def tensorflow(replicas: int, seconds: float) -> float:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return fed(tf, replicas, seconds, one_by_one)


def tensorflow_by_hand(replicas: int, seconds: float) -> float:
    """Map whole batches."""
    import tensorflow as tf

    return fed(tf, replicas, seconds, by_batches)


VARIANTS = {
    "evenfeed": evenfeed,
    "NumPy and JAX": limit,
    "tf.data": tensorflow,
    "tf.data by hand": tensorflow_by_hand,
}

if __name__ == "__main__":
    main(VARIANTS)
