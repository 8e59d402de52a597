"""Layers that compute with the lengths of their inputs, in models whose inputs have unknown lengths."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evenfeed as tf

ROWS = np.arange(24, dtype=np.float32).reshape(4, 6)


def layer_of(function: Callable[[Any], Any]) -> Any:
    class OfUser(tf.keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return function(inputs)

    return OfUser()


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x + tf.random.normal((tf.shape(x)[0], tf.shape(x)[1])), (None, 6)),
        (lambda x: x + tf.cast(tf.range(tf.shape(x)[-1]), tf.float32), (None, 6)),
        (lambda x: tf.reshape(x, (tf.shape(x)[0], 2, -1)), (None, 2, 3)),
        (lambda x: tf.tile(tf.ones((1, 3)), [tf.shape(x)[0], 1]), (None, 3)),
        (lambda x: x / tf.cast(tf.shape(x)[0], tf.float32), (None, 6)),
        (lambda x: tf.fill(tf.shape(x)[:1], 2.0), (None,)),
        (lambda x: tf.reshape(x, (-1, x.get_shape()[1] // 2, 2)), (None, 3, 2)),
        (lambda x: [x, tf.eye(tf.shape(x)[1])], [(None, 6), (6, 6)]),
        (lambda x: x + float(x.shape[0]), (None, 6)),
        (lambda x: x + np.zeros((x.shape[0], 6), np.float32), (None, 6)),
        (lambda x: x + np.arange(x.shape[0], dtype=np.float32)[:, None], (None, 6)),
    ],
)
def test_a_layer_computes_with_the_lengths_of_its_input(function: Any, shape: Any) -> None:
    inputs = tf.keras.Input((6,))
    model = tf.keras.Model(inputs, layer_of(function)(inputs))
    assert model.output_shape == shape
    given = [known or len(ROWS) for known in (shape if isinstance(shape, tuple) else shape[0])]
    predicted = model.predict_on_batch(ROWS)
    assert np.shape(predicted if isinstance(shape, tuple) else predicted[0]) == tuple(given)


def test_a_layer_with_weights_and_two_unknown_lengths_trains() -> None:
    class Positions(tf.keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = tf.keras.layers.Embedding(9, 4)
            self.positions = tf.keras.layers.Embedding(8, 4)

        def call(self, inputs: Any) -> Any:
            return self.tokens(inputs) + self.positions(tf.range(tf.shape(inputs)[-1]))

    inputs = tf.keras.Input((None,))
    found = Positions()(inputs)
    assert found.shape == (None, None, 4)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(found))
    model.compile("sgd", "mse")
    model.fit(np.ones((6, 5)), np.ones((6, 5, 1)), verbose=0)
    assert model.predict_on_batch(np.ones((2, 7))).shape == (2, 7, 1)


def test_an_error_in_a_layer_is_not_about_symbols() -> None:
    def wrong(x: Any) -> Any:
        return tf.reshape(x, (tf.shape(x)[0], 5))

    with pytest.raises(ValueError, match="cannot be reshaped") as caught:
        layer_of(wrong)(tf.keras.Input((6,)))
    assert "ymbolic" not in str(caught.value)


def test_a_layer_whose_own_code_has_a_type_error_is_traced_once() -> None:
    calls = []

    def wrong(x: Any) -> Any:
        calls.append(x.shape)
        return x + len("a" + 1)  # type: ignore[operator] # the subject

    with pytest.raises(TypeError, match="can only concatenate str"):
        layer_of(wrong)(tf.keras.Input((6,)))
    assert len(calls) == 1


def test_a_layer_whose_rank_depends_on_a_length_is_an_error() -> None:
    def wrong(x: Any) -> Any:
        return x if tf.shape(x)[0] > 100 else tf.reshape(x, [-1])

    with pytest.raises(
        ValueError, match="different ranks for inputs of different lengths: 1 for 96, 2"
    ):
        layer_of(wrong)(tf.keras.Input((6,)))
