"""Reduces and gathers results of replicas that are ragged tensors or IndexedSlices."""

import numpy as np
import pytest
from tests.mirroring import context, mirrored, number

import evenfeed as tf


def _slices():
    values = tf.ones([1, 2]) * (number() + 1.0)
    return tf.IndexedSlices(values, tf.constant([1]), tf.constant([3, 2]))


@pytest.mark.parametrize(
    ("op", "axis", "expected"),
    [
        ("SUM", 0, [3.0, 3.0]),
        ("MEAN", 0, [0.5, 0.5]),
        ("SUM", (0, 1), 6.0),
        ("SUM", 1, [0.0, 6.0, 0.0]),
    ],
)
def test_slices_are_reduced_along_axes_as_the_tensors_that_they_stand_for(op, axis, expected):
    strategy = mirrored(2)
    found = strategy.reduce(op, strategy.run(_slices), axis=axis)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_ragged_results_are_gathered(axis):
    strategy = mirrored(2)
    made = strategy.run(lambda: tf.ragged.constant([[1, 2], [3]]) * (int(number()) + 1))
    joined = [[1, 2], [3], [2, 4], [6]] if axis == 0 else [[1, 2, 2, 4], [3, 6]]
    assert strategy.gather(made, axis).to_list() == joined


def test_the_rows_of_a_distributed_ragged_batch_are_gathered_in_order():
    strategy, rows = mirrored(2), [[b"a"], [b"b", b"c"], [], [b"d"]]
    dataset = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(rows)).batch(4)
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    assert strategy.gather(batch, axis=0).to_list() == rows


def test_all_gather_without_an_axis_says_so():
    with pytest.raises(ValueError, match="has no axis None to gather along"):
        mirrored(2).run(lambda: context().all_gather(tf.ones([2]), axis=None))
