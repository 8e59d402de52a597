"""Models that were created in the scope of a strategy train on all of its replicas, as one device does."""

import threading
from typing import Any

import numpy as np
import pytest
from tests.keras_training.models import DATA, X, Y, classifier
from tests.keras_training.test_fitting import assert_same, of_arrays

import evenfeed as tf


@pytest.fixture(scope="module")
def strategy() -> Any:
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])


@pytest.mark.parametrize("kind", ["dataset", "distributed", "arrays", "odd batches"])
def test_training_equals_that_of_one_device(strategy: Any, kind: str) -> None:
    with strategy.scope():
        model = classifier()
    size = 14 if kind == "odd batches" else 16  # 70 rows: the last of 16 is short
    data: Any = DATA.batch(size)
    check = data
    if kind == "distributed":
        data = strategy.experimental_distribute_dataset(data)
    if kind == "arrays":
        found = model.fit(X, Y, batch_size=size, shuffle=False, epochs=3, verbose=0)
    else:
        found = model.fit(data, epochs=3, verbose=0)
    alone = classifier()
    history = alone.fit(X, Y, batch_size=size, shuffle=False, epochs=3, verbose=0).history
    assert_same(found.history, history)
    for own, expected in zip(model.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)
    assert all(v.value.sharding == strategy.sharding() for v in model.variables)
    assert model.evaluate(check, verbose=0) == pytest.approx(
        alone.evaluate(X, Y, verbose=0), rel=1e-4
    )
    np.testing.assert_allclose(
        model.predict(check, verbose=0), alone.predict(X, verbose=0), rtol=1e-3, atol=1e-5
    )


def test_every_replica_computes_its_rows(strategy: Any) -> None:
    with strategy.scope():
        model = classifier()
    batch = next(iter(strategy.experimental_distribute_dataset(DATA.batch(16))))[0].array
    assert batch.sharding == strategy.sharding("replica")
    model.fit(DATA.batch(16), verbose=0)
    outputs = model(batch)
    assert [shard.data.shape for shard in outputs.addressable_shards] == [(4, 2)] * 4


def test_a_dataset_function_gives_each_replica_a_batch(strategy: Any) -> None:
    def dataset_fn(context: Any) -> Any:
        return DATA.batch(context.get_per_replica_batch_size(16))

    with strategy.scope():
        model = classifier()
        data = strategy.distribute_datasets_from_function(dataset_fn)
        found = model.fit(data, epochs=2, verbose=0).history
    assert_same(found, of_arrays(epochs=2))


def test_class_weights_apply_to_distributed_datasets(strategy: Any) -> None:
    with strategy.scope():
        model = classifier()
    data = strategy.experimental_distribute_dataset(DATA.batch(16))
    found = model.fit(data, class_weight={0: 2.0}, verbose=0).history
    weights = np.where(Y == 0, 2.0, 1.0)
    expected = classifier().fit(X, Y, 16, sample_weight=weights, shuffle=False, verbose=0)
    assert_same(found, expected.history)


def test_batches_of_arrays_train_too(strategy: Any) -> None:
    with strategy.scope():
        model = classifier()
    alone = classifier()
    for rows in (slice(0, 16), slice(16, 23)):
        expected = alone.train_on_batch(X[rows], Y[rows], return_dict=True)
        found = model.train_on_batch(X[rows], Y[rows], return_dict=True)
        assert found == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(model.predict_on_batch(X), alone.predict_on_batch(X), 1e-3, 1e-5)


def test_what_compile_gets_from_outside_of_the_scope_is_replicated(strategy: Any) -> None:
    optimizer, metric = tf.keras.optimizers.Adam(), tf.keras.metrics.Mean("outside")
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer, "mse", metrics=[tf.keras.metrics.MeanAbsoluteError()])
    metric.update_state(1.0)
    model.fit(DATA.batch(16), verbose=0)
    assert {v.value.sharding for v in optimizer.variables} == {strategy.sharding()}


def test_a_model_from_outside_of_the_scope_can_be_trained_inside(strategy: Any) -> None:
    model = classifier()
    with strategy.scope():
        found = model.fit(DATA.batch(16), epochs=2, verbose=0)
    assert_same(found.history, of_arrays(epochs=2))


def test_leaving_the_scope_restores_the_distribution_of_keras(strategy: Any) -> None:
    current = tf.keras.distribution.distribution
    own = tf.keras.distribution.DataParallel(devices=["cpu:0", "cpu:1"])
    other = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    tf.keras.distribution.set_distribution(own)
    try:
        with strategy.scope():
            with strategy.scope():
                assert current().num_model_replicas == 4
            assert current().num_model_replicas == 4
        assert current() is own
        with pytest.raises(RuntimeError, match="is used inside the scope of"), strategy.scope():
            other.scope().__enter__()
        assert current() is own
    finally:
        tf.keras.distribution.set_distribution(None)
    tf.distribute.experimental_set_strategy(strategy)
    try:
        assert current().num_model_replicas == 4
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert current() is None


def test_each_thread_has_its_own_scope(strategy: Any) -> None:
    seen: list[Any] = []
    with strategy.scope():
        thread = threading.Thread(target=lambda: seen.append(tf.keras.distribution.distribution()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_layers_see_the_strategy_of_their_model(strategy: Any) -> None:
    seen: list[Any] = []

    class Looks(tf.keras.layers.Layer):
        def call(self, x: Any) -> Any:
            seen.append(tf.distribute.get_strategy())
            return x

    with strategy.scope():
        model = tf.keras.Sequential([Looks(), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.fit(DATA.batch(16), verbose=0)
    assert set(seen) == {strategy}


def test_one_device_strategies_place_the_model(strategy: Any) -> None:
    one = tf.distribute.OneDeviceStrategy("CPU:3")
    with one.scope():
        model = classifier()
    assert_same(model.fit(DATA.batch(16), verbose=0).history, of_arrays())
    assert {d.id for v in model.variables for d in v.value.devices()} == {3}


def test_a_dataset_of_other_replicas_is_an_error(strategy: Any) -> None:
    data = strategy.experimental_distribute_dataset(DATA.batch(16))
    with pytest.raises(ValueError, match=r"(?s)over other replicas.*with strategy.scope"):
        classifier().fit(data, verbose=0)


@pytest.mark.parametrize("size", [16, 14])
def test_a_custom_loop_equals_that_of_one_device(strategy: Any, size: int) -> None:
    """Under `evenfeed.keras`, which replaces methods of Keras's variables too."""

    def trained(over: Any) -> Any:
        with over.scope():
            model, optimizer = classifier(), tf.keras.optimizers.Adam(0.1)

        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                each = tf.keras.losses.sparse_categorical_crossentropy(y, model(x), True)
                loss = tf.nn.compute_average_loss(each, global_batch_size=size)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        @tf.function
        def train(batch: Any) -> Any:
            return over.reduce("SUM", over.run(step, args=batch), axis=None)

        data = over.experimental_distribute_dataset(DATA.batch(size))
        return [float(train(batch)) for batch in data], model.get_weights()

    found, expected = trained(strategy), trained(tf.distribute.OneDeviceStrategy("CPU:0"))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    for own, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-4)
