"""An integer that is divided by 0 in a traced function is an error at its element."""

import jax
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.data import Dataset
from evenfeed.runtime.functions.staging.row_checks import needs_checks, with_checks

TEN = np.int64(10)
DIVISIONS = {
    "//": lambda x: 10 // x,
    "%": lambda x: 10 % x,
    "floordiv": lambda x: tf.math.floordiv(TEN, x),
    "floormod": lambda x: tf.math.floormod(TEN, x),
    "truncatediv": lambda x: tf.truncatediv(TEN, x),
    "of vectors": lambda x: tf.stack([x, x]) // tf.stack([x + 1, x]),
}


@pytest.mark.parametrize("name", DIVISIONS)
def test_the_elements_before_it_come_and_then_the_error(name):
    source = Dataset.from_tensor_slices(np.array([3, 1, 0, 2]))
    dataset = source.map(DIVISIONS[name])
    assert "vectorised" in dataset.explain()
    iterator = iter(dataset)
    expected = list(source.take(2).map(DIVISIONS[name], vectorize=False))
    for element in expected:
        np.testing.assert_array_equal(next(iterator), element)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="An integer is divided by 0"
    ) as caught:
        next(iterator)
    assert any("element 2" in note for note in caught.value.__notes__)


def test_a_filter_says_so_too():
    dataset = Dataset.from_tensor_slices([2, 0]).filter(lambda x: 10 // x > 1)
    iterator = iter(dataset)
    assert next(iterator) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="An integer is divided by 0"):
        next(iterator)


def test_floats_are_divided_by_0_as_before():
    assert [float(x) for x in Dataset.range(2).map(lambda x: 1.0 / tf.cast(x, tf.float32))] == [
        np.inf,
        1.0,
    ]


@pytest.mark.parametrize("divide", [lambda x, s: s // x, lambda x, s: s % x, lambda x, s: [s] // x])
def test_a_state_is_never_divided_by_0(divide):
    source = Dataset.from_tensor_slices(np.array([3, 1, 0, 2]))
    iterator = iter(source.scan(TEN, lambda s, x: (s, divide(x, s))))
    for x in (3, 1):
        np.testing.assert_array_equal(next(iterator), divide(np.int64(x), TEN))
    with pytest.raises(tf.errors.InvalidArgumentError, match="divided by 0"):
        next(iterator)
    np.testing.assert_array_equal(next(iterator), divide(np.int64(2), TEN))
    with pytest.raises(tf.errors.InvalidArgumentError, match="divided by 0"):
        source.reduce(TEN, lambda s, x: s + tf.reduce_sum(divide(x, s)))


@pytest.mark.parametrize(
    ("function", "divides"),
    [
        (lambda x, y: x // 2 + y % np.int32(3), False),
        (lambda x, y: x / (y + 1.0), False),
        (lambda x, y: x // y, True),
        (lambda x, y: x % (y + 1), True),
        (lambda x, y: jax.jit(lambda a: a // y)(x), True),
        (lambda x, y: jax.jit(lambda a: a // jax.numpy.array([1, 2]))(x) + y, False),
        (lambda x, y: x // jax.numpy.array([1, 0]) + y, True),
    ],
)
def test_only_divisors_that_may_be_0_are_checked(function, divides):
    given = np.array([4, 5], np.int32)
    assert needs_checks(jax.make_jaxpr(function)(given, given)) is divides


def test_results_do_not_change_with_the_check():
    def function(x, y):
        return [x // y + jax.numpy.cumsum(x), jax.nn.softmax(x / 7.0), jax.jit(jax.numpy.sort)(y)]

    x, y = np.array([7, 8, 9]), np.array([2, 3, 4])
    outputs, is_zero = jax.jit(with_checks(function))(x, y)
    for found, expected in zip(outputs, jax.jit(function)(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not is_zero
    assert with_checks(function)(x, np.array([2, 0, 4]))[1]
