"""`numpy()` on the tensors of datasets and on JAX arrays, and `Tensor` as the type of both."""

import pickle

import jax
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.tensor_types import HostTensor, host_tensor


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1, np.int32), (2.5, np.float32), (True, np.bool_), ("a", bytes), ([1, 2], np.ndarray)],
)
def test_numpy_of_an_element_is_plain(value, kind):
    (element,) = tf.data.Dataset.from_tensors(value)
    assert type(element.numpy()) is kind
    assert np.all(element.numpy() == element)


def test_an_element_prints_like_an_array():
    (batch,) = tf.data.Dataset.range(2).batch(2)
    assert repr(batch) == "array([0, 1])"
    assert str(batch) == "[0 1]"


def test_a_tensor_shares_memory_with_its_array():
    array = np.arange(3)
    assert np.shares_memory(host_tensor(array), array)
    assert np.shares_memory(host_tensor(array).numpy(), array)


def test_other_values_stay_unchanged():
    marker = object()
    assert host_tensor(marker) is marker


def test_parts_of_varying_shape_have_numpy_too():
    ragged = tf.data.Dataset.range(3).map(lambda x: np.zeros(int(x)), vectorize=False)
    assert [len(x.numpy()) for x in ragged] == [0, 1, 2]


def test_plain_arrays_come_from_as_numpy_iterator():
    assert {type(x) for x in tf.data.Dataset.range(4).batch(2).as_numpy_iterator()} == {np.ndarray}


def test_results_of_arithmetic_have_numpy():
    first = next(iter(tf.data.Dataset.range(5, 8)))
    assert (first + 1).numpy() == 6
    assert (tf.data.Dataset.range(3).cardinality() == 3).numpy()
    assert tf.data.Dataset.range(4).reduce(np.int64(0), lambda s, x: s + x).numpy() == 6
    assert tf.reduce_sum([1.0, 2.0]).numpy() == np.float32(3)


def test_py_function_gets_tensors():
    texts = tf.data.Dataset.from_tensor_slices(["a", "b"])
    upper = texts.map(lambda t: tf.py_function(lambda x: x.numpy().upper(), [t], tf.string))
    assert [x.numpy() for x in upper] == [b"A", b"B"]


def test_a_list_of_elements_keeps_their_dtype():
    together = tf.data.Dataset.from_tensor_slices(list(tf.data.Dataset.range(3)))
    assert together.element_spec == tf.TensorSpec([], tf.int64)


def test_an_element_passes_through_jax_and_pickle():
    (batch,) = tf.data.Dataset.range(3).batch(3)
    assert jax.jit(lambda x: x * 2)(batch).tolist() == [0, 2, 4]
    again = pickle.loads(pickle.dumps(batch))
    assert type(again) is HostTensor
    assert again.tolist() == [0, 1, 2]


def test_tensor_is_a_name_for_all_of_them():
    element = next(iter(tf.data.Dataset.range(1)))
    assert isinstance(element, tf.Tensor)
    assert isinstance(jax.numpy.ones(2), tf.Tensor)
    assert not isinstance(np.ones(2), tf.Tensor)
    seen = []
    jax.jit(lambda x: seen.append(isinstance(x, tf.Tensor)) or x)(1.0)
    assert seen == [True]


def test_tensor_cannot_be_instantiated():
    with pytest.raises(TypeError, match=r"create tensors with evenfeed.constant"):
        tf.Tensor()


def test_is_tensor_knows_tensors_and_variables():
    element = next(iter(tf.data.Dataset.range(1)))
    assert all(map(tf.is_tensor, (element, tf.constant(1), tf.constant("a"), tf.Variable(1.0))))
    assert not any(map(tf.is_tensor, (1, np.ones(2), [1.0], "a", None)))


def by_zero():
    floor, rest = (lambda x: x // 0), (lambda x: x % 0)
    return [floor, rest, lambda x: 1 + x // np.int64(0), lambda x: x % np.array([1, 0])]


WAYS = {
    "traced": lambda call: list(tf.data.Dataset.range(3).map(call)),
    "per element": lambda call: list(tf.data.Dataset.range(3).map(call, vectorize=False)),
    "on the host": lambda call: call(next(iter(tf.data.Dataset.range(3)))),
    "eager": lambda call: call(tf.constant([3, 4])),
    "in a function": lambda call: tf.function(call)(tf.constant([3, 4])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", range(4))
def test_an_integer_divided_by_a_known_zero_raises_however_it_is_computed(way, number):
    with pytest.raises(tf.errors.InvalidArgumentError, match="An integer is divided by 0"):
        WAYS[way](by_zero()[number])


def test_a_divisor_of_the_data_that_is_zero_raises_element_by_element():
    quotients = tf.data.Dataset.range(3).map(lambda x: 7 // x, vectorize=False)
    assert quotients.element_spec == tf.TensorSpec([], tf.int64)  # found with zeros
    iterator = iter(quotients)
    with pytest.raises(tf.errors.InvalidArgumentError, match="divided by 0"):
        next(iterator)
    assert [int(x) for x in iterator] == [7, 3]


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_floats_and_other_divisors_are_divided_as_before():
    (x,) = tf.data.Dataset.from_tensors(np.float32([1, -7]))
    (n,) = tf.data.Dataset.from_tensors(np.int32([9, -7]))
    assert (x // 0).tolist() == [np.inf, -np.inf]
    assert (jax.numpy.float32(1) // 0).tolist() == np.inf
    assert (n // 2).tolist() == [4, -4]
    assert (n % np.int32([4, 4])).tolist() == [1, 1]
    assert (100 // n).tolist() == [11, -15]
    n //= 2
    assert n.tolist() == [4, -4]
    assert isinstance(n, tf.Tensor)


def test_nothing_may_be_divided_by_zero():
    empty = tf.zeros([0], tf.int32)
    element = next(iter(tf.data.Dataset.from_tensors(np.zeros([0, 3], np.int64))))
    remainders = tf.function(lambda x: x % tf.shape(x)[0])
    found = [empty // 0, tf.math.floordiv(empty, 0), tf.truncatemod(empty, 0), remainders(empty)]
    assert [x.shape for x in found] == [(0,)] * 4
    assert (element // 0).shape == (0, 3)
