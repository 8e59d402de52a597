"""flax modules used with JAX transformations, and jax.random keys, as arguments and results."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from flax.training.train_state import TrainState
from tests.mirroring import context, each, mirrored

import evenfeed as tf

ROWS = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
TARGETS = ROWS.sum(1, keepdims=True)


def batch(strategy, rows=8):
    """Return some of the rows, split over the replicas."""
    dataset = tf.data.Dataset.from_tensor_slices((ROWS[:rows], TARGETS[:rows])).batch(rows)
    (given,) = strategy.experimental_distribute_dataset(dataset)
    return given


def made():
    model = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)


def gradient(model, x, y):
    return nnx.grad(lambda model: ((model(x) - y) ** 2).sum())(model)


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_split_and_merge_work(way):
    strategy = mirrored(2)
    graphdef, state = nnx.split(made())
    alone, its_optimizer = made()

    def functional(state, x, y):
        model, optimizer = nnx.merge(graphdef, state)
        optimizer.update(model, context().all_reduce("SUM", gradient(model, x, y)))
        return nnx.state((model, optimizer))

    run = strategy.run if way == "eager" else tf.function(strategy.run)
    for _ in range(3):
        state = run(functional, args=(state, *batch(strategy)))
        its_optimizer.update(alone, gradient(alone, ROWS, TARGETS))
    own = jax.tree.map(
        lambda leaf: strategy.experimental_local_results(leaf)[0],
        state,
        is_leaf=lambda leaf: isinstance(leaf, tf.distribute.DistributedValues),
    )
    model, _ = nnx.merge(graphdef, own)
    np.testing.assert_allclose(model.kernel[...], alone.kernel[...], rtol=1e-4)


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("rows", [8, 7])
def test_a_linen_train_state_works(way, rows):
    strategy = mirrored(2)
    model = linen.Dense(1)
    start = TrainState.create(
        apply_fn=model.apply, params=model.init(jax.random.key(0), ROWS), tx=optax.adam(0.1)
    )

    def loss(params, x, y):
        return ((model.apply(params, x) - y) ** 2).sum()

    def functional(state, x, y):
        grads = jax.grad(loss)(state.params, x, y)
        return state.apply_gradients(grads=context().all_reduce("SUM", grads))

    run = strategy.run if way == "eager" else tf.function(strategy.run)
    state, own = start, start
    given = batch(strategy, rows)
    whole = ROWS[:rows], TARGETS[:rows]
    for _ in range(3):
        state = run(functional, args=(state, *given))
        own = own.apply_gradients(grads=jax.grad(loss)(own.params, *whole))
    found = state.params["params"]["kernel"]
    for copy in strategy.experimental_local_results(found):
        np.testing.assert_allclose(copy, own.params["params"]["kernel"], rtol=1e-4)


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_keys_of_random_numbers_go_in_and_out(way):
    strategy = mirrored(2)

    def draw(key, x):
        key, own = jax.random.split(key)
        return key, jax.random.normal(own) + x.sum()

    run = strategy.run if way == "eager" else tf.function(strategy.run)
    key = jax.random.key(3)
    x = each(strategy, lambda r: jnp.zeros(2))
    for _ in range(2):
        key, _ = run(draw, args=(key, x))
    own = jax.random.split(jax.random.split(jax.random.key(3))[0])[0]
    first = strategy.experimental_local_results(key)[0]
    np.testing.assert_array_equal(jax.random.key_data(first), jax.random.key_data(own))
