"""Keras models, optimizers and metrics in compiled functions and on replicas."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
from tests.mirroring import WAYS, context, each, mirrored, parts, run

import evenfeed as tf

ROWS = np.random.default_rng(0).normal(size=(8, 6)).astype("f4")


def _dense(seed=0, **options):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.layers.Dense(4, **options)])
    model.build((None, 6))
    return model


def _step(model, optimizer):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x, training=True) ** 2) / 8.0
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def _halves(strategy):
    size = len(ROWS) // strategy.num_replicas_in_sync
    return each(strategy, lambda i: jnp.asarray(ROWS[int(i) * size : (int(i) + 1) * size]))


class _SelfAttention(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.layer = keras.layers.MultiHeadAttention(2, 4)

    def call(self, x):
        return self.layer(x, x)


LAYERS = {
    "dense": (lambda: keras.layers.Dense(3, activation="gelu"), (4, 5)),
    "conv": (lambda: keras.layers.Conv2D(3, 3), (2, 6, 6, 2)),
    "separable": (lambda: keras.layers.SeparableConv2D(3, 3), (2, 6, 6, 2)),
    "batch norm": (keras.layers.BatchNormalization, (4, 5)),
    "layer norm": (keras.layers.LayerNormalization, (4, 5)),
    "lstm": (lambda: keras.layers.LSTM(4), (2, 5, 3)),
    "gru": (lambda: keras.layers.GRU(4), (2, 5, 3)),
    "attention": (_SelfAttention, (2, 5, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers_are_those_of_jax(name):
    make, shape = LAYERS[name]
    layer, x = (
        keras.Sequential([make()]),
        jnp.asarray(np.random.default_rng(1).normal(size=shape), "f4"),
    )
    layer(x)

    def loss_of(weights, others):
        found, _ = layer.stateless_call(weights, others, x, training=True)
        return jnp.mean(found**2)

    values = [
        [v.value for v in group]
        for group in (layer.trainable_variables, layer.non_trainable_variables)
    ]
    wanted = jax.jit(jax.value_and_grad(loss_of))(*values)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x, training=True) ** 2)
        return loss, tape.gradient(loss, layer.trainable_variables)

    for found in (tf.function(step)(x), step(x)):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-6), found, wanted)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_train_as_one_device_does_and_gradients_are_summed_before_they_are_clipped(
    way, replicas
):
    rows = ROWS[:6]
    alone, shared = _dense(), _dense()
    losses = [
        float(_step(alone, optimizer)(jnp.asarray(rows)))
        for optimizer in [keras.optimizers.Adam(0.1, global_clipnorm=0.5)]
        for _ in range(3)
    ]
    strategy, optimizer = mirrored(replicas), keras.optimizers.Adam(0.1, global_clipnorm=0.5)
    size = len(rows) // replicas
    x = each(strategy, lambda i: jnp.asarray(rows[int(i) * size : (int(i) + 1) * size]))
    step = _step(shared, optimizer)
    found = [sum(parts(strategy, run(way, strategy, step, x))) for _ in range(3)]
    assert int(optimizer.iterations.value) == 3
    np.testing.assert_allclose(found[0], losses[0], 1e-5)
    for a, b in zip(alone.get_weights(), shared.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


def test_a_compiled_step_is_traced_once_and_copies_nothing_the_second_time():
    strategy, model = mirrored(2), _dense()
    step = _step(model, keras.optimizers.SGD(0.1))
    function = tf.function(lambda x: strategy.run(step, args=(x,)))
    x = _halves(strategy)
    function(x)
    kernel = model.weights[0]
    assert len(kernel.value.sharding.device_set) == 1, "code outside finds it where it was"
    with jax.transfer_guard("disallow_explicit"):
        function(x)
    assert function.experimental_get_tracing_count() == 1


def test_a_compiled_step_that_only_reads_a_model_copies_it_to_the_replicas_once():
    strategy, model = mirrored(2), _dense()
    function = tf.function(lambda x: strategy.run(model, args=(x,)))
    x = _halves(strategy)
    expected = parts(strategy, function(x))
    with jax.transfer_guard("disallow_explicit"):
        again = function(x)
    np.testing.assert_array_equal(parts(strategy, again), expected)


def test_a_step_reads_what_other_code_has_assigned_since_the_last_one():
    strategy, model = mirrored(2), _dense()
    step = _step(model, keras.optimizers.SGD(0.1))
    function = tf.function(lambda x: strategy.run(step, args=(x,)))
    x = _halves(strategy)
    function(x)
    kept = [weight * 2 for weight in model.get_weights()]
    model.set_weights(kept)
    loss = function(x)
    model.set_weights(kept)
    np.testing.assert_allclose(parts(strategy, loss), parts(strategy, function(x)), 1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_metrics_are_summed_over_replicas_and_can_be_reset_on_them(way):
    strategy, mean = mirrored(2), keras.metrics.Mean()
    x = each(strategy, lambda i: jnp.asarray([1.0, 2.0]) * (int(i) + 1))
    for _ in range(2):
        run(way, strategy, mean.update_state, x)
    assert (float(mean.total.value), float(mean.count.value)) == (18.0, 8.0)
    run(way, strategy, mean.reset_state)
    assert float(mean.total.value) == 0.0
    run(way, strategy, mean.update_state, x)
    assert float(mean.result()) == 2.25


@pytest.mark.parametrize("way", WAYS)
def test_statistics_are_averaged_over_replicas(way):
    strategy, layer = mirrored(2), keras.layers.BatchNormalization(momentum=0.0)
    x = _halves(strategy)
    run(way, strategy, lambda x: layer(x, training=True), x)
    halves = ROWS.reshape(2, 4, 6)
    np.testing.assert_allclose(layer.moving_mean.numpy(), halves.mean(1).mean(0), 1e-5, 1e-6)
    np.testing.assert_allclose(layer.moving_variance.numpy(), halves.var(1).mean(0), 1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_dropout_differs_between_replicas_and_between_steps(way):
    strategy, layer = mirrored(2), keras.layers.Dropout(0.5, seed=1)
    x = each(strategy, lambda i: jnp.ones(64))
    first, second = (
        parts(strategy, run(way, strategy, lambda x: layer(x, training=True), x)) for _ in range(2)
    )
    masks = {tuple(mask.tolist()) for mask in (*first, *second)}
    assert len(masks) == 4
    assert layer.seed_generator.state.numpy()[1] == 2


@pytest.mark.parametrize("way", WAYS)
def test_replicas_that_disagree_are_an_error_that_names_the_variable(way):
    strategy, weight = mirrored(2), keras.Variable(1.0, name="own")
    with pytest.raises(ValueError, match="different values to the Keras variable 'own'"):
        run(
            way,
            strategy,
            lambda: weight.assign(tf.cast(context().replica_id_in_sync_group, tf.float32)),
        )
    assert float(weight.value) == 1.0


def test_layers_and_optimizers_may_create_variables_in_the_first_call():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Dense(5, activation="relu"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    step = tf.function(_step(model, optimizer))
    losses = [float(step(jnp.asarray(ROWS))) for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert len(model.weights) == 4
    assert all(isinstance(v.value, jax.Array) and v.numpy().size for v in optimizer.variables)


def test_evenfeed_variables_and_keras_variables_mix():
    model, scale = _dense(), tf.Variable(2.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x)) * scale
        of_scale, of_model = tape.gradient(loss, (scale, model.trainable_variables))
        scale.assign_sub(0.01 * of_scale)
        model.trainable_variables[1].assign(of_model[1])
        return loss

    before = model.get_weights()[0]
    step(jnp.asarray(ROWS))
    np.testing.assert_allclose(model.get_weights()[1], np.full(4, 16.0))
    np.testing.assert_allclose(scale.numpy(), 2.0 - 0.01 * (ROWS @ before).sum(), 1e-4)


def test_an_error_in_a_step_assigns_nothing_and_an_assignment_in_a_loop_is_an_error():
    count = keras.Variable(0.0, trainable=False, name="count")

    @tf.function
    def fails(x):
        count.assign_add(1.0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails(1.0)

    @tf.function
    def in_loop():
        jax.lax.fori_loop(0, 2, lambda i, c: (count.assign_add(1.0), c)[1], 0.0)

    with pytest.raises(
        ValueError, match="'count' is assigned inside a function that JAX transforms"
    ):
        in_loop()
    assert float(count.value) == 0.0


def test_losses_of_layers_and_the_result_of_apply_gradients():
    class Penalized(keras.layers.Layer):
        def call(self, x):
            self.add_loss(jnp.sum(x**2))
            return x

    model = keras.Sequential([Penalized(), keras.layers.Dense(2, kernel_regularizer="l2")])
    optimizer = keras.optimizers.SGD(0.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(model(x)), *model.losses])
        gradients = tape.gradient(loss, model.trainable_variables)
        return len(model.losses), optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )

    count, iterations = step(jnp.asarray(ROWS))
    assert (int(count), int(iterations)) == (2, 1)


def test_a_model_trains_with_fit_before_and_after_a_custom_step():
    model = _dense()
    model.compile("sgd", "mse")
    model.fit(ROWS, ROWS[:, :4], verbose=0)
    before = model.get_weights()[0]
    tf.function(_step(model, keras.optimizers.SGD(0.1)))(jnp.asarray(ROWS))
    between = model.get_weights()[0]
    model.fit(ROWS, ROWS[:, :4], verbose=0)
    assert not np.array_equal(before, between)
    assert not np.array_equal(between, model.get_weights()[0])


def test_the_members_of_keras_that_are_changed_are_there():
    """A version of Keras with other members must fail here."""
    from keras.src.backend.common import stateless_scope
    from keras.src.backend.jax import core
    from keras.src.optimizers.base_optimizer import BaseOptimizer
    from keras.src.random.seed_generator import SeedGenerator

    for name in (
        "_direct_assign",
        "_initialize",
        "_initialize_with_initializer",
        "_maybe_autocast",
    ):
        assert callable(getattr(core.JaxVariable, name))
    assert isinstance(core.JaxVariable.value, property)
    assert callable(BaseOptimizer.apply)
    assert callable(SeedGenerator.next)
    assert callable(stateless_scope.get_stateless_scope)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"gradient_accumulation_steps": 2}, [1.0, 0.9, 0.9, 0.8]),
        (
            {"gradient_accumulation_steps": 2, "weight_decay": 0.1, "clipnorm": 1.0},
            [1.0, 0.91928935, 0.91928935, 0.8393858],
        ),
        (
            {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2},
            [0.9, 0.85, 0.75, 0.725],
        ),
    ],
)
def test_optimizers_accumulate_and_average_for_evenfeed_variables(options, wanted, compiled):
    variable, optimizer = tf.Variable([1.0, 2.0]), tf.keras.optimizers.SGD(0.1, **options)
    optimizer.build([variable])

    def step():
        optimizer.apply_gradients([(tf.constant([1.0, 1.0]), variable)])
        return variable.value()

    run_step = tf.function(step) if compiled else step
    np.testing.assert_allclose([float(run_step()[0]) for _ in wanted], wanted, 1e-6)
    assert int(optimizer._iterations.value) == len(wanted)
