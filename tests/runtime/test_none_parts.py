"""None as a part of an element: user functions get None itself, however they run."""

import numpy as np
import pytest
from tests import chores

import evenfeed as tf

Dataset = tf.data.Dataset


@pytest.fixture
def pairs():
    return Dataset.from_tensor_slices((np.arange(3), None))


def without_trace(x, y):
    return x if int(x) < 0 else x + (y is None)


WAYS = {
    "traced": lambda pairs: pairs.map(lambda x, y: x + (y is None)),
    "per element": lambda pairs: pairs.map(without_trace),
    "vectorize=False": lambda pairs: pairs.map(lambda x, y: x + (y is None), vectorize=False),
    "threads": lambda pairs: pairs.map(without_trace, num_parallel_calls=2),
    "random_map": lambda pairs: pairs.random_map(lambda _, x, y: x + (y is None), seed=1),
    "random_map with NumPy": lambda pairs: pairs.random_map(
        lambda _, x, y: x + (y is None), seed=1, generator="numpy"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_function_sees_none_whatever_way_it_runs(pairs, way):
    assert [int(x) for x in WAYS[way](pairs)] == [1, 2, 3]


@pytest.mark.slow
def test_a_function_in_a_process_sees_none(pairs):
    found = pairs.map(chores.plus_one_without_label, num_parallel_calls=1, processes=True)
    assert [int(x) for x in found] == [1, 2, 3]


def test_a_part_that_is_none_does_not_keep_a_function_from_running_on_blocks(pairs):
    assert "vectorised" in str(pairs.map(lambda x, y: x + 1 if y is None else x).explain())


def test_none_is_no_text_for_explain(pairs):
    told = str(pairs.map(without_trace).explain())
    assert "text" not in told
    assert "needs the values" in told


def test_a_function_that_always_fails_beside_none_is_refused_where_it_is_given(pairs):
    with pytest.raises(AttributeError, match="no_such_name"):
        pairs.map(lambda x, y: x.no_such_name)


def test_none_is_no_argument_of_a_kernel(pairs):
    with pytest.raises(ValueError, match="None"):
        list(pairs.map(lambda x, y: tf.io.decode_raw(y, tf.uint8)))


def test_bucketing_elements_that_hold_none_says_that_they_cannot_be_padded(pairs):
    with pytest.raises(TypeError, match=r"padded_batch can only pad tensors.*NoneTensorSpec"):
        pairs.bucket_by_sequence_length(lambda x, y: 1, [5], [2, 2])
