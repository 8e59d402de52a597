import subprocess
import sys
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenfeed as tf
from evenfeed.core import lazy_jax
from evenfeed.tensors.device_arrays import (
    held_dtype,
    is_tracing,
    narrowed,
    private,
    to_device_array,
)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (tf.int64, tf.int32),
        (tf.uint64, tf.uint32),
        (tf.float64, tf.float32),
        (tf.complex128, tf.complex64),
    ],
)
def test_64_bits_become_32_unless_x64_is_on(wide, narrow):
    array = np.array([1, 2], wide)
    assert to_device_array(array, "x").dtype == narrow
    with jax.enable_x64(True):
        assert to_device_array(array, "x").dtype == wide


@pytest.mark.parametrize("dtype", [tf.bool, tf.int8, tf.uint32, tf.float16, tf.bfloat16, tf.int4])
def test_an_array_that_jax_can_hold_is_unchanged(dtype):
    array = np.array([0, 1], dtype)
    assert narrowed(array, "x") is array
    assert to_device_array(array, "x").dtype == dtype


@pytest.mark.parametrize(
    ("array", "value"),
    [
        (np.array([0, 2**31]), "2147483648"),
        (np.array([-(2**40), 0]), "-1099511627776"),
        (np.array([2**32], np.uint64), "4294967296"),
        (np.array([np.nan, np.inf, 1e300]), r"1e\+300"),
        (np.array([-1e39]), r"-1e\+39"),
        (np.array([1e300j]), "1e"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_that_names_it(array, value):
    text = (
        rf"(?s){value}.* in column 'id' does not fit into .*JAX_ENABLE_X64=1.*jax_enable_x64.*NumPy"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        to_device_array(array, "column 'id'")


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_an_integer_survives_or_raises(values):
    array = np.array(values, np.int64)
    if all(-(2**31) <= value < 2**31 for value in values):
        assert to_device_array(array, "x").tolist() == values
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit into int32"):
            to_device_array(array, "x")


@given(st.lists(st.floats()))
def test_a_float_becomes_infinite_only_if_it_is(values):
    array = np.array(values)
    with np.errstate(over="ignore"):
        expected = array.astype(np.float32)
    if np.array_equal(np.isinf(expected), np.isinf(array)):
        np.testing.assert_array_equal(np.asarray(narrowed(array, "x")), expected)
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit into float32"):
            narrowed(array, "x")


def test_the_array_is_a_copy():
    array = np.zeros(1000, np.float32)
    tensor = to_device_array(array, "x")
    array[:] = 7
    assert tensor.tolist() == [0.0] * 1000


def test_values_are_concrete_in_a_trace():
    @jax.jit
    def double(x):
        assert is_tracing()
        return x * int(to_device_array(np.array(2), "x"))

    assert double(3) == 6
    assert not is_tracing()


def test_a_transformation_without_compilation_is_not_tracing():
    asked = []
    ask = jax.vmap(lambda x: (asked.append(is_tracing()), x)[1])
    ask(np.zeros(2))
    jax.jit(ask)(np.zeros(2))
    jax.grad(lambda x: (asked.append(is_tracing()), x)[1])(1.0)
    assert asked == [False, True, False]


def test_is_tracing_creates_no_array(monkeypatch):
    monkeypatch.setattr(jnp, "zeros", None)
    monkeypatch.delitem(vars(lazy_jax.jnp), "zeros", raising=False)
    assert not is_tracing()


def test_an_array_is_copied_once():
    narrow, wide = np.zeros(3, np.float32), np.zeros(3, np.float64)
    assert not np.shares_memory(private(narrow, "x"), narrow)
    assert private(wide, "x").base is None


def test_x64_is_read_in_the_computing_thread():
    found = []
    with jax.enable_x64(True):
        thread = threading.Thread(target=lambda: found.append(held_dtype(tf.int64)))
        thread.start()
        thread.join()
        assert held_dtype(tf.int64) == tf.int64
    assert found == [tf.int32]


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.constant(1, tf.int64),
        lambda: tf.convert_to_tensor(1, tf.int64),
        lambda: tf.zeros([1], tf.int64),
        lambda: tf.ones([1], "int64"),
        lambda: tf.range(3, dtype=tf.int64),
        lambda: tf.cast(1.5, tf.int64),
        lambda: tf.shape([1], tf.int64),
        lambda: tf.random.uniform([1], 0, 5, tf.int64),
    ],
)
def test_requesting_64_bits_without_x64_warns_and_gives_32(make):
    with pytest.warns(UserWarning, match="int64 was asked for.*tensor is int32.*JAX_ENABLE_X64=1"):
        assert make().dtype == tf.int32
    with jax.enable_x64(True):
        assert make().dtype == tf.int64


def test_the_warning_points_to_the_user_line_and_comes_once_per_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            tf.zeros([1], tf.float64)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_default_of_64_bits_is_narrowed_without_a_warning():
    assert tf.constant(np.arange(3)).dtype == tf.int32
    assert tf.constant(1j).dtype == tf.complex64


@pytest.mark.slow
def test_importing_the_functions_and_printing_loads_no_jax():
    program = (
        "import sys, numpy, evenfeed.random\n"
        "from evenfeed.tensors import casting, creation, printing, shaping, top_level\n"
        "printing.print_('a', [1], numpy.arange(3))\n"
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
