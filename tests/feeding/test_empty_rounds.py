"""Epochs of a repeat in which a dataset has no elements, over replicas and over workers."""

import pytest
from tests.feeding import model
from tests.feeding.distribution import distributed, parts_of, with_policy
from tests.feeding.workers import fed

import evenfeed as tf

Dataset = tf.data.Dataset


def often_empty(size):
    """Return batches of two numbers of a random order if they are small: most rounds have none."""
    rows = Dataset.range(4).shuffle(4, seed=5).take(2).filter(lambda x: x < 2)
    return rows.batch(size)


def on_each(workers, policy):
    """Return a function for a worker's dataset. The datasets are made before the workers run concurrently."""
    made = [with_policy(often_empty(4).repeat(11), policy) for _ in range(workers)]
    return made.__getitem__


def batches(size, rounds):
    return [batch.tolist() for batch in often_empty(size).repeat(rounds)]


def test_there_are_empty_rounds_before_and_between_others():
    lengths = [len(batches(2, rounds)) for rounds in range(12)]
    assert lengths[1] == 0 or len(set(lengths)) < len(lengths)
    assert lengths[-1] > 2


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_replicas_get_what_comes_behind_empty_rounds(replicas):
    found = [parts_of(step) for step in distributed(often_empty(2).repeat(11), replicas)]
    assert found == model.legacy(batches(2, 11), replicas)


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_that_share_batches_get_what_comes_behind_empty_rounds(workers):
    found = fed(on_each(workers, "DATA"), workers)
    whole = batches(4, 11)
    assert found == [model.by_data(whole, workers, 1, worker) for worker in range(workers)]


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_that_read_all_get_what_comes_behind_empty_rounds(workers):
    found = fed(on_each(workers, "OFF"), workers)
    assert found == model.each_flowing([batches(4, 11)] * workers, 4, 1)
