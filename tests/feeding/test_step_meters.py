import json

import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import FailedPreconditionError


@pytest.fixture(autouse=True)
def _measuring():
    tf.experimental.enable_stats()
    yield
    tf.experimental.enable_stats(False)


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_steps_rows_and_stages_are_counted(strategy):
    dataset = tf.data.Dataset.range(10).map(lambda x: x + 1).batch(4)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    list(iterator)
    stats = iterator.stats()
    assert (stats.worker, stats.workers, stats.steps) == (0, 1, 3)
    assert [(one.replica, one.device, one.rows) for one in stats.replicas] == [
        (0, "CPU:0", 5),
        (1, "CPU:1", 5),
    ]
    assert stats.bytes == 80
    assert stats.waited_seconds > 0
    assert stats.read_seconds > 0
    assert stats.copy_seconds > 0
    assert stats.buffer_size == 1
    (pipeline,) = stats.pipelines
    assert [stage.elements for stage in pipeline.stages] == [10, 10, 3]
    json.dumps(stats.as_dict())


def test_steps_that_run_in_one_program_are_counted(strategy):
    dataset = tf.data.Dataset.range(32).batch(4)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    results = strategy.run_steps(jnp.sum, iterator, steps=8)
    assert len(results) == 8
    stats = iterator.stats()
    assert stats.steps == 8
    assert [one.rows for one in stats.replicas] == [16, 16]
    assert stats.bytes == 32 * 8


def test_steps_that_are_put_back_are_counted_once(strategy):
    dataset = tf.data.Dataset.range(32).batch(4)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    run = iterator.peek_run(4)
    assert iterator.take_run(run)
    iterator.return_run(run)
    list(iterator)
    assert iterator.stats().steps == 8


def test_each_replica_may_have_a_pipeline(strategy):
    options = tf.distribute.InputOptions(
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
        experimental_fetch_to_device=False,
    )
    dataset = strategy.distribute_datasets_from_function(
        lambda context: tf.data.Dataset.range(6).batch(3), options
    )
    iterator = iter(dataset)
    list(iterator)
    stats = iterator.stats()
    assert len(stats.pipelines) == 2
    assert [one.rows for one in stats.replicas] == [6, 6]


def test_figures_since_earlier_ones_are_differences(strategy):
    dataset = tf.data.Dataset.range(16).batch(4)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    next(iterator)
    before = iterator.stats()
    list(iterator)
    between = iterator.stats().since(before)
    assert between.steps == 3
    assert between.replicas[0].waited_seconds == between.waited_seconds


def test_a_restored_iterator_goes_on_counting(strategy):
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(16).batch(4))
    iterator = iter(dataset)
    next(iterator)
    iterator.set_state(iterator.get_state())
    assert [np.asarray(step.array)[0] for step in iterator] == [4, 8, 12]
    assert iterator.stats().steps == 4


def test_explain_shows_steps_replicas_and_stages(strategy):
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
    iterator = iter(dataset)
    list(iterator)
    lines = iterator.explain().splitlines()
    assert lines[0].startswith("DistributedIterator: 2 steps on worker 0, ")
    assert lines[1].startswith("  waiting for data ")
    assert lines[3].startswith("  replica 0  CPU:0  4 rows, waited ")
    assert any("measured: 2 elements" in line for line in lines)


def test_global_arrays_have_no_replicas(strategy):
    batches = tf.data.Dataset.range(8).batch(4).distribute(strategy.sharding("replica"))
    iterator = iter(batches)
    list(iterator)
    assert iterator.stats().replicas == ()
    assert iterator.stats().steps == 2


def test_an_iterator_that_is_not_measured_says_how_to_measure_it(strategy):
    tf.experimental.enable_stats(False)
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4)))
    with pytest.raises(FailedPreconditionError, match="not measured"):
        iterator.stats()


def test_an_iterator_of_tensorflow_1_has_figures():
    strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(4))
    iterator.get_next()
    assert iterator.stats().steps == 1
