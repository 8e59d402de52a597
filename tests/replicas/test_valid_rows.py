"""Sums and means over valid rows equal those over the rows of the dataset, including gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

ROWS = np.random.default_rng(0).random((7, 3)).astype(np.float32)
WEIGHTS = jnp.ones(3)


def strategy_of(count):
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])


def steps(strategy, size=4):
    """Return each step with its rows."""
    options = tf.distribute.InputOptions(pad_partial_batches=True)
    dataset = tf.data.Dataset.from_tensor_slices(ROWS).batch(size)
    whole = [ROWS[start : start + size] for start in range(0, len(ROWS), size)]
    return zip(strategy.experimental_distribute_dataset(dataset, options), whole, strict=True)


def losses(weights, x):
    return (x @ weights - 1) ** 2


def training_step(x, valid):
    def loss(weights):
        return tf.distribute.valid_mean(losses(weights, x), valid)

    value, gradient = jax.value_and_grad(loss)(WEIGHTS)
    return value, tf.distribute.get_replica_context().all_reduce("MEAN", gradient)


def everywhere(strategy, value):
    return [np.asarray(part) for part in strategy.experimental_local_results(value)]


@pytest.mark.parametrize(
    ("count", "compiled"), [(1, False), (2, False), (1, True), (3, True), (8, True)]
)
def test_the_mean_and_its_gradient_are_those_of_the_real_rows(count, compiled):
    strategy = strategy_of(count)

    def run(x, valid):
        return strategy.run(training_step, args=(x, valid))

    call = tf.function(run) if compiled else run
    for (x, valid), rows in steps(strategy):
        expected = jax.value_and_grad(lambda w, rows=rows: losses(w, rows).mean())(WEIGHTS)
        for found, wanted in zip(call(x, valid), expected, strict=True):
            for part in everywhere(strategy, found):
                np.testing.assert_allclose(part, wanted, rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_reduce_counts_valid_rows_alone(count, compiled):
    strategy = strategy_of(count)

    def both(x, valid):
        return [strategy.reduce(op, x, axis=0, valid=valid) for op in ("SUM", "MEAN")]

    call = tf.function(both) if compiled else both
    for (x, valid), rows in steps(strategy):
        total, mean = call(x, valid)
        np.testing.assert_allclose(total, rows.sum(0), rtol=1e-5)
        np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-5)


def test_a_mean_of_no_valid_row_is_zero_for_training_and_nan_for_reduce():
    strategy = strategy_of(2)
    (x, _), _ = next(iter(steps(strategy)))
    none = tf.distribute.PerReplica([jnp.zeros(2, bool)] * 2)
    step = tf.function(lambda x, valid: strategy.run(training_step, args=(x, valid)))
    value, gradient = step(x, none)
    assert [part.tolist() for part in everywhere(strategy, value)] == [0.0, 0.0]
    assert not np.any(everywhere(strategy, gradient))
    assert np.isnan(strategy.reduce("MEAN", x, axis=0, valid=none)).all()
    assert strategy.reduce("SUM", x, axis=0, valid=none).tolist() == [0, 0, 0]


def test_what_stands_in_other_rows_does_not_matter():
    strategy = strategy_of(2)
    x = tf.distribute.PerReplica([jnp.array([1.0, jnp.nan]), jnp.array([jnp.inf, 3.0])])
    valid = tf.distribute.PerReplica([jnp.array([True, False]), jnp.array([False, True])])
    assert float(strategy.reduce("MEAN", x, axis=0, valid=valid)) == 2.0
    means = strategy.run(tf.distribute.valid_mean, args=(x, valid))
    assert [part.item() for part in everywhere(strategy, means)] == [2.0, 2.0]


def test_parts_of_unlike_lengths_are_reduced():
    strategy = strategy_of(2)
    x = tf.distribute.PerReplica([jnp.array([1, 2, 3]), jnp.array([10])])
    valid = tf.distribute.PerReplica([jnp.array([True, False, True]), jnp.array([True])])
    assert int(strategy.reduce("SUM", x, axis=0, valid=valid)) == 14
    assert float(strategy.reduce("MEAN", x, axis=(0,), valid=valid)) == pytest.approx(14 / 3)


def test_without_a_strategy_it_is_the_mean_of_the_rows():
    assert float(tf.distribute.valid_mean([1.0, 2.0, 9.0], [True, True, False])) == 1.5


def test_across_replicas_reduce_is_named():
    strategy = strategy_of(2)
    x = tf.distribute.PerReplica([jnp.ones(2)] * 2)
    with error_saying(
        RuntimeError,
        "valid_mean was called across replicas, but it must be called by each replica inside run().",
        fix='across replicas, write strategy.reduce("MEAN", value, axis=0, valid=valid).',
    ):
        tf.distribute.valid_mean(x, x)
    with strategy.scope(), pytest.raises(RuntimeError, match="across replicas"):
        tf.distribute.valid_mean(jnp.ones(2), jnp.ones(2))


@pytest.mark.parametrize("axis", [None, 1, -1, (0, 1)])
def test_rows_lie_along_axis_0(axis):
    strategy = strategy_of(2)
    x = tf.distribute.PerReplica([jnp.ones((2, 2))] * 2)
    with pytest.raises(ValueError, match="valid marks rows, so axis must be 0, but got"):
        strategy.reduce("MEAN", x, axis=axis, valid=x)


@pytest.mark.parametrize(("values", "valid"), [(jnp.ones(3), jnp.ones(2)), (1.0, jnp.ones(1))])
def test_there_is_one_mark_for_each_row(values, valid):
    with pytest.raises(InvalidArgumentError, match="pass one bool for each row of the values"):
        tf.distribute.valid_mean(values, valid)
