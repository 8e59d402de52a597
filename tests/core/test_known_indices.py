import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

MASK = np.array([[True, False, True], [False, True, False]])


@pytest.mark.parametrize(
    "key", [2, -3, np.int64(2), (0, 3), (..., 4), (2, ...), (None, 2), (0, 0, 0, 0)]
)
def test_a_tensor_has_no_place_beyond_its_end(key):
    x = tf.zeros([2, 3, 4])
    with pytest.raises(InvalidArgumentError):
        x[key]
    with pytest.raises(InvalidArgumentError):
        jax.jit(lambda x: x[key])(x)
    with pytest.raises(InvalidArgumentError):
        tf.data.Dataset.from_tensors(np.zeros([2, 3, 4])).map(lambda x: tf.abs(x)[key])


@pytest.mark.parametrize("kind", [np.int32, np.array, tf.constant])
def test_an_array_of_one_integer_is_a_known_index(kind):
    x = tf.reshape(tf.range(6), [2, 3])
    assert x[kind(-1)].tolist() == [3, 4, 5]
    assert x[0, kind(2)].tolist() == 2
    assert tf.Variable(x)[..., kind(0)].tolist() == [0, 3]
    for key in (kind(2), kind(-3), (0, kind(3)), (..., kind(3)), (kind(1), kind(-4))):
        with pytest.raises(InvalidArgumentError, match="must be between"):
            x[key]
        with pytest.raises(InvalidArgumentError, match="must be between"):
            tf.Variable(x)[key]


def test_a_map_that_runs_per_element_checks_the_indices_of_its_elements():
    table = tf.constant([10, 11, 12])
    rows = iter(tf.data.Dataset.range(4).map(lambda i: table[i], vectorize=False))
    assert [int(next(rows)) for _ in range(3)] == [10, 11, 12]
    with pytest.raises(InvalidArgumentError, match="The index 3 must be between -3 and 2"):
        next(rows)


def test_an_index_that_a_program_computes_stays_in_the_program():
    found = tf.function(lambda x, i: x[i + 1])(tf.range(4), tf.constant(1))
    assert int(found) == 2
    assert jax.jit(lambda x, i: x[0, i])(jnp.ones((1, 3)), 2) == 1


@pytest.mark.parametrize(
    "key",
    [
        1,
        (1, -3),
        (..., -4),
        (None, 1, None, 2),
        (slice(7), 2),
        (MASK, 3),
        (np.array([0, 1]), 2, 3),
        (True, 1),
        (0, ..., 3),
        (MASK, ..., 3),
    ],
)
def test_other_keys_pick_what_numpy_picks(key):
    values = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(jnp.asarray(values)[key], values[key])


def test_the_error_says_which_places_a_tensor_has():
    x = tf.constant([[1, 2], [3, 4]])
    with error_saying(
        InvalidArgumentError,
        "The index 5 must be between -2 and 1 for the shape (2, 2).",
        fix="count from 0, or from the end with -1.",
    ):
        x[0, 5]
