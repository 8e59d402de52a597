"""StrategyExtended: updating variables, and reducing to their devices."""

import jax
import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf

DEVICES = jax.local_devices(backend="cpu")


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def variable(strategy):
    with strategy.scope():
        return tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)


def parts(strategy):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(context.replica_id_in_sync_group + 1.0)
    )


def copies(strategy, value):
    return [float(part) for part in strategy.experimental_local_results(value)]


def adding(strategy, variable):
    return lambda x: strategy.extended.update(variable, lambda v, y: v.assign_add(y), args=(x,))


def own_id():
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1.0


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_update_calls_the_function_for_each_copy(strategy, variable, compiled):
    update = adding(strategy, variable)
    returned = (tf.function(update) if compiled else update)(parts(strategy))
    assert copies(strategy, variable) == copies(strategy, returned) == [2.0, 3.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("merge", [False, True], ids=["in run", "in merge_call"])
def test_update_works_inside_of_run(strategy, variable, compiled, merge):
    update = adding(strategy, variable)

    def fn():
        if merge:
            context = tf.distribute.get_replica_context()
            return context.merge_call(lambda _, x: update(x), args=(own_id(),))
        return update(own_id())

    run = lambda: strategy.run(fn)  # noqa: E731
    returned = (tf.function(run) if compiled else run)()
    assert copies(strategy, variable) == copies(strategy, returned) == [2.0, 3.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_an_optimizer_reduces_then_updates(strategy, variable, compiled):
    def merge(given, x):
        total = given.extended.reduce_to("MEAN", x, destinations=variable)
        given.extended.update(variable, lambda v, y: v.assign_sub(y), args=(total,))

    def fn():
        tf.distribute.get_replica_context().merge_call(merge, args=(own_id(),))

    run = lambda: strategy.run(fn)  # noqa: E731
    (tf.function(run) if compiled else run)()
    assert copies(strategy, variable) == [-0.5, -0.5]


def test_update_of_a_plain_variable_calls_the_function_once(strategy):
    plain, calls = tf.Variable(1.0), []
    strategy.extended.update(plain, lambda v: calls.append(v.assign(2.0)))
    assert (plain.numpy(), len(calls)) == (2.0, 1)


def test_an_error_in_an_update_is_the_users(strategy, variable):
    with pytest.raises(ZeroDivisionError):
        strategy.extended.update(variable, lambda v: 1 // 0)
    assert tf.distribute.in_cross_replica_context() is False


def test_results_are_copied_to_where_the_destination_lies(strategy, variable):
    extended, x = strategy.extended, parts(strategy)
    for result in (
        extended.reduce_to("SUM", x, variable),
        *extended.batch_reduce_to("SUM", [(x, variable), (x, x)]),
        extended.broadcast_to(tf.constant(3.0), variable),
    ):
        assert copies(strategy, result) == [3.0, 3.0]
        assert [part.devices() for part in result.values] == [{DEVICES[0]}, {DEVICES[1]}]
    assert float(extended.reduce_to("SUM", x, "CPU:0")) == 3.0
    assert extended.broadcast_to(2.0, variable) == 2.0


def test_what_belongs_to_whom(strategy, variable):
    other = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.extended.variable_created_in_scope(variable)
    assert not other.extended.variable_created_in_scope(variable)
    assert not strategy.extended.variable_created_in_scope(tf.Variable(1.0))
    one = tf.distribute.OneDeviceStrategy("CPU:1")
    with one.scope():
        assert one.extended.variable_created_in_scope(tf.Variable(1.0))
    assert strategy.extended.value_container(variable) is variable


def test_variables_are_created_beside_others_of_the_scope_only(strategy, variable):
    with strategy.scope(), strategy.extended.colocate_vars_with(variable):
        assert copies(strategy, tf.Variable(3.0)) == [3.0, 3.0]
    with (
        error_saying(
            ValueError,
            "3 was not created in this strategy's scope.",
            fix="pass a variable that was created in strategy.scope().",
        ),
        strategy.extended.colocate_vars_with(3),
    ):
        pass


def test_devices_are_named(strategy):
    names = tuple(f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2))
    assert strategy.extended.worker_devices == strategy.extended.parameter_devices == names


def test_call_for_each_replica_is_run(strategy):
    found = strategy.extended.call_for_each_replica(np.add, args=(parts(strategy), 1.0))
    assert copies(strategy, found) == [2.0, 3.0]


def test_update_without_grouping_returns_what_each_call_returned(strategy, variable):
    given = parts(strategy)
    found = strategy.extended.update(variable, lambda v, x: {"x": x}, args=(given,), group=False)
    assert isinstance(found["x"], tuple)
    assert [float(x) for x in found["x"]] == [float(x) for x in given.values]


def test_a_variable_is_read_across_replicas(strategy):
    with strategy.scope():
        v = tf.Variable(
            1.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    assert float(strategy.extended.read_var(v)) == 2.0
    with pytest.raises(RuntimeError, match="read_var works across replicas"):
        strategy.run(strategy.extended.read_var, args=(v,))
