import gc
import warnings

import jax
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core import tensor_types

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def without_64_bits():
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "int64 was asked for")
        warnings.filterwarnings("ignore", "float64 was asked for")
        yield


def dtype_of(value):
    return Dataset.from_tensors(value).element_spec.dtype


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.constant(3, tf.int64),
        lambda: tf.constant(np.arange(3)),
        lambda: tf.constant(3, tf.int64, shape=[2]),
        lambda: tf.zeros([2], tf.int64),
        lambda: tf.ones([2], tf.int64),
        lambda: tf.range(4, dtype=tf.int64),
        lambda: tf.cast(3, tf.int64),
        lambda: tf.cast(tf.constant(3), tf.int64),
        lambda: tf.shape([1, 2], out_type=tf.int64),
    ],
)
def test_a_dataset_gives_a_tensor_its_requested_width(make):
    tensor = make()
    assert tensor.dtype == tf.int32  # the widest that JAX has
    assert dtype_of(tensor) == tf.int64
    np.testing.assert_array_equal(next(iter(Dataset.from_tensors(tensor))), tensor)


def test_floats_get_their_requested_width():
    assert dtype_of(tf.constant(0.5, tf.float64)) == tf.float64


def test_a_cast_leaves_the_tensor_itself_as_it_was():
    narrow = tf.constant(3)
    tf.cast(narrow, tf.int64)
    assert dtype_of(narrow) == tf.int32


def test_the_requested_width_is_forgotten_with_the_tensor():
    before = len(tensor_types._asked)
    tensors = [tf.constant(i, tf.int64) for i in range(10)]
    assert len(tensor_types._asked) == before + 10
    del tensors
    gc.collect()
    assert len(tensor_types._asked) == before


def test_64_bit_constants_meet_the_numbers_of_datasets():
    zero = tf.constant(0, tf.int64)
    numbers = Dataset.range(4)
    assert int(numbers.reduce(zero, lambda total, x: total + x)) == 6
    assert [int(x) for x in numbers.scan(zero, lambda s, x: (s + x, s + x))] == [0, 1, 3, 6]
    assert [int(x) for x in numbers.concatenate(Dataset.from_tensors(zero))] == [0, 1, 2, 3, 0]
    choices = Dataset.from_tensor_slices(tf.constant([1, 0], tf.int64))
    assert [int(x) for x in Dataset.choose_from_datasets([numbers, numbers], choices)] == [0, 0]


@pytest.mark.parametrize(
    "function",
    [
        lambda wide: lambda x: wide,
        lambda wide: lambda x: (x, wide)[1],
        lambda wide: lambda x: wide if int(x) < 9 else None,  # cannot be traced
    ],
)
def test_a_function_may_return_a_64_bit_tensor_that_it_closes_over(function):
    for wide in (tf.constant([1, 2], tf.int64), tf.constant(0.5, tf.float64)):
        mapped = Dataset.range(2).map(function(wide))
        assert mapped.element_spec.dtype == dtype_of(wide)
        np.testing.assert_array_equal(next(iter(mapped)), wide)


def test_a_state_may_stay_a_64_bit_tensor_that_a_function_closes_over():
    wide = tf.constant(5, tf.int64)
    assert Dataset.range(2).scan(wide, lambda s, x: (wide, wide)).element_spec.dtype == tf.int64
    assert int(Dataset.range(2).reduce(np.int64(0), lambda s, x: wide)) == 5


@pytest.mark.parametrize("dtype", [tf.int64, tf.float64])
def test_variables_keep_their_64_bits_in_datasets(dtype):
    for strategy in (tf.distribute.get_strategy(), tf.distribute.MirroredStrategy()):
        with strategy.scope():
            total = tf.Variable([1], dtype=dtype)
        numbers = Dataset.range(3).map(lambda x: tf.cast([x], dtype))
        for value in (1, 5):  # also for an assigned value
            total.assign([value])
            assert dtype_of(total) == dtype
            assert numbers.reduce(total, lambda state, x: state + x).tolist() == [value + 3]
            assert [
                x.tolist() for x in numbers.take(1).concatenate(Dataset.from_tensors(total))
            ] == [
                [0],
                [value],
            ]
            assert numbers.map(lambda x, held=total: held).element_spec.dtype == dtype
