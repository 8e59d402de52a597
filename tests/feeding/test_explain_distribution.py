"""The text of `DistributedDataset.explain()`."""

import re

import numpy as np
from tests.feeding.distribution import distributed, numbers, strategy_of, with_policy

import evenfeed as tf

Dataset = tf.data.Dataset


def said(dataset):
    """Return the text without the dataset's part and without the line numbers of this file."""
    text = re.sub(r" +\S+\.py:\d+ +", "  ", str(dataset.explain()))
    return text.partition("  dataset")[0].rstrip()


def test_it_says_who_gets_which_rows():
    dataset = distributed(numbers(range(23)).batch(10).prefetch(1), 4)
    assert said(dataset) == (
        "DistributedDataset: 3 steps on 4 replicas of worker 0\n"
        "  replica 0  CPU:0  3 rows per step: 0-2 of each batch\n"
        "  replica 1  CPU:1  3 rows per step: 3-5 of each batch\n"
        "  replica 2  CPU:2  3 rows per step: 6-8 of each batch\n"
        "  replica 3  CPU:3  1 row per step: 9 of each batch\n"
        "  batches: 10 rows over all replicas, each split separately, rounding up\n"
        "  last step: 3 rows, by replica: 1, 1, 1, 0\n"
        "  prefetch: 1 step, copied to the devices by a thread"
    )


def test_it_says_that_rows_flow_on():
    dataset = distributed(with_policy(numbers(range(4)).batch(3), "OFF"), 4)
    assert said(dataset) == (
        "DistributedDataset: 2 steps on 4 replicas of worker 0\n"
        "  replica 0  CPU:0  1 row per step: 0 of each batch\n"
        "  replica 1  CPU:1  1 row per step: 1 of each batch\n"
        "  replica 2  CPU:2  1 row per step: 2 of each batch\n"
        "  replica 3  CPU:3  no rows\n"
        "  batches: 3 rows over all replicas, and rows flow on from batch to batch\n"
        "  last step: 1 row, by replica: 1, 0, 0, 0\n"
        "  prefetch: 1 step, copied to the devices by a thread"
    )


def test_it_says_what_is_filled():
    dataset = distributed(numbers(range(5)).batch(4), 2, pad_partial_batches=True)
    assert "each split separately, and padded with zeros that `valid` marks" in said(dataset)
    assert "last step: 1 row, by replica: 1, 0 valid" in said(dataset)


def test_it_says_what_is_not_known():
    dataset = distributed(numbers(range(5)).batch(4).map(lambda x: x).repeat(), 1)
    assert said(dataset) == (
        "DistributedDataset: infinitely many steps on 1 replica of worker 0\n"
        "  replica 0  CPU:0  its part of each batch\n"
        "  batches: of unknown size, each split separately, rounding up\n"
        "  prefetch: 1 step, copied to the devices by a thread\n"
        "  in one program: up to 8 steps, copied together"
    )
    unknown = distributed(numbers(range(5)).filter(lambda x: x > 1).batch(4), 1)
    assert "an unknown number of steps" in said(unknown)


def test_it_says_what_is_read_ahead():
    data = numbers(range(4)).batch(4)
    many = distributed(data, 2, experimental_per_replica_buffer_size=5)
    assert "\n  prefetch: 5 steps, copied to the devices by a thread\n" in said(many)
    none = distributed(data, 2, experimental_per_replica_buffer_size=0)
    assert "\n  prefetch: none; a step is copied to the devices when it is needed\n" in said(none)
    host = distributed(data, 2, experimental_fetch_to_device=False)
    assert said(host).endswith("none; steps stay NumPy arrays on the host")


def test_it_says_how_many_steps_are_in_memory_for_one_program():
    small = distributed(numbers(range(8)).batch(4), 2)
    assert said(small).endswith("in one program: up to 128 steps, copied together")
    wide = distributed(Dataset.from_tensor_slices(np.zeros((8, 1 << 18), np.float32)).batch(4), 2)
    assert said(wide).endswith("in one program: up to 4 steps, copied together")
    large = distributed(Dataset.from_tensor_slices(np.zeros((8, 1 << 22), np.uint8)).batch(4), 2)
    assert "in one program" not in said(large)


def test_it_says_which_elements_a_replica_takes():
    strategy = strategy_of(2)
    data = Dataset.from_tensor_slices(np.zeros(10)).batch(2)
    assert said(strategy.distribute_datasets_from_function(lambda _: data)) == (
        "DistributedDataset: 3 steps on 2 replicas of worker 0\n"
        "  replica 0  CPU:0  elements 0, 2, 4, …\n"
        "  replica 1  CPU:1  elements 1, 3, 5, …\n"
        "  prefetch: 1 step, copied to the devices by a thread\n"
        "  in one program: up to 128 steps, copied together"
    )
    mode = tf.distribute.InputReplicationMode.PER_REPLICA
    options = tf.distribute.InputOptions(experimental_replication_mode=mode)
    own = strategy.distribute_datasets_from_function(lambda _: data, options)
    assert "replica 1  CPU:1  one element per step from its own dataset" in said(own)
    assert str(own.explain()).count("  dataset of replica ") == 2


def test_the_datasets_own_words_stand_below():
    data = numbers(range(4)).shuffle(4).batch(4)
    below = str(distributed(data, 2).explain()).partition("  dataset:\n")[2]
    assert below == "\n".join(f"    {line}" for line in str(data.explain()).splitlines())
    shown = distributed(data, 2).explain()
    assert repr(shown) == str(shown)
