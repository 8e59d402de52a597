"""A map that runs per element computes with NumPy, to the last bit what compiled maps compute."""

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.lazy_jax import jax

NAN, INF = np.nan, np.inf

VALUES = {
    "float32": np.array([[1.5, -2.5, 0.1], [7.0, 0.25, -3.0]], np.float32),
    "odd_floats": np.array([[NAN, INF, -INF], [-0.0, 0.0, 3e38]], np.float32),
    "int32": np.array([[3, 3, 2**31 - 1], [5, 3, -(2**31)]], np.int32),
    "int64": np.array([[2**40, -7, 3], [1, 2, 3]]),
    "uint8": np.array([[255, 1, 2], [3, 4, 200]], np.uint8),
    "bool": np.array([[True, False, True], [False, False, True]]),
    "empty": np.zeros((0, 3), np.float32),
}

FUNCTIONS = {
    "abs": tf.abs,
    "add": lambda x: tf.add(x, x),
    "add_number": lambda x: tf.add(x, 2),
    "argmax": lambda x: tf.argmax(x, 1),
    "argmin": lambda x: tf.argmin(x, 1, tf.int32),
    "argsort": lambda x: tf.argsort(x, axis=0),
    "argsort_falling": lambda x: tf.argsort(x, direction="DESCENDING"),
    "bitwise_and": lambda x: tf.bitwise.bitwise_and(x, x),
    "ceil": tf.math.ceil,
    "clip": lambda x: tf.clip_by_value(x, 1, 3),
    "cumsum": tf.cumsum,
    "cumsum_from_the_end": lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True),
    "divide": lambda x: tf.divide(x, x),
    "divide_no_nan": lambda x: tf.math.divide_no_nan(x, x),
    "equal": lambda x: tf.equal(x, x[0]),
    "floor": tf.floor,
    "floordiv": lambda x: tf.math.floordiv(x, 3),
    "floormod": lambda x: tf.math.floormod(x, 3),
    "floormod_negative": lambda x: tf.math.floormod(x, -2),
    "gather": lambda x: tf.gather(x, [2, 0], axis=1),
    "gather_nd": lambda x: tf.gather_nd(x, [[1, 2], [0, 1]]),
    "greater": lambda x: tf.greater(x, 1),
    "invert": tf.bitwise.invert,
    "is_nan": tf.math.is_nan,
    "less_equal": lambda x: tf.less_equal(x, x[::-1]),
    "logical_not": tf.logical_not,
    "logical_xor": lambda x: tf.math.logical_xor(x, x[::-1]),
    "maximum": lambda x: tf.maximum(x, 2),
    "minimum": lambda x: tf.minimum(x, x[::-1]),
    "multiply": lambda x: tf.multiply(x, x),
    "negative": tf.negative,
    "not_equal": lambda x: tf.not_equal(x, 1),
    "one_hot": lambda x: tf.one_hot(x, 4),
    "one_hot_columns": lambda x: tf.one_hot(x, 4, on_value=7, off_value=-1, axis=0),
    "reduce_all": tf.reduce_all,
    "reduce_any": lambda x: tf.reduce_any(x, 1),
    "reduce_max": lambda x: tf.reduce_max(x, 1, keepdims=True),
    "reduce_mean": tf.reduce_mean,
    "reduce_min": lambda x: tf.reduce_min(x, [0, 1]),
    "reduce_prod": lambda x: tf.reduce_prod(x, -1),
    "reduce_sum": lambda x: tf.reduce_sum(x, 0),
    "relu": tf.nn.relu,
    "reshape": lambda x: tf.reshape(x, [3, -1]),
    "round": tf.round,
    "sequence_mask": lambda x: tf.sequence_mask(x, 5, tf.int32),
    "sign": tf.sign,
    "slice": lambda x: tf.slice(x, [0, 1], [1, 2]),
    "sort": tf.sort,
    "sort_falling": lambda x: tf.sort(x, 0, "DESCENDING"),
    "sqrt": tf.sqrt,
    "square": tf.square,
    "squared_difference": lambda x: tf.math.squared_difference(x, x[0]),
    "subtract": lambda x: tf.subtract(x, x[0]),
    "top_k": lambda x: tuple(tf.math.top_k(x, 2)),
    "where": lambda x: tf.where(x > x[0], x, x[::-1]),
    "where_number": lambda x: tf.where(x > x[0], x, tf.cast(0, x.dtype)),
    "with_a_constant": lambda x: tf.constant([1, 2, 3], x.dtype) + x,
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_an_element_gets_what_a_compiled_map_computes(function) -> None:
    compared = 0
    for name, value in VALUES.items():
        if function is FUNCTIONS["floordiv"] and value.dtype.kind == "f":
            continue  # XLA multiplies by the reciprocal of a constant, which is off by one place
        expected, found = outcome(function, value), outcome(function, value, vectorize=False)
        assert found == expected, name
        compared += not isinstance(expected, str)
    assert compared


def outcome(function, value, **options):
    """Return dtype, shape and bytes of each part, or the name of the error."""
    try:
        (element,) = tf.data.Dataset.from_tensors(value).map(function, **options)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__
    parts = element if isinstance(element, tuple) else (element,)
    return [(part.dtype.name, tuple(part.shape), unsigned(part).tobytes()) for part in parts]


def unsigned(part):
    """Return the values without the signs of zero and NaN, which NumPy and XLA may choose differently."""
    array = np.asarray(part)
    return np.where(np.isnan(array), NAN, array + 0) if array.dtype.kind == "f" else array


def test_elements_are_computed_without_jax() -> None:
    kinds = []

    def computed(x):
        made = tf.reshape(tf.maximum(tf.constant([0.5, 1.5]), x), [-1])
        kinds.append(isinstance(made, jax.Array))
        return made

    list(tf.data.Dataset.from_tensors([1.0, 1.0]).map(computed, vectorize=False))
    assert kinds[-1] is False


def test_a_constant_does_not_share_the_memory_of_an_array() -> None:
    table, kept = np.array([1, 2, 3]), []

    def keep(x):
        kept.append(tf.constant(table))
        return x

    list(tf.data.Dataset.range(1).map(keep, vectorize=False))
    table[:] = 100
    assert kept[-1].tolist() == [1, 2, 3]
