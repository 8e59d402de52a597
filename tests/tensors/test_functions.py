"""`py_function` and `numpy_function`: what they refuse."""

import pytest

import evenfeed as tf


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
