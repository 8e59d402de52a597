"""`py_function` and `numpy_function`: what they reject, and how results are converted."""

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.errors import InvalidArgumentError


def test_a_decorator_needs_to_know_what_is_returned():
    with pytest.raises(
        TypeError, match=r"py_function needs Tout[^$]*fix: write py_function\(func, inp, Tout="
    ):
        tf.py_function()
    with pytest.raises(TypeError, match="got inp, but no function"):
        tf.numpy_function(inp=[1], Tout=tf.int32)
    with pytest.raises(
        TypeError, match=r"no inputs for it[^$]*\[\] for a function without arguments"
    ):
        tf.numpy_function(abs, Tout=tf.int32)


def test_a_function_that_returns_nothing_says_so():
    assert tf.numpy_function(lambda: None, [], []) == []
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"returned None[^$]*pass Tout=\[\]"):
        tf.py_function(lambda: None, [], tf.int32)


def test_py_function_casts_arrays_to_tout():
    halves = tf.data.Dataset.from_tensor_slices(np.arange(3, dtype=np.uint8)).map(
        lambda x: tf.py_function(lambda v: v.numpy() / 2, [x], tf.float32)
    )
    assert halves.element_spec == tf.TensorSpec([], tf.float32)
    assert [x.tolist() for x in halves] == [0.0, 0.5, 1.0]


def test_py_function_rejects_integers_that_overflow():
    with pytest.raises(InvalidArgumentError, match=r"returned int64, but Tout says int32"):
        tf.py_function(lambda: np.array([2**40]), [], tf.int32)
    with pytest.raises(InvalidArgumentError, match=r"returned 300, but Tout says uint8"):
        tf.py_function(lambda: 300, [], tf.uint8)
    assert tf.py_function(lambda: np.array([2**30]), [], tf.int32).tolist() == [2**30]


def test_py_function_takes_tensors_of_another_dtype():
    assert tf.py_function(lambda x: x * 2, [np.int32(3)], tf.float32).numpy() == np.float32(6)
    assert tf.py_function(lambda: tf.constant(3), [], tf.float32).numpy() == np.float32(3)


def test_numpy_function_casts_only_python_numbers():
    assert tf.numpy_function(lambda: 1.5, [], tf.float32).numpy() == np.float32(1.5)
    with pytest.raises(InvalidArgumentError, match=r"returned 1\.5, but Tout says int32"):
        tf.numpy_function(lambda: 1.5, [], tf.int32)
    with pytest.raises(InvalidArgumentError, match="returned float64, but Tout says float32"):
        tf.numpy_function(lambda: np.float64(1.5), [], tf.float32)


def test_numpy_function_gets_single_values_as_scalars():
    def kinds(*values):
        return " ".join(type(value).__name__ for value in values).encode()

    found = tf.numpy_function(kinds, [3, np.float32(1.5), "a", True, [1], ["a"]], tf.string)
    assert found.numpy() == b"int32 float32 bytes bool ndarray ndarray"
    names = tf.data.Dataset.range(2).map(
        lambda x: tf.numpy_function(lambda v: {0: "zero", 1: "one"}[v], [x], tf.string)
    )
    assert [name.numpy() for name in names] == [b"zero", b"one"]
