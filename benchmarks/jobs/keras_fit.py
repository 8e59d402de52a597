"""`fit` of a Keras MLP 784-512-10 on four replicas of the CPU, with global batches of 256 rows.

The ways of one process take turns, so that all meet the same machine; the median of the rounds counts.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from timing import main

ROWS, FEATURES, HIDDEN, CLASSES, BATCH, REPLICAS = 20_480, 784, 512, 10, 256, 4


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels."""
    draws = np.random.default_rng(0)
    x = draws.standard_normal((ROWS, FEATURES), np.float32)
    return x, draws.integers(0, CLASSES, ROWS, dtype=np.int32)


def model_on(tf: Any) -> Any:
    """Return a model on four replicas. `tf` is evenfeed or TensorFlow."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    each = [tf.config.LogicalDeviceConfiguration()] * REPLICAS
    tf.config.set_logical_device_configuration(cpu, each)
    layers = tf.keras.layers
    with tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)]).scope():
        model = tf.keras.Sequential(
            [
                layers.Input((FEATURES,)),
                layers.Dense(HIDDEN, activation="relu"),
                layers.Dense(CLASSES),
            ]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, metrics=["accuracy"])
    return model


def rows_per_second(ways: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Call each way in turns for that many seconds, once before they count; return the rates."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for fit in ways.values():
        fit()
    end = time.perf_counter() + seconds * len(ways)
    while time.perf_counter() < end or not all(times.values()):
        for name, fit in ways.items():
            start = time.perf_counter()
            fit()
            times[name].append(time.perf_counter() - start)
    return {name: ROWS / median(found) for name, found in times.items()}


def in_jax(seconds: float) -> dict[str, float]:
    """Train with arrays, which Keras cuts itself, and with a dataset."""
    import evenfeed as tf

    x, y = data()
    model = model_on(tf)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(ROWS).batch(BATCH)
    return rows_per_second(
        {
            "Keras on JAX, arrays": lambda: model.fit(x, y, BATCH, verbose=0),
            "Keras on JAX, Dataset": lambda: model.fit(dataset, verbose=0),
        },
        seconds,
    )


def in_tensorflow(seconds: float) -> dict[str, float]:
    """Train with TensorFlow's MirroredStrategy and tf.data."""
    import tensorflow as tf

    model = model_on(tf)
    dataset = tf.data.Dataset.from_tensor_slices(data()).shuffle(ROWS).batch(BATCH)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    name = "Keras on TensorFlow, Dataset"
    return rows_per_second({name: lambda: model.fit(dataset, verbose=0)}, seconds)


VARIANTS = {"jax": in_jax, "tensorflow": in_tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
