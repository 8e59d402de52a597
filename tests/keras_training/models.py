"""A small model with fixed weights, its data, and a recorder of batches."""

from typing import Any

import numpy as np

import evenfeed as tf

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(70, 5)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)
WEIGHTS = [RANDOM.normal(size=(5, 2)).astype(np.float32), np.zeros(2, np.float32)]
DATA = tf.data.Dataset.from_tensor_slices((X, Y))


def classifier(**settings: Any) -> Any:
    """Return a compiled classifier with fixed weights."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((5,)), layers.Dense(2)])
    model.set_weights(WEIGHTS)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.1), loss, metrics=["accuracy"], **settings)
    return model


class Rows(tf.keras.layers.Layer):
    """A layer that records the first column of each batch that it computes on."""

    def __init__(self, seen: list[list[float]]) -> None:
        super().__init__()
        self._record = seen.append

    def call(self, x: Any) -> Any:
        import jax

        jax.debug.callback(lambda rows: self._record(rows[:, 0].tolist()), x, ordered=True)
        return x
