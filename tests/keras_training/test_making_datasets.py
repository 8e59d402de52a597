"""The functions of `tf.keras.utils` that make datasets run on evenfeed. `tests/oracle` compares them with TensorFlow's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenfeed as tf


@pytest.fixture
def folder(tmp_path: Path) -> str:
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(6):
            (tmp_path / name / f"{number}.txt").write_text(f"{name} {number}")
            pixels = random.integers(0, 256, (8, 9, 3)).astype(np.uint8)
            (tmp_path / name / f"{number}.png").write_bytes(bytes(tf.io.encode_png(pixels).numpy()))
            sound = tf.audio.encode_wav(np.zeros((50, 1), np.float32), 8000)
            (tmp_path / name / f"{number}.wav").write_bytes(bytes(sound.numpy()))
    return str(tmp_path)


def test_a_model_trains_on_a_folder_of_images_on_replicas(folder: str) -> None:
    train, check = tf.keras.utils.image_dataset_from_directory(
        folder, image_size=(6, 6), batch_size=4, seed=1, validation_split=0.25, subset="both"
    )
    assert train.class_names == ["cat", "dog"]
    assert [len(train.file_paths), len(check.file_paths)] == [9, 3]
    assert "vectorised" in str(train.explain())
    layers = tf.keras.layers
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        steps = [layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(2)]
        model = tf.keras.Sequential(steps)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss)
    ready = train.cache().shuffle(100).prefetch(tf.data.AUTOTUNE)
    history = model.fit(ready, validation_data=check, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"] + history["val_loss"]).all()


def test_windows_are_addressed_by_position() -> None:
    series = np.arange(40.0).reshape(20, 2)
    data = tf.keras.utils.timeseries_dataset_from_array(
        series, series[:, 0], 4, sampling_rate=2, batch_size=None
    )
    assert data.element_spec[0].shape == [4, 2]
    assert "vectorised" in str(data.explain())
    inputs, target = next(iter(data.skip(5)))
    np.testing.assert_array_equal(inputs, series[5:13:2])
    assert target == 10.0


def test_windows_with_a_seed_come_in_one_order() -> None:
    def targets() -> list[int]:
        numbers = np.arange(50)
        data = tf.keras.utils.timeseries_dataset_from_array(
            numbers, numbers, 3, batch_size=4, shuffle=True, seed=7
        )
        return np.concatenate([y for _, y in data]).tolist()

    assert targets() == targets()
    assert sorted(targets()) == list(range(48))


def test_a_dataset_of_text_is_split() -> None:
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "c", "d"]).batch(2)
    left, right = tf.keras.utils.split_dataset(words, left_size=3)
    assert [x.tolist() for x in left] == [[b"a", b"b"], [b"c"]]
    assert [x.tolist() for x in right] == [[b"d"]]


def test_the_older_names_make_datasets_too(folder: str) -> None:
    made = tf.keras.preprocessing.text_dataset_from_directory(folder, batch_size=12, shuffle=False)
    texts, labels = made.get_single_element()
    assert texts[0] == b"cat 0"
    assert labels.tolist() == [0] * 6 + [1] * 6


def test_sounds_keep_their_rate(folder: str) -> None:
    with pytest.raises(
        ImportError, match=r"(?s)sampling_rate needs TensorFlow.*resample the files"
    ):
        tf.keras.utils.audio_dataset_from_directory(folder, sampling_rate=4000)


def test_attributes_belong_to_one_dataset() -> None:
    data: Any = tf.data.Dataset.range(3)
    data.class_names = ["a"]
    assert data.class_names == ["a"]
    with pytest.raises(AttributeError, match="class_names"):
        _ = data.batch(2).class_names
