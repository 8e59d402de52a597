"""Recurrent Keras layers with a tape on replicas: masks, states and several metrics."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
from tests.mirroring import WAYS, each, mirrored, parts, run

import evenfeed as tf

WORDS = np.array([[1, 2, 3, 0], [4, 5, 0, 0], [2, 2, 2, 2], [3, 0, 0, 0]])


def _model(layer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Embedding(6, 3, mask_zero=True), layer])
    model(WORDS[:2])
    return model


def _halves(strategy):
    return each(strategy, lambda i: jnp.asarray(WORDS[2 * int(i) : 2 * int(i) + 2]))


@pytest.mark.parametrize("way", WAYS)
def test_each_replica_has_the_gradients_of_jax_through_masks_and_loops(way):
    model = _model(keras.layers.LSTM(2))
    metrics = [keras.metrics.Mean(), keras.metrics.MeanSquaredError()]

    others = [variable.value for variable in model.non_trainable_variables]

    def loss_of(weights, x):
        found, _ = model.stateless_call(weights, others, x, training=True)
        return jnp.sum(found**2)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x, training=True) ** 2)
        metrics[0].update_state(loss)
        metrics[1].update_state(jnp.zeros(1), loss[None])
        return loss, tape.gradient(loss, model.trainable_variables)

    values = [variable.value for variable in model.trainable_variables]
    wanted = [jax.jit(jax.value_and_grad(loss_of))(values, WORDS[at : at + 2]) for at in (0, 2)]
    strategy = mirrored(2)
    found = run(way, strategy, step, _halves(strategy))
    for part, own in zip(parts(strategy, found), wanted, strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-6), part, own)
    losses = [float(loss) for loss, _ in wanted]
    assert float(metrics[0].result()) == pytest.approx(np.mean(losses), rel=1e-4)
    assert float(metrics[1].result()) == pytest.approx(np.mean(np.square(losses)), rel=1e-4)


def test_states_of_rows_are_not_averaged_over_replicas():
    model, strategy = _model(keras.layers.GRU(2, stateful=True)), mirrored(2)
    with pytest.raises(ValueError, match=r"different values to the Keras variable '.*rnn_state'"):
        run("compiled", strategy, model, _halves(strategy))
