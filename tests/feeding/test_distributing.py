"""Datasets from a dataset_fn, and errors for a dataset in place of a function and vice versa."""

import numpy as np
import pytest
from tests.feeding.distribution import distributed, numbers, parts_of, strategy_of
from tests.saying import error_saying

import evenfeed as tf

Dataset = tf.data.Dataset
Mode = tf.distribute.InputReplicationMode


def from_function(dataset_fn, count, **options):
    chosen = tf.distribute.InputOptions(**options)
    return strategy_of(count).distribute_datasets_from_function(dataset_fn, chosen)


def test_a_function_is_called_once_and_told_who_is_fed():
    seen = []

    def dataset_fn(context):
        seen.append(context)
        return numbers(range(8)).batch(context.get_per_replica_batch_size(4))

    dataset = from_function(dataset_fn, 2)
    assert [parts_of(step) for step in dataset] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert [parts_of(step) for step in dataset] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    (context,) = seen
    assert repr(context) == "<InputContext of pipeline 0 of 1, 2 replicas>"
    assert str(context) == "tf.distribute.InputContext(input pipeline id 0, total: 1)"
    assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)


def test_the_old_name_is_the_same():
    strategy = strategy_of(2)
    dataset = strategy.experimental_distribute_datasets_from_function(
        lambda _: numbers(range(2)).batch(1)
    )
    assert [parts_of(step) for step in dataset] == [[[0], [1]]]


def test_a_last_step_with_too_few_batches_has_empty_ones():
    dataset = from_function(lambda _: numbers(range(5)).batch(2), 2)
    assert [parts_of(step) for step in dataset] == [[[0, 1], [2, 3]], [[4], []]]


def test_a_last_step_with_too_few_static_batches_is_dropped():
    dataset = from_function(lambda _: numbers(range(6)).batch(2, True), 2)
    assert [parts_of(step) for step in dataset] == [[[0, 1], [2, 3]]]


def test_scalars_are_one_for_each_replica():
    dataset = from_function(lambda _: numbers(range(5)), 2)
    assert [parts_of(step) for step in dataset] == [[0, 1], [2, 3]]


def test_each_replica_may_have_a_dataset_of_its_own():
    def dataset_fn(context):
        start = 10 * context.input_pipeline_id
        return numbers(range(start, start + 3 + context.input_pipeline_id)).batch(2)

    dataset = from_function(dataset_fn, 2, experimental_replication_mode=Mode.PER_REPLICA)
    assert [parts_of(step) for step in dataset] == [[[0, 1], [10, 11]], [[2], [12, 13]]]
    longer = from_function(
        lambda context: numbers(range(2 * context.input_pipeline_id + 1)).batch(1),
        3,
        experimental_replication_mode=Mode.PER_REPLICA,
    )
    assert [parts_of(step) for step in longer][1:3] == [[[], [1], [1]], [[], [2], [2]]]
    assert longer.cardinality == 5


def test_how_many_steps_there_are_is_told_where_it_is_known():
    assert from_function(lambda _: numbers(range(5)).batch(2), 2).cardinality == 2
    endless = from_function(lambda _: numbers(range(5)).batch(2).repeat(), 2)
    assert endless.cardinality == tf.data.INFINITE_CARDINALITY
    unknown = from_function(lambda _: numbers(range(5)).filter(lambda x: x > 1).batch(2), 2)
    assert unknown.cardinality == tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize("made", [3, None, [1, 2], np.arange(3)])
def test_what_makes_no_dataset_is_refused(made):
    with pytest.raises(TypeError, match="dataset must be a Dataset, but got"):
        from_function(lambda _: made, 2)
    with pytest.raises(TypeError, match="dataset must be a Dataset, but got"):
        distributed(made, 2)


def test_a_dataset_in_place_of_a_function_is_refused():
    strategy = strategy_of(2)
    with error_saying(
        TypeError,
        "dataset_fn must be a function that returns a dataset, but got …",
        fix="pass a function of an InputContext; for a dataset use experimental_distribute_dataset.",
    ):
        strategy.distribute_datasets_from_function(Dataset.range(3))


def test_one_dataset_is_not_one_for_each_replica():
    with pytest.raises(NotImplementedError, match="PER_REPLICA needs one dataset per replica"):
        distributed(Dataset.range(4).batch(2), 2, experimental_replication_mode=Mode.PER_REPLICA)


@pytest.mark.parametrize("policy", list(tf.data.experimental.AutoShardPolicy))
def test_one_worker_gets_all_rows_under_every_policy(policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    options.experimental_distribute.num_lanes = 1
    for count in (1, 2, 3, 8):
        steps = list(distributed(numbers(range(11)).batch(4).with_options(options), count))
        assert [row for step in steps for part in parts_of(step) for row in part] == list(range(11))


def test_steps_of_the_host_go_into_run():
    strategy = strategy_of(2)
    options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
    dataset = strategy.experimental_distribute_dataset(numbers(range(5)).batch(4), options)
    found = [parts_of(strategy.run(lambda x: x * 10, args=(x,))) for x in dataset]
    assert found == [[[0, 10], [20, 30]], [[40], []]]


def test_steps_of_the_host_go_into_a_compiled_run():
    strategy = strategy_of(2)
    options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
    dataset = strategy.experimental_distribute_dataset(numbers(range(4)).batch(4), options)

    @tf.function
    def step(x):
        return strategy.run(lambda x: x + 1, args=(x,))

    assert [parts_of(step(x)) for x in dataset] == [[[1, 2], [3, 4]]]


def test_a_distributed_dataset_is_not_distributed_again():
    once = distributed(numbers([1, 2]).batch(2), 2)
    with error_saying(
        TypeError,
        "The dataset is already distributed.",
        fix="iterate over it, or pass the Dataset that it was made from.",
    ):
        strategy_of(2).experimental_distribute_dataset(once)
