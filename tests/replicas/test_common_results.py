"""Uneven parts: results that all replicas compute in the same way stay one value, others do not."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tests.mirroring import context, each, mirrored, number, parts, run

import evenfeed as tf

Mirrored, PerReplica = tf.distribute.Mirrored, tf.distribute.PerReplica
BIG = np.arange(100_000, dtype=np.float32)


def total(x):
    return context().all_reduce("SUM", x.sum())


def uneven(strategy):
    count = strategy.num_replicas_in_sync
    return each(strategy, lambda r: jnp.arange(float(count - r)) + 1)


ALIKE = {
    "a sum": total,
    "computed from sums": lambda x: total(x) * 2 + total(x**2),
    "a constant": lambda x: jnp.float32(3),
    "a constant array": lambda x: total(x) * jnp.array([1.0, 2.0]),
    "a large array of a closure": lambda x: total(x) + BIG,
    "in a jit": lambda x: jax.jit(lambda t: jnp.sin(t) + 1)(total(x)),
    "in a scan": lambda x: jax.lax.scan(lambda c, _: (c * 2, c), total(x), None, length=3),
    "in a branch": lambda x: jax.lax.cond(total(x) > 3, jnp.sin, jnp.cos, total(x)),
    "with a rule for gradients": lambda x: jax.nn.relu(total(x)),
    "drawn": lambda x: jax.random.normal(jax.random.key(3), (2,)) + total(x),
    "a sum of sums": lambda x: total(total(x) * x),
}
UNLIKE = {
    "its own part": lambda x: x.sum(),
    "its number": lambda x: number() + total(x),
    "by its length": lambda x: total(x) / x.shape[0],
    "by its length, in a jit": lambda x: jax.jit(lambda t: t / x.shape[0])(total(x)),
    "by its length, in a scan": lambda x: jax.lax.scan(
        lambda c, _: (c * 2, None), total(x), None, length=x.shape[0]
    )[0],
    "an array of its length": lambda x: total(x) + np.arange(x.shape[0]).sum(),
    "constants of its length": lambda x: total(x) + jnp.array([x.shape[0], 1]),
    "called back": lambda x: jax.pure_callback(
        np.float32, jax.ShapeDtypeStruct((), np.float32), total(x)
    ),
}


@pytest.mark.parametrize("what", ALIKE)
def test_what_is_computed_alike_of_sums_is_one_value(what):
    strategy = mirrored(3)
    value = uneven(strategy)
    found = run("compiled", strategy, ALIKE[what], value)
    leaves = jax.tree.leaves(found, is_leaf=lambda leaf: isinstance(leaf, Mirrored))
    assert all(isinstance(leaf, Mirrored) for leaf in leaves)
    same(parts(strategy, found), parts(strategy, run("eager", strategy, ALIKE[what], value)))


@pytest.mark.parametrize("what", UNLIKE)
def test_what_may_differ_is_each_replicas_own(what):
    strategy = mirrored(3)
    value = uneven(strategy)
    found = run("compiled", strategy, UNLIKE[what], value)
    assert isinstance(found, PerReplica)
    same(parts(strategy, found), parts(strategy, run("eager", strategy, UNLIKE[what], value)))


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), one, other)


def test_results_keep_their_order_where_some_are_alike():
    strategy = mirrored(3)

    def step(x):
        sums = total(x)
        return {"own": x * 2, "sum": sums, "rows": jnp.float32(x.shape[0]), "one": sums + 1}

    value = uneven(strategy)
    found = run("compiled", strategy, step, value)
    kinds = {name: type(result) for name, result in found.items()}
    assert kinds == {"own": PerReplica, "sum": Mirrored, "rows": PerReplica, "one": Mirrored}
    same(parts(strategy, found), parts(strategy, run("eager", strategy, step, value)))


def test_copies_have_the_same_bits():
    strategy = mirrored(4)
    found = run("compiled", strategy, lambda x: jnp.sin(total(jnp.sin(x)) * BIG), uneven(strategy))
    first, *others = parts(strategy, found)
    for other in others:
        np.testing.assert_array_equal(first, other)


# --- training over epochs -----------------------------------------------------------------------


def batches(strategy, sizes):
    """Return a batch for each number of rows, split over the replicas."""
    rng = np.random.default_rng(0)
    steps = []
    for size in sizes:
        rows = rng.normal(size=(size, 3)).astype(np.float32)
        dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1))).batch(size)
        steps += list(strategy.experimental_distribute_dataset(dataset))
    return steps


def training(strategy, optimizer, traced):
    def step(params, state, x, y):
        traced.append(x.shape)
        grads = jax.grad(lambda p: ((x @ p["w"] + p["b"] - y) ** 2).sum())(params)
        grads = context().all_reduce("MEAN", grads)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return lambda *given: strategy.run(step, args=given)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("order", ["uneven last", "uneven first"])
def test_functional_training_traces_nothing_after_the_first_epoch(count, order):
    strategy, optimizer, traced = mirrored(count), optax.adam(0.1), []
    sizes = [4 * count, 4 * count, count + 1]
    steps = batches(strategy, sizes if order == "uneven last" else sizes[::-1])
    train = tf.function(training(strategy, optimizer, traced))
    params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
    state = optimizer.init(params)
    counts = []
    for _ in range(4):
        for x, y in steps:
            params, state = train(params, state, x, y)
        counts.append(train.experimental_get_tracing_count())
        leaves = jax.tree.leaves((params, state), is_leaf=lambda x: isinstance(x, Mirrored))
        assert all(isinstance(leaf, Mirrored) for leaf in leaves)
    # One for parameters that no step has returned yet, one for even and one for uneven parts. Where the
    # uneven batch comes first, it comes again with the parameters that a step has returned.
    assert counts == ([3] * 4 if order == "uneven last" else [2, 3, 3, 3])
    for copies in (strategy.experimental_local_results(leaf) for leaf in leaves):
        for copy in copies[1:]:
            np.testing.assert_array_equal(copies[0], copy)


def mean_loss(params, x, y):
    return ((x @ params["w"] + params["b"] - y) ** 2).sum() / 3


def test_training_on_uneven_parts_is_that_on_one_device():
    strategy, optimizer = mirrored(3), optax.adam(0.1)
    steps = batches(strategy, [12, 4, 12, 5])
    train = tf.function(training(strategy, optimizer, []))
    params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
    state = optimizer.init(params)
    own, own_state = params, state
    for x, y in steps:
        params, state = train(params, state, x, y)
        grads = jax.grad(mean_loss)(own, np.concatenate(x.values), np.concatenate(y.values))
        updates, own_state = optimizer.update(grads, own_state, own)
        own = optax.apply_updates(own, updates)
    found = parts(strategy, params)[0]
    np.testing.assert_allclose(found["w"], own["w"], rtol=1e-4)
    np.testing.assert_allclose(found["b"], own["b"], rtol=1e-4)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("way", ["a function", "a loop in a function", "a function in run"])
def test_training_with_variables_traces_nothing_after_the_first_epoch(count, way):
    strategy, traced = mirrored(count), []
    with strategy.scope():
        w = tf.Variable(jnp.zeros(3), aggregation=tf.VariableAggregation.MEAN)

    def step(x, y):
        traced.append(x.shape)
        grad = jax.grad(lambda w: ((x @ w - y) ** 2).sum())(w.value())
        w.assign_sub(0.01 * grad)

    steps = batches(strategy, [4 * count, 4 * count, count + 1])
    compiled = tf.function(step)

    def epoch(train):
        for x, y in steps:
            train(x, y)

    one = tf.function(lambda x, y: strategy.run(step, args=(x, y)))
    epochs = {
        "a function": lambda: epoch(one),
        "a function in run": lambda: epoch(lambda x, y: strategy.run(compiled, args=(x, y))),
        "a loop in a function": tf.function(lambda: epoch(lambda x, y: strategy.run(step, args=(x, y)))),
    }  # fmt: skip
    epochs[way]()
    first = len(traced)
    for _ in range(3):
        epochs[way]()
    assert len(traced) == first
