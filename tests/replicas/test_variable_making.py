"""Moving averages, and variables that are made by name: what TensorFlow cannot be asked."""

import pytest

import evenfeed as tf


def test_an_average_needs_the_variables():
    average = tf.train.ExponentialMovingAverage(0.9)
    with pytest.raises(ValueError, match=r"apply\(model\.trainable_variables\)"):
        average.apply()
    with pytest.raises(TypeError, match=r"follows a variable, but got 1\.0"):
        average.apply([1.0])
    with pytest.raises(TypeError, match="has dtype int32"):
        average.apply([tf.Variable(1)])


def test_an_average_of_a_variable_with_copies_has_copies_wherever_it_is_made():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = tf.Variable(2.0)
    average = tf.train.ExponentialMovingAverage(0.5)
    average.apply([v])
    v.assign(4.0)
    average.apply([v])
    assert [float(copy) for copy in average.average(v).values] == [3.0, 3.0]


def test_averages_restore_the_variables_that_have_one():
    v, average = tf.Variable(1.0, name="w"), tf.train.ExponentialMovingAverage(0.5)
    assert average.variables_to_restore() == {}
    average.apply([v])
    assert average.variables_to_restore()["w/ExponentialMovingAverage"] is v


def test_a_variable_scope_ends_with_its_block():
    v1 = tf.compat.v1
    with pytest.raises(KeyError), v1.variable_scope("s"):
        raise KeyError
    assert v1.get_variable_scope().name == ""
    assert v1.get_variable("x", [1]).name == "x:0"


def test_a_getter_is_refused_with_a_substitute():
    with pytest.raises(NotImplementedError, match="variable_creator_scope"):
        tf.compat.v1.get_variable("x", [1], custom_getter=print)
    with pytest.raises(ValueError, match="needs its whole shape"):
        tf.compat.v1.get_variable("x", [None])
