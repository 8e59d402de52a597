import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf

ROWS = 65536  # XLA reduces fewer rows in another way


def summed(x):
    return tf.reduce_sum(x * x)


AFTER_A_REDUCTION = {
    "maximum": lambda x: tf.maximum(summed(x), 1.0),
    "maximum, reversed": lambda x: tf.maximum(1.0, summed(x)),
    "minimum": lambda x: tf.minimum(summed(x), 1.0),
    "minimum of two": lambda x: tf.minimum(tf.reduce_sum(x[:2]), summed(x)),
    "relu": lambda x: tf.nn.relu(summed(x)),
    "relu6": lambda x: tf.nn.relu6(summed(x)),
    "crelu": lambda x: tf.nn.crelu(summed(x)[None])[0],
    "clip_by_value": lambda x: tf.clip_by_value(summed(x), 0.0, 1.0),
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 1.0)[0],
    "l2_normalize": lambda x: tf.math.l2_normalize(x)[0],
}


@pytest.mark.parametrize("name", AFTER_A_REDUCTION)
def test_a_map_and_a_function_keep_nan_in_extremes_after_a_reduction(name):
    function = AFTER_A_REDUCTION[name]
    rows = np.full((ROWS, 3), 0.5, np.float32)
    rows[-1, 2] = np.nan
    (mapped,) = tf.data.Dataset.from_tensor_slices(rows).map(function).batch(ROWS)
    assert np.isnan(mapped).tolist() == [False] * (ROWS - 1) + [True]
    compiled = tf.function(lambda each: tf.vectorized_map(function, each))(tf.constant(rows))
    assert np.isnan(compiled).tolist() == [False] * (ROWS - 1) + [True]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_nothing_else_changes_in_compiled_extremes(dtype):
    x = tf.constant([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf], dtype)
    y = tf.constant([1.0, -np.inf, -0.0, 0.0, np.inf, 3.0], dtype)
    for function, exact in ((tf.maximum, jnp.maximum), (tf.minimum, jnp.minimum)):
        found, expected = tf.function(function)(x, y), exact(x, y)
        assert found.dtype == expected.dtype
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_gradients_of_compiled_extremes_are_those_of_plain_python():
    x = tf.Variable([-1.0, 0.0, 2.0, 7.0])

    def gradient(function):
        with tf.GradientTape() as tape:
            result = function(x)
        return tape.gradient(result, x)

    for function in (
        tf.nn.relu,
        tf.nn.relu6,
        lambda x: tf.maximum(x, 2.0),
        lambda x: tf.clip_by_value(x, 0.0, 2.0),
    ):
        assert tf.function(gradient)(function).tolist() == gradient(function).tolist()
