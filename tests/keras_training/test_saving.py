"""Models are saved and loaded inside and outside of scopes, and callbacks write their files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras_training.models import DATA, classifier

import evenfeed as tf


def test_a_model_can_be_loaded_with_and_without_a_strategy(tmp_path: Path) -> None:
    data, file = DATA.batch(16), tmp_path / "model.keras"
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = classifier()
        model.fit(data, verbose=0)
        model.save(file)
        inside = tf.keras.models.load_model(file)
    outside = tf.keras.models.load_model(file)
    weights = model.get_weights()
    assert inside.weights[0].value.sharding == strategy.sharding()
    assert len(outside.weights[0].value.devices()) == 1
    losses = [m.fit(data, verbose=0).history["loss"][0] for m in (model, inside, outside)]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)  # compiled as it was
    model.set_weights(weights)
    model.save_weights(tmp_path / "w.weights.h5")
    outside.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_array_equal(outside.get_weights()[0], weights[0])


def test_tensorboard_writes_its_files_without_tensorflow(tmp_path: Path) -> None:
    board = tf.keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=1, update_freq=1)
    classifier().fit(DATA.batch(16), verbose=0, callbacks=[board], validation_data=DATA.batch(16))
    (train,) = (tmp_path / "train").iterdir()
    (check,) = (tmp_path / "validation").iterdir()
    assert b"epoch_accuracy" in train.read_bytes()
    assert b"epoch_loss" in check.read_bytes()


@pytest.mark.parametrize(
    ("kind", "member"),
    [
        ("ModelCheckpoint", "_get_file_path"),
        ("ModelCheckpoint", "_should_save_model"),
        ("TensorBoard", "_train_writer"),
    ],
)
def test_callbacks_have_the_members_that_evenfeed_uses(kind: str, member: str) -> None:
    owner: Any = getattr(tf.keras.callbacks, kind)
    assert member in dir(owner)


def test_saved_model_leads_to_the_methods_of_keras() -> None:
    with pytest.raises(AttributeError, match=r"model\.save\(path\).*model\.export"):
        _ = tf.saved_model
