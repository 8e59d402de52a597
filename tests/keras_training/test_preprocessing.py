"""Layers that prepare data work in `Dataset.map`."""

import numpy as np
from tests.keras_training.models import DATA, X

import evenfeed as tf


def test_layers_run_on_whole_blocks_in_map() -> None:
    halved = tf.keras.layers.Rescaling(0.5)
    data = DATA.map(lambda x, y: halved(x))
    assert "vectorised" in str(data.explain())
    np.testing.assert_allclose(next(iter(data.batch(70))), X / 2, rtol=1e-6)


def test_random_layers_draw_anew_and_stay_usable() -> None:
    drop = tf.keras.layers.Dropout(0.5)
    ones = tf.data.Dataset.from_tensors(np.ones(64, np.float32)).repeat(2)
    data = ones.map(lambda x: drop(x, training=True), num_parallel_calls=2)
    first, second = list(data), list(data)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], second[0])
    assert "assigns the variable" in str(data.explain())
    assert drop(np.ones(4), training=True).shape == (4,)


def test_normalization_adapts_to_a_dataset() -> None:
    layer = tf.keras.layers.Normalization()
    layer.adapt(DATA.map(lambda x, y: x).batch(16))
    np.testing.assert_allclose(np.ravel(layer.mean), X.mean(0), atol=1e-5)
    np.testing.assert_allclose(np.ravel(layer.variance), X.var(0), atol=1e-4)
