"""Models whose first layers turn text into numbers take text: called, in `predict`, `evaluate` and `fit`, and saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenfeed as tf

TEXTS = np.array(["good fine nice", "bad awful", "nice good", "awful bad poor"])
LABELS = np.array([1, 0, 1, 0])
DATA = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(3)


def vectorizer() -> Any:
    layer = tf.keras.layers.TextVectorization(output_sequence_length=4)
    layer.adapt(TEXTS)
    return layer


def on_ids() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [layers.Embedding(20, 8), layers.GlobalAveragePooling1D(), layers.Dense(1)]
    )


def on_text(vectorize: Any, model: Any, **input_options: Any) -> Any:
    inputs = tf.keras.Input(shape=(1,), **input_options)
    return tf.keras.Model(inputs, model(vectorize(inputs)))


def test_a_layer_in_front_of_a_model_takes_text() -> None:
    vectorize, model = vectorizer(), on_ids()
    whole = tf.keras.Sequential([vectorize, model, tf.keras.layers.Activation("sigmoid")])
    expected = tf.sigmoid(model(vectorize(TEXTS)))
    for texts in (TEXTS, tf.constant(TEXTS), DATA.map(lambda text, _: text)):
        np.testing.assert_allclose(whole.predict(texts, verbose=0), expected, rtol=1e-5)
    np.testing.assert_allclose(whole(tf.constant(TEXTS)), expected, rtol=1e-5)
    np.testing.assert_allclose(whole.predict_on_batch(TEXTS), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [tf.string, "string"])
def test_a_model_with_an_input_of_text_is_saved_with_its_vocabulary(
    dtype: Any, tmp_path: Path
) -> None:
    model = on_text(vectorizer(), on_ids(), dtype=dtype)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(TEXTS[:, None]), model(TEXTS[:, None]))
    assert loaded.layers[1].get_vocabulary() == model.layers[1].get_vocabulary()


@pytest.mark.filterwarnings("ignore:Keras does not compile")
def test_training_on_text_equals_training_on_ids() -> None:
    vectorize, model, losses = vectorizer(), on_ids(), []
    model.build((None, 4))
    weights = model.get_weights()
    ids = DATA.map(lambda text, label: (vectorize(text), label))
    whole = on_text(vectorize, model, dtype=tf.string)
    arrays = {"x": TEXTS[:, None], "y": LABELS, "batch_size": 3, "shuffle": False}
    for trained, given in ((model, {"x": ids}), (whole, {"x": DATA}), (whole, arrays)):
        model.set_weights(weights)
        trained.compile("sgd", tf.keras.losses.BinaryCrossentropy(from_logits=True))
        losses.append(trained.fit(**given, epochs=2, verbose=0).history["loss"])
        losses[-1].append(trained.evaluate(DATA if trained is whole else ids, verbose=0))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-5)


def test_a_model_of_numbers_still_refuses_text() -> None:
    model = on_ids()
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match=r"(?s)takes numbers.*TextVectorization"):
        model.fit(DATA, verbose=0)


def test_replicas_take_arrays_of_text_and_refuse_datasets() -> None:
    vectorize = vectorizer()
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = on_ids()
        whole = on_text(vectorize, model, dtype=tf.string)
    expected = model.predict(vectorize(TEXTS), verbose=0)
    np.testing.assert_allclose(whole.predict(TEXTS[:, None], verbose=0), expected, rtol=1e-5)
    with pytest.raises(TypeError, match=r"(?s)takes numbers.*dataset.map"):
        whole.predict(DATA.map(lambda text, _: text), verbose=0)


def test_a_recurrent_model_of_text_of_any_length_trains_and_warns_that_it_is_not_compiled() -> None:
    layers = tf.keras.layers
    vectorize = layers.TextVectorization()
    vectorize.adapt(TEXTS)
    numbers = [layers.Embedding(20, 4, mask_zero=True), layers.GRU(2), layers.Dense(1)]
    model = tf.keras.Sequential([vectorize, *numbers])
    model.compile("sgd", "mse")
    with pytest.warns(
        UserWarning, match="Keras does not compile a model that takes text"
    ) as caught:
        history = model.fit(DATA.take(1), verbose=0)
    assert caught[0].filename == __file__
    assert np.isfinite(history.history["loss"]).all()
    assert model.predict(TEXTS, verbose=0).shape == (4, 1)
