"""Strategies: values made for each replica, and errors."""

import jax
import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf

DEVICES = jax.local_devices(backend="cpu")


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:2", "CPU:1"])


def test_arrays_are_brought_to_the_device_of_their_replica(strategy):
    for make in (tf.constant, np.asarray):
        value = strategy.experimental_distribute_values_from_function(
            lambda context, make=make: make([context.replica_id_in_sync_group])
        )
        assert [part.devices() for part in value.values] == [{DEVICES[2]}, {DEVICES[1]}]
        assert value.array.tolist() == [0, 1]


def test_text_and_python_values_stay_as_they_are(strategy):
    value = strategy.experimental_distribute_values_from_function(
        lambda context: {"t": np.array([b"a"], object), "n": context.replica_id_in_sync_group}
    )
    assert value["n"].values == (0, 1)
    assert [part.tolist() for part in value["t"].values] == [[b"a"], [b"a"]]


def test_structures_that_differ_are_refused(strategy):
    with pytest.raises(ValueError, match="2"):
        strategy.experimental_distribute_values_from_function(
            lambda context: [1] * (context.replica_id_in_sync_group + 1)
        )


def test_what_is_no_function_is_refused(strategy):
    with error_saying(
        TypeError,
        "value_fn must be a function of a ValueContext, but got 3.",
        fix="pass lambda context: value.",
    ):
        strategy.experimental_distribute_values_from_function(3)


def test_a_users_array_is_copied(strategy):
    mine = np.zeros((1024, 16), np.float32)
    view = mine.view()
    view.flags.writeable = False
    value = strategy.experimental_distribute_values_from_function(lambda _: view)
    jax.block_until_ready(value.values)
    mine[:] = 1
    assert not any(np.asarray(part).any() for part in value.values)


@pytest.mark.parametrize("method", ["run", "reduce", "gather"])
def test_what_works_across_replicas_is_refused_inside(strategy, method):
    calls = {
        "run": lambda: strategy.run(lambda: 1),
        "reduce": lambda: strategy.reduce("SUM", 1.0, axis=None),
        "gather": lambda: strategy.gather([1.0], axis=0),
    }
    with pytest.raises(RuntimeError, match=f"{method} works across replicas"):
        strategy.run(calls[method])
    with pytest.raises(RuntimeError, match=f"{method} works across replicas"):
        tf.function(lambda: strategy.run(calls[method]))()


def test_run_takes_options_and_lists(strategy):
    options = tf.distribute.RunOptions(experimental_enable_dynamic_batch_size=False)
    assert strategy.run(lambda x: x, args=[3], options=options) == 3


def test_a_scope_ends_also_after_an_error(strategy):
    with pytest.raises(KeyError), strategy.scope():
        raise KeyError
    assert not tf.distribute.has_strategy()


def test_a_scope_may_be_entered_again_inside_itself(strategy):
    with strategy.scope(), strategy.scope() as inner:
        assert inner is strategy
        assert tf.distribute.in_cross_replica_context()


def test_a_scope_that_is_kept_may_be_entered_again(strategy):
    scope = strategy.scope()
    for _ in range(2):
        with scope:
            with scope as inner:
                assert inner is strategy
            assert tf.distribute.get_strategy() is strategy
        assert not tf.distribute.has_strategy()


def test_another_scope_inside_says_whose(strategy):
    other = tf.distribute.OneDeviceStrategy("CPU:0")
    with (
        strategy.scope(),
        error_saying(
            RuntimeError,
            "Mixing different tf.distribute.Strategy objects: "
            f"{other!r} is used inside the scope of {strategy!r}.",
            fix="leave that scope before you use another strategy.",
        ),
    ):
        other.run(lambda: 1)
