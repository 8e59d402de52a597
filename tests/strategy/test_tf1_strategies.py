"""The strategies of TensorFlow 1."""

import numpy as np
import pytest
from tests.saying import error_saying

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


def test_the_names_it_shares_are_the_same():
    for name in ("Variable", "VariableAggregation", "VariableSynchronization", "TensorSpec"):
        assert getattr(V1, name) is getattr(tf, name)
    for name in ("get_strategy", "has_strategy", "ReduceOp", "StrategyExtended", "ReplicaContext"):
        assert getattr(V1.distribute, name) is getattr(tf.distribute, name)
    assert V1.distribute.get_loss_reduction() is tf.distribute.ReduceOp.MEAN


def test_a_configuration_is_copied():
    strategy = V1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    config = V1.ConfigProto(allow_soft_placement=True)
    updated = strategy.update_config_proto(config)
    assert type(updated) is V1.ConfigProto
    assert (updated.allow_soft_placement, updated.isolate_session_state) == (True, True)
    assert not config.isolate_session_state
    config.gpu_options.allow_growth = True
    config.device_count["CPU"] = 2
    assert (updated.gpu_options, updated.device_count) == (V1.GPUOptions(), {})


@pytest.mark.parametrize("given", [None, 3, {}])
def test_what_is_no_configuration_is_refused(given):
    with error_saying(
        TypeError,
        f"config_proto must be a ConfigProto, but got {given!r}.",
        fix="pass evenfeed.compat.v1.ConfigProto().",
    ):
        V1.distribute.MirroredStrategy(["CPU:0"]).update_config_proto(given)


def test_nests_of_arrays_are_datasets_and_lists_are_stacked():
    strategy = V1.distribute.OneDeviceStrategy("CPU:1")
    stacked = strategy.experimental_make_numpy_dataset([np.arange(3), np.arange(3) + 10])
    assert [row.tolist() for row in stacked] == [[0, 1, 2], [10, 11, 12]]
    nest = {"a": np.arange(2), "b": (np.ones((2, 2)), [np.zeros(1), np.ones(1)])}
    rows = list(strategy.experimental_make_numpy_dataset(nest))
    assert [int(row["a"]) for row in rows] == [0, 1]
    assert [row["b"][1].tolist() for row in rows] == [[0.0], [1.0]]


def lists(strategy, step):
    return [part.tolist() for part in strategy.experimental_local_results(step)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_dataset_iterator_begins_anew(count):
    strategy = V1.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(7).batch(6))
    first, last = (lists(strategy, iterator.get_next()) for _ in range(2))
    assert [row for part in first for row in part] == [0, 1, 2, 3, 4, 5]
    assert last == [[6], *[[]] * (count - 1)]
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    with pytest.raises(tf.errors.OutOfRangeError):
        strategy.experimental_run(tf.square, iterator)
    assert iterator.initialize() is None
    assert lists(strategy, next(iterator)) == first
    assert iterator.initializer is None
    assert lists(strategy, iterator.get_next_as_optional().get_value()) == first
    assert (
        iterator.element_spec
        == strategy.experimental_distribute_dataset(tf.data.Dataset.range(7).batch(6)).element_spec
    )


def test_an_iterator_of_a_function_drops_a_step_with_too_few_batches():
    strategy = V1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    seen = []

    def input_fn(context):
        seen.append((context.num_input_pipelines, context.num_replicas_in_sync))
        return tf.data.Dataset.range(5).batch(2)

    iterator = strategy.make_input_fn_iterator(input_fn)
    for _ in range(2):
        assert lists(strategy, iterator.get_next()) == [[0, 1], [2, 3]]
        with pytest.raises(tf.errors.OutOfRangeError):
            iterator.get_next()
        iterator.initialize()
    assert seen == [(1, 2)]


def test_an_iterator_of_a_function_has_one_dataset():
    strategy = V1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    mode = tf.distribute.InputReplicationMode.PER_REPLICA
    with pytest.raises(
        ValueError, match=r"replication_mode must be PER_WORKER, but got .*PER_REPLICA"
    ):
        strategy.make_input_fn_iterator(lambda _: tf.data.Dataset.range(5).batch(2), mode)


def test_an_iterator_of_a_function_feeds_replicas_in_every_way():
    strategy = V1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def input_fn(context):
        size = context.get_per_replica_batch_size(8)
        dataset = tf.data.Dataset.from_tensors([[1.0]]).repeat().batch(size)
        return dataset.shard(context.num_input_pipelines, context.input_pipeline_id)

    with strategy.scope():
        iterator = strategy.make_input_fn_iterator(input_fn)
        iterator.initialize()
        once = strategy.experimental_run(tf.reduce_sum, iterator)
        element = iterator.get_next()
        again = strategy.extended.call_for_each_replica(tf.reduce_sum, args=(element,))
    compiled = tf.function(lambda: strategy.experimental_run(tf.reduce_sum, iterator))
    for found in (once, again, compiled()):
        assert lists(strategy, found) == [4.0, 4.0]
