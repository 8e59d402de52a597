"""The strategies of TensorFlow 1."""

import numpy as np

import evenfeed as tf

V1 = tf.compat.v1


def test_its_strategies_are_strategies():
    for kind in (V1.distribute.MirroredStrategy, V1.distribute.OneDeviceStrategy):
        assert issubclass(kind, V1.distribute.Strategy)
        assert issubclass(kind, tf.distribute.Strategy)
        assert kind is not getattr(tf.distribute, kind.__name__)
        assert kind.__module__ == "evenfeed.compat.v1.distribute"


def test_reduce_needs_no_axis():
    strategy = V1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    value = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    assert int(strategy.reduce("SUM", value)) == 1


def test_experimental_run_takes_the_next_element_of_an_iterator():
    strategy = V1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
    iterator = iter(dataset)
    assert strategy.experimental_run(lambda x: x + 1, iterator).array.tolist() == [1, 2, 3, 4]
    assert strategy.experimental_run(lambda x: x + 1, iterator).array.tolist() == [5, 6, 7, 8]
    assert strategy.experimental_run(lambda: 3) == 3


def test_the_rows_of_arrays_are_a_dataset():
    strategy = V1.distribute.OneDeviceStrategy("CPU:1")
    dataset = strategy.experimental_make_numpy_dataset((np.arange(3), np.ones((3, 2))))
    assert [int(number) for number, _ in dataset] == [0, 1, 2]
    assert strategy.update_config_proto("config") == "config"


def test_the_names_it_shares_are_the_same():
    for name in ("Variable", "VariableAggregation", "VariableSynchronization", "TensorSpec"):
        assert getattr(V1, name) is getattr(tf, name)
    for name in ("get_strategy", "has_strategy", "ReduceOp", "StrategyExtended", "ReplicaContext"):
        assert getattr(V1.distribute, name) is getattr(tf.distribute, name)
    assert V1.distribute.get_loss_reduction() is tf.distribute.ReduceOp.MEAN
