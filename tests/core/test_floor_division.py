"""`//` and `floordiv` of floats round the quotient to its dtype, and then down, wherever they run."""

import numpy as np
import pytest

import evenfeed as tf

X = np.array([1, 2, 0.3, 6, -1, np.inf, -np.inf, np.nan], np.float32)
Y = np.array([0.1, 0.2, 0.1, 0.6, 0.1, 1, 3, 1], np.float32)
EXPECTED = [10, 10, 3, 10, -10, np.inf, -np.inf, np.nan]
NUMBERS = np.arange(1, 500, dtype=np.float32)
FORMS = {"operator": lambda x, y: x // y, "function": tf.math.floordiv}


def everywhere(function, *arrays):
    """Return what a function of tensors computes in plain Python, in `function`, and in maps."""
    rows = tf.data.Dataset.from_tensor_slices(arrays)
    return {
        "plain": function(*map(tf.constant, arrays)),
        "compiled": tf.function(function)(*map(tf.constant, arrays)),
        "map": list(rows.map(function)),
        "batches": next(iter(rows.batch(len(arrays[0])).map(function))),
        "elements": list(rows.map(function, vectorize=False)),
    }


@pytest.mark.parametrize("floordiv", FORMS.values(), ids=FORMS)
def test_the_rounded_quotient_is_rounded_down(floordiv):
    for where, found in everywhere(floordiv, X, Y).items():
        np.testing.assert_array_equal(np.asarray(found), EXPECTED, where)


@pytest.mark.parametrize("divisor", [41.0, 49.0, 0.3])
@pytest.mark.parametrize("floordiv", FORMS.values(), ids=FORMS)
def test_a_constant_divisor_is_not_replaced_by_its_reciprocal(floordiv, divisor):
    expected = np.floor(NUMBERS / np.float32(divisor))
    for where, found in everywhere(lambda x: floordiv(x, divisor), NUMBERS).items():
        np.testing.assert_array_equal(np.asarray(found), expected, where)


def test_a_divisor_in_a_program_of_xla_is_not_replaced_by_its_reciprocal():
    expected = np.floor(NUMBERS / np.float32(41))
    rows = tf.data.Dataset.from_tensor_slices(NUMBERS)
    found = list(rows.map(lambda x: x // 41.0 + 0 * tf.sin(x)))
    np.testing.assert_array_equal(found, expected)


def test_a_number_divided_by_a_tensor_is_rounded_down():
    for where, found in everywhere(lambda y: 1.0 // y, Y[:4]).items():
        np.testing.assert_array_equal(np.asarray(found), [10, 5, 10, 1], where)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8"])
def test_the_dtype_is_that_of_a_division(dtype):
    rows = tf.data.Dataset.from_tensors(tf.cast(tf.constant([1, 6]), dtype))
    for options in ({}, {"vectorize": False}):
        (divided,) = rows.map(lambda x: x / 0.5, **options)
        (found,) = rows.map(lambda x: x // 0.5, **options)
        assert found.dtype == divided.dtype
        np.testing.assert_array_equal(found.astype("float32"), [2, 12])


def test_integers_are_divided_as_before():
    for where, found in everywhere(lambda x: x // 2, np.array([7, -7], np.int32)).items():
        assert np.asarray(found).dtype == np.int32, where
        np.testing.assert_array_equal(np.asarray(found), [3, -4], where)


def test_variables_ragged_tensors_and_arrays_divide_alike():
    variable, ragged = tf.Variable([1.0, 6.0]), tf.ragged.constant([[1.0], [6.0]])
    assert (variable // 0.1).numpy().tolist() == [10, 60]
    assert (ragged // 0.1).to_list() == [[10], [60]]
    (element,) = tf.data.Dataset.from_tensors([0.1, 0.2])
    assert (np.array([1, 1], np.float32) // element).tolist() == [10, 5]


def test_the_gradient_of_a_floor_is_zero():
    x = tf.Variable([1.0, 6.0])
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(x // 0.1 + x)
    assert tape.gradient(total, x).numpy().tolist() == [1, 1]


def test_a_list_can_be_divided():
    assert ([1.0, 6.0] // tf.constant([0.1, 0.6])).numpy().tolist() == [10, 10]
    assert (tf.constant([1.0, 6.0]) // [0.1, 0.6]).numpy().tolist() == [10, 10]
