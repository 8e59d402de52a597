"""Functions that run as plain Python: how they end."""

from collections import OrderedDict
from contextlib import nullcontext

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
    step = counting(lambda x: x + 1 if x > 0 else x)  # a branch that cannot be traced
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


def of_plain_values(numbers):
    """Return a function that reads a dataset, and returns values that Python and NumPy made."""

    @tf.function
    def counted():
        count = 0
        for _ in numbers:
            count += 1
        return {
            "count": count,
            "pair": (count / 2, count > 2),
            "list": ["text", b"bytes", None],
            "numpy": (np.float64(0.5), np.arange(2)),
        }

    return counted


@pytest.mark.parametrize("in_scope", [False, True])
def test_what_python_and_numpy_made_is_returned_as_tensors(in_scope):
    counted = of_plain_values(tf.data.Dataset.range(3))
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope() if in_scope else nullcontext():
        found = counted()
    leaves = [leaf for leaf in tf.nest.flatten(found) if leaf is not None]
    assert all(map(tf.is_tensor, leaves))
    assert found["count"].numpy() == 3
    assert [part.numpy() for part in found["pair"]] == [1.5, True]
    assert [part and part.numpy() for part in found["list"]] == [b"text", b"bytes", None]
    assert [part.dtype for part in found["numpy"]] == [np.float64, np.int64]


def test_a_result_without_such_values_is_returned_as_it_is():
    held = [tf.constant(1), tf.data.Dataset.range(2), None]

    @tf.function
    def kept():
        for _ in tf.data.Dataset.range(1):
            pass
        return held

    assert kept() is held


def test_a_function_gets_plain_values_of_another_one():
    @tf.function
    def name():
        for _ in tf.data.Dataset.range(1):
            pass
        return "a"

    @tf.function
    def outer():
        return {"a": 5}[name()]

    assert outer().numpy() == 5


def test_a_later_assignment_does_not_change_what_a_function_returned():
    v = tf.Variable(1.0)

    @tf.function
    def add(_text):
        v.assign_add(1.0)
        return v, {"a": [v]}

    @tf.function
    def outer(text):
        inner = add(text)
        v.assign_add(10.0)
        return inner

    once, twice = add(tf.constant("a")), outer(tf.constant("a"))
    v.assign(0.0)
    for (first, others), expected in ((once, 2.0), (twice, 3.0)):
        assert isinstance(first, tf.Tensor)
        assert not isinstance(first, tf.Variable)
        assert [first.numpy(), others["a"][0].numpy()] == [expected] * 2


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_a_function_gets_dicts_of_any_keys_from_another_one(kind):
    total = tf.Variable(2.0)
    kept = {1: 5.0, "a": [kind({None: 3.0, 4: 6.0})]}

    @tf.function
    def constant(iterator):
        next(iterator)
        return kept

    @tf.function
    def variable(iterator):
        next(iterator)
        return kind({1: [total, 7.0], "a": 3.0})

    @tf.function
    def outer(iterator):
        assert constant(iterator) is kept
        found = variable(iterator)
        assert (type(found), list(found)) == (kind, [1, "a"])
        total.assign(9.0)
        return found[1][0] + found[1][1] + found["a"]

    assert float(outer(iter(tf.data.Dataset.range(3)))) == 12.0
