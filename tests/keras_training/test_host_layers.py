"""Keras's layers for text and categories work on the host. `tests/oracle` compares their results with TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import evenfeed as tf

TEXTS = ["good, fine!", "bad", "very good", "bad bad day"]
DATA = tf.data.Dataset.from_tensor_slices(TEXTS)


def vectorizer(**options: Any) -> Any:
    layer = tf.keras.layers.TextVectorization(output_sequence_length=3, **options)
    layer.adapt(DATA.batch(2))
    return layer


def test_text_is_vectorized_in_whole_columns() -> None:
    layer = vectorizer()
    labelled = tf.data.Dataset.zip((DATA, tf.data.Dataset.range(4)))
    data = labelled.map(lambda text, label: (layer(text), label + 1))
    assert "vectorised" in str(data.explain())
    assert data.element_spec[0] == tf.TensorSpec((3,), tf.int64)
    ids = np.stack([x for x, _ in data])
    np.testing.assert_array_equal(ids, layer(TEXTS))
    words = np.array(layer.get_vocabulary())[ids]
    assert words.tolist() == [
        *(["good", "fine", ""], ["bad", "", ""]),
        *(["very", "good", ""], ["bad", "bad", "day"]),
    ]


def test_text_without_a_length_is_as_long_as_its_batch() -> None:
    layer = tf.keras.layers.TextVectorization(vocabulary=["good", "bad"])
    one, other = DATA.batch(2).map(layer)
    assert (one.tolist(), other.tolist()) == ([[2, 1], [3, 0]], [[1, 2, 0], [3, 3, 1]])
    assert [row.tolist() for row in DATA.map(layer)] == [[2, 1], [3], [1, 2], [3, 3, 1]]


def test_a_batch_with_an_axis_of_length_one_is_vectorized() -> None:
    layer = vectorizer()
    data = DATA.batch(4).map(lambda text: layer(tf.expand_dims(text, -1)))
    np.testing.assert_array_equal(data.get_single_element(), layer(TEXTS))


def test_a_function_standardizes_text() -> None:
    layer = vectorizer(standardize=lambda text: tf.strings.substr(text, 0, 3))
    assert layer.get_vocabulary() == ["", "[UNK]", "bad", "ver", "goo"]


def test_a_layer_with_a_trainable_model_behind_it_learns() -> None:
    layer, layers = vectorizer(), tf.keras.layers
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = tf.keras.Sequential(
            [layers.Embedding(10, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)]
        )
        model.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True))
    labelled = tf.data.Dataset.zip((DATA, tf.data.Dataset.from_tensor_slices([1, 0, 1, 0])))
    train = labelled.repeat(8).batch(4).map(lambda text, label: (layer(text), label))
    losses = model.fit(train, epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0]


def test_ids_above_32_bits_are_exact() -> None:
    layer = tf.keras.layers.IntegerLookup(vocabulary=[2**40 + 1, 2**40 + 2])
    ids = tf.data.Dataset.from_tensor_slices(np.array([2**40 + 2, 2**40 + 1, 1]))
    assert [int(x) for x in ids.map(layer)] == [2, 1, 0]
    assert layer(np.array([2**40 + 2])).tolist() == [2]


def test_a_layer_without_a_vocabulary_says_what_to_call() -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"(?s)no vocabulary yet.*adapt"):
        tf.keras.layers.StringLookup()(["a"])


def test_a_word_that_must_be_known_is_an_error_in_a_map() -> None:
    layer = tf.keras.layers.StringLookup(vocabulary=["good"], num_oov_indices=0)
    words = tf.data.Dataset.from_tensor_slices(["good", "bad"]).map(layer)
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_oov_indices=0"):
        list(words)


def test_a_compiled_function_cannot_look_up_integers() -> None:
    layer = tf.keras.layers.IntegerLookup(vocabulary=[1, 2])
    step: Any = tf.keras.ops.vectorized_map
    with pytest.raises(TypeError, match=r"(?s)works on the host.*dataset.map"):
        step(layer, np.array([[1], [2]], np.int32))


def test_random_layers_change_images_in_maps() -> None:
    layers = tf.keras.layers
    augment = tf.keras.Sequential([layers.RandomFlip("horizontal"), layers.Rescaling(1 / 255)])
    image = np.arange(48, dtype=np.float32).reshape(4, 4, 3)
    images = tf.data.Dataset.from_tensors(image).repeat(16)
    seen = {x.tobytes() for x in images.map(lambda x: augment(x, training=True))}
    expected = {(each / 255).astype(np.float32).tobytes() for each in (image, image[:, ::-1])}
    assert len(seen) == len(expected) == 2


def test_a_space_of_features_encodes_dicts() -> None:
    space = tf.keras.utils.FeatureSpace(
        {"age": "float_normalized", "city": "string_categorical", "rooms": "integer_categorical"},
        crosses=[("city", "rooms")],
        crossing_dim=4,
    )
    rows = {"age": [1.0, 2.0, 3.0], "city": ["x", "y", "x"], "rooms": [1, 2, 1]}
    data = tf.data.Dataset.from_tensor_slices(rows)
    space.adapt(data)
    batch = data.batch(3).map(space).get_single_element()
    assert batch.shape == (3, 11)
    np.testing.assert_allclose(batch.sum(1), batch[:, 0] + 3, rtol=1e-6)  # three are one hot
    for row, features in zip(data, batch, strict=True):
        np.testing.assert_allclose(space(row), features, rtol=1e-6)
