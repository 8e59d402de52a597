"""Functions that run as plain Python: how they end."""

import numpy as np
import pytest
from tests.counting import counting, cut, parts

import evenfeed as tf


def test_the_end_of_the_data_in_a_function_is_an_error():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4)))

    @tf.function
    def step(steps):
        return strategy.run(lambda x: x + 1, args=(next(steps),))

    assert [part.tolist() for part in step(iterator).values] == [[1, 2], [3, 4]]
    with pytest.raises(tf.errors.OutOfRangeError, match="The data has ended"):
        step(iterator)


@pytest.fixture
def eagerly():
    assert not tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def test_functions_run_as_plain_python_where_that_is_asked_for(eagerly):
    assert tf.config.functions_run_eagerly()
    step = counting(lambda x: x + 1 if x > 0 else x)  # a branch that no trace could take
    f = tf.function(step)
    assert [f(tf.constant(1)).item(), f(tf.constant(-1)).item()] == [2, -1]
    assert step.runs == 2
    assert f.experimental_get_tracing_count() == 0


def test_replicas_run_as_plain_python_where_that_is_asked_for(eagerly):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    seen = []

    @tf.function
    def step(x):
        seen.append(int(x.sum()))  # a number, on each replica
        return tf.distribute.get_replica_context().all_reduce("SUM", x.sum())

    value = cut(strategy, np.int32([1, 2, 3, 4]))
    outer = tf.function(lambda x: strategy.run(step, args=(x,)))
    assert parts(strategy.run(step, args=(value,))) == parts(outer(value)) == [10, 10]
    assert sorted(seen) == [3, 3, 7, 7]


def test_functions_are_compiled_again_afterwards():
    step = counting(lambda x: x + 1)
    f = tf.function(step)
    f(tf.constant(1))
    tf.config.run_functions_eagerly(True)
    f(tf.constant(1))
    tf.config.run_functions_eagerly(False)
    f(tf.constant(1))
    assert step.runs == 2
