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
