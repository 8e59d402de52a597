import numpy as np
from tests.failing import ERROR, failing, outcome, unless

import evenfeed as tf

Dataset = tf.data.Dataset


def twice(x):
    return Dataset.from_tensors(x).repeat(2)


def test_what_fails_is_passed():
    good = unless(2)
    assert outcome(failing(4, 2).flat_map(twice)) == [0, 0, 1, 1, ERROR, 3, 3]
    assert outcome(Dataset.range(4).flat_map(lambda x: twice(good(x)))) == [
        *(0, 0, 1, 1, ERROR, 3, 3)
    ]
    assert outcome(Dataset.range(2).flat_map(lambda _: failing(3, 1))) == [0, ERROR, 2] * 2


def test_an_error_keeps_the_turn():
    assert outcome(failing(6, 1, 4).interleave(twice, cycle_length=2)) == [
        *(0, ERROR, 2, 0, 2, 3, ERROR, 5, 3, 5)
    ]
    inner = Dataset.range(4).interleave(lambda _: failing(3, 1), cycle_length=2)
    assert outcome(inner) == [0, 0, ERROR, 2, ERROR, 2] * 2
    inner = Dataset.range(2).interleave(lambda _: failing(3, 1), cycle_length=2, block_length=2)
    assert outcome(inner) == [0, ERROR, 2, 0, ERROR, 2]


def test_what_hangs_on_an_unknown_rank_has_an_unknown_shape():
    numbers = Dataset.range(2)
    mixed = numbers.concatenate(numbers.batch(2)).flat_map(Dataset.from_tensors)
    assert mixed.element_spec == tf.TensorSpec(None, tf.int64)
    assert outcome(mixed) == [0, 1, [0, 1]]


def test_numbers_in_lists_keep_their_width():
    numbers = tf.data.Dataset.from_tensor_slices((np.arange(2), np.arange(2.0)))
    single = tf.data.Dataset.from_tensors
    flat = numbers.flat_map(lambda x, y: single(([x], {"y": [[y]]})))
    turns = numbers.interleave(lambda x, y: single([x, x]).concatenate(single([x, x])))
    assert flat.element_spec == (
        tf.TensorSpec([1], tf.int64),
        {"y": tf.TensorSpec([1, 1], tf.float64)},
    )
    assert [x.dtype for x in turns] == ["int64"] * 4
