import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import evenfeed as tf
from evenfeed.tensors.creation import static_shape


class Held:
    """Reads as a tensor, like a variable."""

    def __init__(self, value):
        self.value = jnp.asarray(value)

    def __jax_array__(self):
        return self.value


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with jax.enable_x64(request.param):
        yield request.param


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (3, tf.int32, 3),
        (2.5, tf.float32, 2.5),
        (True, tf.bool, True),
        ("a", tf.string, b"a"),
        ([b"a", "b"], tf.string, [b"a", b"b"]),
        ([1, 2.5], tf.float32, [1.0, 2.5]),
        ([], tf.float32, []),
        ([[]], tf.float32, [[]]),
        ((1, 2), tf.int32, [1, 2]),
        (np.uint8(3), tf.uint8, 3),
        ([np.int64(5), 2], tf.int32, [5, 2]),
        (range(3), tf.int32, [0, 1, 2]),
        (np.array([0.5], np.float16), tf.float16, [0.5]),
    ],
)
def test_a_constant_has_tensorflows_dtype_in_both_modes(x64, value, dtype, result):
    tensor = tf.constant(value)
    assert (tensor.dtype, tensor.tolist()) == (dtype, result)


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (3, tf.float32, 3.0),
        (True, tf.int32, 1),
        (np.array([2.5]), tf.int32, [2]),
        (np.array([300]), tf.uint8, [44]),
        (1, "float16", 1.0),
        (1, float, 1.0),
    ],
)
def test_a_dtype_can_be_asked_for(value, dtype, result):
    tensor = tf.constant(value, dtype)
    assert (tensor.dtype, tensor.tolist()) == (tf.as_dtype(dtype), result)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((2.5, tf.int32), TypeError, "2.5 cannot become a tensor of dtype int32"),
        ((1, tf.bool), TypeError, "1 cannot become a tensor of dtype bool"),
        (([1, 2], tf.string), TypeError, "cannot become a tensor of dtype string"),
        ((300, tf.uint8), tf.errors.InvalidArgumentError, "300 does not fit into uint8"),
        (([[], [1]],), ValueError, "is not rectangular"),
        ((None,), ValueError, "cannot become a tensor"),
        (([1, "a"],), ValueError, "mixes"),
        ((2**40,), tf.errors.InvalidArgumentError, "1099511627776 in the tensor does not fit"),
        (([1, 2, 3], None, (2, 2)), TypeError, r"The shape \(2, 2\) needs 4 values, but got 3"),
        ((0, None, [-1]), ValueError, "at least 0, but got -1"),
    ],
)
def test_an_invalid_constant_is_an_error(arguments, error, text):
    with pytest.raises(error, match=text):
        tf.constant(*arguments)


def test_an_int_that_needs_64_bits_is_int64_under_x64():
    with jax.enable_x64(True):
        tensor = tf.constant(2**40)
        assert (tensor.dtype, int(tensor)) == (tf.int64, 2**40)


@pytest.mark.parametrize(
    ("value", "shape", "result"),
    [
        (0, (2, 2), [[0, 0], [0, 0]]),
        (0, 3, [0, 0, 0]),
        ([7], [3], [7, 7, 7]),
        ([7], [], 7),
        ([1, 2, 3, 4], (2, 2), [[1, 2], [3, 4]]),
        ("a", [2], [b"a", b"a"]),
    ],
)
def test_a_constant_fills_its_shape(value, shape, result):
    assert tf.constant(value, shape=shape).tolist() == result


def test_a_tensor_is_returned_as_it_is():
    tensor = jnp.arange(3)
    assert tf.constant(tensor) is tensor
    assert tf.convert_to_tensor(tensor, tf.int32) is tensor
    assert tf.convert_to_tensor(tensor, dtype_hint=tf.float32) is tensor


def test_a_tensor_of_another_dtype_is_an_error():
    with pytest.raises(TypeError, match=r"(?s)must be float32.*dtype int32.*evenfeed.cast"):
        tf.constant(jnp.arange(3), tf.float32)
    with pytest.raises(ValueError, match=r"(?s)must be float32.*dtype int32.*evenfeed.cast"):
        tf.convert_to_tensor(jnp.arange(3), tf.float32)


@pytest.mark.parametrize(
    ("value", "hint", "dtype"),
    [(1, tf.float32, tf.float32), (2.5, tf.int32, tf.float32), ("a", tf.int32, tf.string)],
)
def test_a_hint_is_used_if_possible(value, hint, dtype):
    assert tf.convert_to_tensor(value, dtype_hint=hint).dtype == dtype


def test_lists_may_hold_tensors():
    assert tf.convert_to_tensor([jnp.int32(1), 2]).dtype == tf.int32
    assert tf.convert_to_tensor([jnp.int32(1), 2.5]).tolist() == [1.0, 2.5]
    assert tf.constant([[jnp.arange(2)], [[3, 4]]]).tolist() == [[[0, 1]], [[3, 4]]]


def test_a_value_that_reads_as_a_tensor_is_read():
    held = Held([1.0, 2.0])
    assert tf.convert_to_tensor(held) is held.value
    assert tf.constant([held, [3.0, 4.0]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert tf.reduce_sum(held).tolist() == 3.0


def test_constants_and_lists_of_tracers_trace():
    assert jax.jit(lambda x: tf.convert_to_tensor([x, 1.0]))(2.0).tolist() == [2.0, 1.0]
    assert jax.jit(tf.constant)(2.0) == 2.0
    assert jax.jit(lambda x: tf.reshape(x, tf.constant([2, -1])))(jnp.arange(4)).shape == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "dtype", "result"),
    [
        ((5,), tf.int32, [0, 1, 2, 3, 4]),
        ((2, 9, 3), tf.int32, [2, 5, 8]),
        ((5, 2, -1), tf.int32, [5, 4, 3]),
        ((0,), tf.int32, []),
        ((3.0,), tf.float32, [0.0, 1.0, 2.0]),
        ((0, 1, 0.25), tf.float32, [0.0, 0.25, 0.5, 0.75]),
        ((jnp.int32(1), 3.5), tf.float32, [1.0, 2.0, 3.0]),
        ((np.float16(2),), tf.float16, [0.0, 1.0]),
        ((3, None, 2), tf.int32, [0, 2]),
    ],
)
def test_range_counts_in_the_widest_dtype(x64, arguments, dtype, result):
    tensor = tf.range(*arguments)
    assert (tensor.dtype, tensor.tolist()) == (dtype, result)


def test_range_of_fractions_has_tensorflows_rounding():
    expected = np.float32(1) + np.arange(4, dtype=np.float32) * np.float32(-0.3)
    assert tf.range(1, 0, -0.3).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((5, 2), tf.errors.InvalidArgumentError, "from 5 to 2 in steps of 1"),
        ((0, 5, 0), tf.errors.InvalidArgumentError, "in steps of 0"),
        ((float("nan"),), tf.errors.InvalidArgumentError, "to nan"),
        ((float("inf"),), tf.errors.InvalidArgumentError, "does not end"),
        (([1, 2],), tf.errors.InvalidArgumentError, r"single numbers, but got \[1, 2\]"),
        ((True,), TypeError, "range supports int32.*but got bool"),
        (("a",), TypeError, "but got string"),
        ((3.5, None, 1, tf.int32), TypeError, "3.5 cannot become"),
    ],
)
def test_an_invalid_range_is_an_error(arguments, error, text):
    with pytest.raises(error, match=text):
        tf.range(*arguments)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_range_agrees_with_python(start, limit, delta):
    if (limit - start) * delta < 0:
        with pytest.raises(tf.errors.InvalidArgumentError, match="range cannot go"):
            tf.range(start, limit, delta)
    else:
        assert tf.range(start, limit, delta).tolist() == list(range(start, limit, delta))


@pytest.mark.parametrize("dtype", [tf.float32, tf.int8, tf.bool, tf.complex64, tf.bfloat16])
def test_zeros_and_ones_have_the_dtype_asked_for(dtype):
    assert tf.zeros([2], dtype).dtype == tf.ones([2], dtype).dtype == dtype
    assert not np.any(tf.zeros([2], dtype))
    assert np.all(tf.ones([2], dtype))


def test_zeros_of_text_are_empty():
    assert tf.zeros([1, 2], tf.string).tolist() == [[b"", b""]]
    assert tf.zeros((), tf.string).dtype == tf.string
    with pytest.raises(TypeError, match="1 cannot become a tensor of dtype string"):
        tf.ones([2], tf.string)


@pytest.mark.parametrize(
    "shape",
    [
        (2, 3),
        [2, 3],
        np.array([2, 3]),
        jnp.array([2, 3]),
        [jnp.int32(2), 3],
        tf.TensorShape([2, 3]),
        [np.int64(2), Held(3)],
    ],
)
def test_a_shape_may_be_written_in_many_ways(shape):
    assert static_shape(shape) == (2, 3)


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ([-1], tf.errors.InvalidArgumentError, "at least 0, but got -1"),
        ([[2]], tf.errors.InvalidArgumentError, "a vector of lengths"),
        ([2.0], TypeError, "cannot become a tensor of dtype int32"),
        ("a", TypeError, "cannot become a tensor of dtype int32"),
        ([None], ValueError, r"fully known shape, but got \[None\]"),
        (
            tf.TensorShape([None, 1]),
            ValueError,
            r"fully known shape, but got TensorShape\(\[None, 1\]\)",
        ),
        (tf.TensorShape(None), ValueError, r"fully known shape, but got TensorShape\(None\)"),
    ],
)
def test_an_invalid_shape_is_an_error(shape, error, text):
    with pytest.raises(error, match=text):
        tf.zeros(shape)


def test_lengths_may_come_from_another_tensor_in_a_compiled_function():
    made = jax.jit(
        lambda x: tf.zeros([tf.shape(x)[0], 2]) + tf.range(tf.shape(x)[1], dtype="float32")
    )
    assert made(jnp.ones((3, 2))).tolist() == [[0.0, 1.0]] * 3


@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, min_side=0), elements=st.floats(width=32))
)
def test_an_array_stays_what_it_is(array):
    np.testing.assert_array_equal(np.asarray(tf.constant(array)), array)


@pytest.mark.parametrize("make", [tf.constant, tf.convert_to_tensor, lambda x: tf.cast(x, x.dtype)])
@pytest.mark.parametrize("length", [3, 65536])
def test_a_tensor_does_not_change_with_the_array_it_was_made_of(make, length):
    for _ in range(20):
        array = np.zeros(length, np.float32)
        tensor = make(array)
        array[:] = 1
        assert not np.asarray(tensor).any()


def test_a_constant_of_text_does_not_change_with_its_array():
    array = np.array([b"a"], object)
    tensor = tf.constant(array)
    array[0] = b"b"
    assert tensor.tolist() == [b"a"]


@pytest.mark.parametrize(
    "use",
    [
        tf.constant,
        tf.convert_to_tensor,
        tf.reduce_sum,
        tf.zeros,
        tf.type_spec_from_value,
        lambda key: tf.cast(key, tf.int32),
        lambda key: tf.stack([key, key]),
        lambda key: tf.equal(key, key),
        tf.data.Dataset.from_tensors,
    ],
)
def test_a_prng_key_is_not_a_tensor(use):
    key = jax.random.key(0)
    with pytest.raises(TypeError, match=r"key<fry>(?s:.*)at: (?s:.*)fix: .*key_data"):
        use(key)


def test_a_shape_becomes_a_vector_of_its_lengths():
    assert tf.constant(tf.TensorShape([1, 2])).tolist() == [1, 2]
    with pytest.raises(TypeError, match="cannot become a tensor of dtype float32"):
        tf.constant(tf.TensorShape([1, 2]), tf.float32)
    with pytest.raises(ValueError, match="fully known shape, but got TensorShape"):
        tf.constant(tf.TensorShape([None]))


def test_a_range_of_complex_numbers_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="range does not support complex64"):
        tf.range(3, dtype=tf.complex64)
