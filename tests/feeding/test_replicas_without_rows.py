"""A replica without rows gets the row shape of the other replicas, even if no spec has it."""

import numpy as np
import pytest

import evenfeed as tf

ROWS = [bytes([number] * 4) for number in range(5)]


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def rows():
    """Five rows of four numbers, whose length is not in the spec."""
    decoded = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda t: tf.io.decode_raw(t, tf.uint8))
    assert decoded.element_spec.shape.as_list() == [None]
    return decoded.map(lambda x: x / 255.0)


def shapes(strategy, distributed):
    return [
        [part.shape for part in strategy.experimental_local_results(step)] for step in distributed
    ]


def test_rows_of_a_short_batch(strategy, rows):
    distributed = strategy.experimental_distribute_dataset(rows.batch(4))
    assert shapes(strategy, distributed) == [[(2, 4), (2, 4)], [(1, 4), (0, 4)]]


def test_elements_of_a_function(strategy, rows):
    distributed = strategy.distribute_datasets_from_function(lambda _: rows.batch(2))
    assert shapes(strategy, distributed) == [[(2, 4), (2, 4)], [(1, 4), (0, 4)]]


def test_parts_of_several_ranks_and_dtypes(strategy, rows):
    pairs = tf.data.Dataset.zip((rows, tf.data.Dataset.from_tensor_slices(ROWS), rows))
    (_, last) = strategy.experimental_distribute_dataset(pairs.batch(4))
    found = [part.values[1].shape for part in last]
    assert found == [(0, 4), (0,), (0, 4)]


def test_a_step_computes_on_no_rows(strategy, rows):
    weights = np.ones((4, 1), np.float32)
    for step in strategy.experimental_distribute_dataset(rows.batch(4)):
        assert strategy.run(lambda x: x @ weights, args=(step,)).values[1].shape[1:] == (1,)
        assert strategy.gather(step, axis=0).shape[1:] == (4,)
