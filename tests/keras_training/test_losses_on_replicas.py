"""Losses of Keras on replicas: a custom loop trains as one device does."""

import numpy as np
import pytest
from tests.mirroring import WAYS, mirrored, parts, run

import evenfeed as tf

keras = tf.keras
ROWS = np.random.default_rng(0).normal(size=(8, 3)).astype("f4")
LABELS = ROWS.sum(1, keepdims=True)


def _model():
    return keras.Sequential(
        [
            keras.layers.Input((3,)),
            keras.layers.Dense(
                1, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L2(0.1)
            ),
        ]
    )


def _train(strategy, loss_of):
    with strategy.scope():
        model, optimizer = _model(), keras.optimizers.SGD(0.1)
        model.compile(loss="mse")

    def step(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = loss_of(model, y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    dataset = tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).batch(8).repeat(3)
    batches = strategy.experimental_distribute_dataset(dataset)
    losses = [strategy.reduce("SUM", strategy.run(step, args=(b,)), axis=None) for b in batches]
    return [*map(float, losses), *model.get_weights()[0].ravel().tolist()]


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize(
    "loss_of",
    [
        lambda model, y, guess: keras.losses.MeanSquaredError()(y, guess),
        lambda model, y, guess: model.compute_loss(y=y, y_pred=guess),
    ],
    ids=["loss", "compute_loss"],
)
def test_a_mean_loss_trains_replicas_as_one_device(loss_of, replicas):
    alone = _train(tf.distribute.OneDeviceStrategy("CPU:0"), loss_of)
    np.testing.assert_allclose(_train(mirrored(replicas), loss_of), alone, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("reduction", "share"), [("sum_over_batch_size", 0.5), ("sum", 1), (None, 1)]
)
def test_a_mean_loss_is_divided_by_the_number_of_replicas(way, reduction, share):
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    found = parts(mirrored(2), run(way, mirrored(2), lambda: loss(ROWS, 2 * ROWS)))
    np.testing.assert_allclose(found, [share * np.asarray(loss(ROWS, 2 * ROWS))] * 2, rtol=1e-6)


def test_fit_on_replicas_reports_the_loss_of_the_batch():
    strategy = mirrored(2)
    with strategy.scope():
        model = _model()
        model.compile(keras.optimizers.SGD(0.1), "mse")
        dataset = tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).batch(8)
        found = model.fit(dataset, epochs=2, verbose=0).history["loss"]
    lone = _model()
    lone.compile(keras.optimizers.SGD(0.1), "mse")
    expected = lone.fit(ROWS, LABELS, batch_size=8, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("aggregation", list(tf.VariableAggregation))
def test_an_optimizer_assigns_every_copy_once_and_warns_of_nothing(way, aggregation):
    strategy = mirrored(2)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0], aggregation=aggregation)
        optimizer = keras.optimizers.SGD(1.0)
    gradient = tf.constant([1.0, 1.0])
    run(way, strategy, lambda: optimizer.apply_gradients([(gradient, v)]))
    assert [x.tolist() for x in strategy.experimental_local_results(v)] == [[-1.0, 0.0]] * 2
