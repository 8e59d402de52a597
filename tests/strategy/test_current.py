"""The current strategy: the default one if none was chosen, also inside its run."""

import threading

import pytest
from tests.saying import error_saying

import evenfeed as tf

DISTRIBUTE = tf.distribute


def test_without_a_strategy_the_default_one_is_current():
    strategy = DISTRIBUTE.get_strategy()
    assert strategy is DISTRIBUTE.get_strategy()
    assert not DISTRIBUTE.has_strategy()
    context = DISTRIBUTE.get_replica_context()
    assert (context.num_replicas_in_sync, context.replica_id_in_sync_group) == (1, 0)
    assert float(context.all_reduce("SUM", tf.constant(2.0))) == 2.0
    assert context.merge_call(lambda given: given) is strategy


def test_merge_call_of_the_default_strategy_runs_across_replicas():
    def merged(strategy):
        seen = DISTRIBUTE.in_cross_replica_context(), DISTRIBUTE.get_replica_context()
        return *seen, strategy.run(DISTRIBUTE.in_cross_replica_context), type(tf.Variable(1.0))

    context = DISTRIBUTE.get_replica_context()
    assert context.merge_call(merged) == (True, None, False, tf.Variable)
    assert not DISTRIBUTE.in_cross_replica_context()
    across = DISTRIBUTE.in_cross_replica_context
    assert tf.function(lambda: context.merge_call(lambda _: tf.constant(across())))()


def test_the_run_of_the_default_strategy_is_no_strategy_of_its_own():
    default, mirrored = DISTRIBUTE.get_strategy(), DISTRIBUTE.MirroredStrategy(["CPU:0", "CPU:1"])

    def fn():
        with mirrored.scope():
            inside = DISTRIBUTE.get_strategy() is mirrored
        return DISTRIBUTE.has_strategy(), inside

    assert default.run(fn) == (False, True)


def test_the_default_scope_inside_another_is_refused():
    mirrored = DISTRIBUTE.MirroredStrategy(["CPU:0"])
    default = DISTRIBUTE.get_strategy()
    with mirrored.scope(), pytest.raises(RuntimeError, match="is used inside the scope of"):
        default.scope()


def test_a_strategy_is_current_in_its_own_thread_only():
    seen = []
    with DISTRIBUTE.MirroredStrategy(["CPU:0"]).scope():
        thread = threading.Thread(target=lambda: seen.append(DISTRIBUTE.has_strategy()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_a_function_sees_the_strategy_that_is_current_where_it_is_traced():
    strategy = DISTRIBUTE.MirroredStrategy(["CPU:0", "CPU:1"])
    seen = []

    @tf.function
    def step():
        seen.append(DISTRIBUTE.get_strategy() is strategy)
        strategy.run(lambda: seen.append(DISTRIBUTE.get_replica_context().strategy is strategy))
        return tf.constant(1)

    with strategy.scope():
        step()
    assert seen == [True, True]


def test_only_a_strategy_can_be_set():
    with error_saying(
        TypeError, "strategy must be a Strategy, but got 3.", fix="pass a strategy, or None."
    ):
        DISTRIBUTE.experimental_set_strategy(3)
