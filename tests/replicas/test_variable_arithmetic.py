"""Python operators on variables: errors that JAX would not report are raised."""

import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("sign", "instead"),
    [
        ("+", "write variable.assign_add(value)"),
        ("-", "write variable.assign_sub(value)"),
        ("*", "write variable.assign(...)"),
        ("/", "write variable.assign(...)"),
        ("//", "write variable.assign(...)"),
        ("%", "write variable.assign(...)"),
        ("**", "write variable.assign(...)"),
        ("@", "write variable.assign(...)"),
    ],
)
def test_a_sign_in_place_says_how_to_assign(sign, instead):
    names = {"v": tf.Variable([1.0], name="w")}
    with pytest.raises(RuntimeError) as caught:
        exec(f"v {sign}= 1.0", names)  # the statement is the test
    assert str(caught.value).startswith(
        f"variable {sign}= value would replace the variable 'w:0' with a tensor."
    )
    assert f"fix: {instead} to change it, or variable = variable {sign} value" in str(caught.value)
    assert isinstance(names["v"], tf.Variable)


@pytest.mark.parametrize("key", [2, -3, (0, 1), (None, 0, 0)])
def test_a_place_beyond_the_end_is_an_error(key):
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(InvalidArgumentError):
        v[key]


def test_the_error_says_which_places_there_are():
    v = tf.Variable([1.0, 2.0])
    with error_saying(
        InvalidArgumentError,
        "The index 5 must be between -2 and 1 for the shape (2,).",
        fix="count from 0, or from the end with -1.",
    ):
        v[5]


def test_all_kinds_of_indices_work():
    v = tf.Variable([[1, 2, 3], [4, 5, 6]])
    one = tf.Variable(1)
    assert v[one].tolist() == [4, 5, 6]
    assert v[np.array([1, 0])].tolist() == [[4, 5, 6], [1, 2, 3]]
    assert v[..., -1].tolist() == [3, 6]
    assert v[:, ::2].tolist() == [[1, 3], [4, 6]]
    assert v[0:9].shape == (2, 3)
    assert v[v.value() > 4].tolist() == [5, 6]


def test_numpy_leaves_its_signs_to_the_variable():
    v = tf.Variable([1.0, 2.0])
    for made in (np.float32([1, 1]) + v, np.float32(2) * v, np.ones((2, 2), np.float32) @ v):
        assert type(made) is type(v.value())


def test_tensors_of_shapes_that_do_not_fit_are_not_equal():
    v = tf.Variable([1.0, 2.0])
    assert not bool(v == tf.constant([1.0, 2.0, 3.0]))
    assert bool(v != tf.constant([1.0, 2.0, 3.0]))
