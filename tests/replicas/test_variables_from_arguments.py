"""Variables that a `function` creates with initial values that depend on its arguments."""

import pytest

import evenfeed as tf

SYNCHRONIZATIONS = [tf.VariableSynchronization.ON_WRITE, tf.VariableSynchronization.ON_READ]


def test_a_variable_starts_with_the_argument_of_the_first_call():
    kept = []

    @tf.function
    def f(x):
        if not kept:
            kept.append(tf.Variable(2.0 * x))
        return kept[0] * x

    assert [float(f(tf.constant(x))) for x in (1.0, 3.0)] == [2.0, 6.0]


def test_a_variable_may_start_with_one_that_depends_on_an_argument():
    kept = []

    @tf.function
    def f(x):
        if not kept:
            kept.append(tf.Variable(x))
            kept.append(tf.Variable(kept[0] + 1.0))
            kept.append(tf.Variable(lambda: kept[1] * 10.0))
        kept[0].assign_add(100.0)
        return kept[0].read_value()

    assert [float(f(tf.constant(x))) for x in (2.0, 5.0)] == [102.0, 202.0]
    assert [float(v.numpy()) for v in kept] == [202.0, 3.0, 30.0]


@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
def test_copies_start_with_the_value_of_the_first_replica(synchronization):
    strategy, kept = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), []

    def step(x):
        if not kept:
            kept.append(
                tf.Variable(
                    tf.reduce_sum(x),
                    synchronization=synchronization,
                    aggregation=tf.VariableAggregation.SUM,
                )
            )
        return kept[0] + x

    rows = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([1.0 + context.replica_id_in_sync_group])
    )
    found = tf.function(lambda x: strategy.run(step, args=(x,)))(rows)
    assert [part.tolist() for part in found.values] == [[2.0], [3.0]]
    assert [float(copy) for copy in kept[0].values] == [1.0, 1.0]


@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
def test_copies_may_start_with_an_argument_in_the_scope(synchronization):
    strategy, kept = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), []

    @tf.function
    def f(x):
        if not kept:
            kept.append(
                tf.Variable(
                    x, synchronization=synchronization, aggregation=tf.VariableAggregation.MEAN
                )
            )
            kept.append(tf.Variable(kept[0] * 2.0))
        return kept[0] + x

    with strategy.scope():
        assert [float(f(tf.constant(x))) for x in (2.0, 3.0)] == [4.0, 5.0]
    assert [[float(copy) for copy in v.values] for v in kept] == [[2.0, 2.0], [4.0, 4.0]]
