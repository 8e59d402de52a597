"""Layers that prepare data work in `Dataset.map`, and those that need TensorFlow say what to use instead."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
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


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: tf.keras.layers.TextVectorization(), "strings and evenfeed.lookup"),
        (lambda _: tf.keras.layers.StringLookup(), "strings and evenfeed.lookup"),
        (lambda _: tf.keras.layers.Hashing(3), "to_hash_bucket_fast"),
    ],
)
def test_what_needs_tensorflow_says_what_to_use(make: Any, said: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text("text")
    with pytest.raises(ImportError, match=f"(?s)of Keras needs TensorFlow.*{said}"):
        make(str(tmp_path))
