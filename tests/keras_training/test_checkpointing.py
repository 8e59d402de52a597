"""`train.Checkpoint` saves and restores Keras models, optimizers and metrics."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras_training.models import DATA

import evenfeed as tf


def made() -> Any:
    """Return a model whose parts Keras names anew each time."""
    layers = tf.keras.layers
    inner = tf.keras.Sequential([layers.Dense(3), layers.BatchNormalization(), layers.Dropout(0.5)])
    model = tf.keras.Sequential([layers.Input((5,)), inner, layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.1), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def values(model: Any) -> list[Any]:
    return [np.array(v.value) for v in (*model.variables, *model.optimizer.variables)]


def test_another_build_of_a_model_gets_all_of_its_state(tmp_path: Path) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    model, metric = made(), tf.keras.metrics.Mean()
    model.fit(DATA.batch(32), verbose=0)
    metric.update_state([1.0, 3.0])
    saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer, metric=metric)
    path = saved.save(tmp_path / "ckpt")
    with strategy.scope():
        again, other = made(), tf.keras.metrics.Mean()
    checkpoint = tf.train.Checkpoint(model=again, optimizer=again.optimizer, metric=other)
    checkpoint.restore(path).assert_consumed()
    for found, expected in zip(values(again), values(model), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert {v.value.sharding for v in again.variables} == {strategy.sharding()}
    assert float(other.result()) == 2.0
    again.fit(DATA.batch(32), verbose=0)


def test_what_has_no_variables_yet_says_how_to_get_them(tmp_path: Path) -> None:
    optimizer = tf.keras.optimizers.Adam()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"optimizer\.build\(model"):
        tf.train.Checkpoint(optimizer=optimizer).save(tmp_path / "a")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="call the model on a batch first"):
        tf.train.Checkpoint(model=model).save(tmp_path / "b")


def test_another_shape_is_an_error(tmp_path: Path) -> None:
    def dense(units: int) -> Any:
        return tf.keras.Sequential([tf.keras.layers.Input((5,)), tf.keras.layers.Dense(units)])

    path = tf.train.Checkpoint(model=dense(2)).save(tmp_path / "ckpt")
    with pytest.raises(ValueError, match=r"(?s)shape \(5, 3\).*shape \(5, 2\)"):
        tf.train.Checkpoint(model=dense(3)).restore(path)
