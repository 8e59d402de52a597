"""InputOptions and InputContext."""

import dataclasses

import jax
import pytest
from tests.feeding.distribution import strategy_of

import evenfeed as tf

Mode = tf.distribute.InputReplicationMode


def test_the_arguments_and_defaults_are_those_of_tensorflow_and_padding():
    fields = dataclasses.fields(tf.distribute.InputOptions)
    assert {field.name: field.default for field in fields} == {
        "experimental_fetch_to_device": None,
        "experimental_replication_mode": Mode.PER_WORKER,
        "experimental_place_dataset_on_device": False,
        "experimental_per_replica_buffer_size": 1,
        "pad_partial_batches": False,
    }


@pytest.mark.parametrize("given", [None, True, False])
def test_steps_are_fetched_unless_that_is_declined(given):
    options = tf.distribute.InputOptions(experimental_fetch_to_device=given)
    assert options.experimental_fetch_to_device is (given is not False)
    dataset = tf.data.Dataset.range(4).batch(4)
    (step,) = strategy_of(2).experimental_distribute_dataset(dataset, options)
    assert isinstance(step.values[0], jax.Array) is (given is not False)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("fetch", [True, False])
def test_a_dataset_is_placed_on_a_device_in_one_way_only(mode, fetch):
    options = tf.distribute.InputOptions(fetch, mode, experimental_place_dataset_on_device=True)
    make = strategy_of(2).distribute_datasets_from_function
    if mode is Mode.PER_REPLICA and not fetch:
        assert len(list(make(lambda _: tf.data.Dataset.range(4).batch(2), options))) == 2
        return
    with pytest.raises(ValueError, match="requires PER_REPLICA and experimental_fetch"):
        make(lambda _: tf.data.Dataset.range(4).batch(2), options)


def test_the_modes_have_tensorflows_names_and_values():
    assert {mode.name: mode.value for mode in Mode} == {
        "PER_WORKER": "PER_WORKER",
        "PER_REPLICA": "PER_REPLICA",
    }


@pytest.mark.parametrize("options", [3, {"experimental_fetch_to_device": True}])
def test_options_must_be_input_options(options):
    with pytest.raises(TypeError, match="options must be InputOptions, but got"):
        strategy_of(2).experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2), options)


def test_input_options_are_checked_when_they_are_made():
    options = tf.distribute.InputOptions
    with pytest.raises(ValueError, match="must not be negative, but got -1"):
        options(experimental_per_replica_buffer_size=-1)
    with pytest.raises(ValueError, match="must be an InputReplicationMode, but got 'PER_WORKER'"):
        options(experimental_replication_mode="PER_WORKER")
    with pytest.raises(TypeError, match="experimental_per_replica_buffer_size"):
        options(experimental_per_replica_buffer_size=1.5)


def test_an_uneven_global_batch_names_a_size_that_fits():
    with pytest.raises(ValueError, match=r"use a multiple of 4, such as 8\."):
        tf.distribute.InputContext(1, 0, 4).get_per_replica_batch_size(10)
    with pytest.raises(ValueError, match=r"use a multiple of 4, such as 4\."):
        tf.distribute.InputContext(1, 0, 4).get_per_replica_batch_size(3)


def test_a_context_is_one_pipeline_of_one_replica_by_default():
    context = tf.distribute.InputContext()
    assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)
    assert (context.num_replicas_in_sync, context.get_per_replica_batch_size(7)) == (1, 7)
