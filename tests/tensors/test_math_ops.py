import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import evenfeed as tf

REDUCTIONS = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min]
NUMBERS = st.sampled_from([np.int8, np.uint8, np.int16, np.int32, np.uint32, np.float32])
INTEGERS = st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])


def arrays(dtypes, shapes=((1,), (3,), (2, 3))):
    """Return arrays of few shapes: each is compiled anew."""
    shapes = st.sampled_from(shapes)
    return dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes, elements=values_of(dtype)))


def values_of(dtype):
    # Subnormal floats are excluded: XLA treats them as zero.
    return (
        st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
        if np.issubdtype(dtype, np.floating)
        else None
    )


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (3, tf.int32, 9),
        ([1.5, 2], tf.float32, [2.25, 4.0]),
        (np.array([16], np.uint8), tf.uint8, [0]),
        (1j, tf.complex64, -1),
    ],
)
def test_square_keeps_the_dtype(value, dtype, result):
    tensor = tf.square(value)
    assert (tensor.dtype, tensor.tolist()) == (dtype, result)


@pytest.mark.parametrize("function", [tf.square, *REDUCTIONS])
@pytest.mark.parametrize("value", [True, ["a"]])
def test_numeric_functions_reject_other_dtypes(function, value):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"needs (real )?numbers, but got (bool|string)"
    ):
        function(value)


NAN, INF = float("nan"), float("inf")
FLOATS = [NAN, 1e20, -1e20, -1.5, 300.7, 2.9, -2.9, INF]
LOW = -(2**31)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        (tf.int8, [0, 0, 0, -1, 44, 2, -2, 0]),
        (tf.uint8, [0, 0, 0, 255, 44, 2, 254, 0]),
        (tf.int16, [0, 0, 0, -1, 300, 2, -2, 0]),
        (tf.int32, [LOW, LOW, LOW, -1, 300, 2, -2, LOW]),
        (tf.uint32, [2**31, 2**31, 2**31, 2**32 - 1, 300, 2, 2**32 - 2, 2**31]),
        (tf.bool, [True] * 8),
    ],
)
def test_cast_of_floats_is_tensorflows_on_a_cpu(dtype, result):
    assert tf.cast(FLOATS, dtype).tolist() == result
    assert jax.jit(lambda x: tf.cast(x, dtype))(jnp.array(FLOATS)).tolist() == result


def test_cast_of_floats_to_64_bits_under_x64():
    with jax.enable_x64(True):
        low = -(2**63)
        assert tf.cast(FLOATS, tf.int64).tolist() == [low, low, low, -1, 300, 2, -2, low]
        assert tf.cast([1e19, -3.0], tf.uint64).tolist() == [int(np.float32(1e19)), 2**64 - 3]


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (300, tf.uint8, 44),
        (-1, tf.uint8, 255),
        (2**40 + 1, tf.int32, 1),
        (2**40, tf.float32, float(2**40)),
        (np.array([2**53]), tf.float32, [float(2**53)]),
        ([0, 2], tf.bool, [False, True]),
        ([0.0, NAN, 0.5], tf.bool, [False, True, True]),
        ([1 + 2j, 0j], tf.float32, [1.0, 0.0]),
        ([0j, 1j], tf.bool, [False, False]),
        ([True], tf.float32, [1.0]),
        (1, "float16", 1.0),
        ("a", tf.string, b"a"),
    ],
)
def test_cast_of_other_values(value, dtype, result):
    tensor = tf.cast(value, dtype)
    assert (tensor.dtype, tensor.tolist()) == (tf.as_dtype(dtype), result)


@pytest.mark.parametrize(("value", "dtype"), [("1", tf.int32), (1, tf.string)])
def test_text_cannot_be_cast_to_numbers(value, dtype):
    with pytest.raises(tf.errors.UnimplementedError, match="cannot be cast to"):
        tf.cast(value, dtype)


def test_a_cast_to_64_bits_without_x64_loses_nothing_silently():
    with (
        pytest.warns(UserWarning, match="int64 was asked for"),
        pytest.raises(tf.errors.InvalidArgumentError, match="1099511627776 in the tensor"),
    ):
        tf.cast(2**40, tf.int64)


@given(arrays(INTEGERS), INTEGERS)
def test_cast_between_integers_wraps_as_numpy_does(array, dtype):
    result = tf.cast(array, dtype)
    assert result.dtype == dtype
    np.testing.assert_array_equal(np.asarray(result), array.astype(dtype))


@given(arrays(NUMBERS), st.booleans())
def test_sums_keep_the_dtype_in_both_modes(array, x64):
    with jax.enable_x64(x64):
        result = tf.reduce_sum(array, axis=0)
    assert result.dtype == array.dtype
    expected = array.sum(0, dtype=array.dtype)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1)


@given(arrays(INTEGERS, [(0,), (3,), (2, 0), (2, 3)]))
def test_a_mean_of_integers_is_exact_and_truncated(array):
    result = tf.reduce_mean(array)
    assert result.dtype == array.dtype
    total = sum(array.reshape(-1).tolist())
    mean = abs(total) // max(array.size, 1)
    assert int(result) == (mean if total >= 0 else -mean)


@given(arrays(NUMBERS), st.data())
def test_extremes_agree_with_numpy(array, data):
    axis = data.draw(st.none() | st.integers(-array.ndim, array.ndim - 1))
    keepdims = data.draw(st.booleans())
    for ours, theirs in ((tf.reduce_max, np.max), (tf.reduce_min, np.min)):
        result = ours(array, axis, keepdims)
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(np.asarray(result), theirs(array, axis, keepdims=keepdims))


@pytest.mark.parametrize(
    ("reduce", "of_floats", "of_ints"),
    [
        (tf.reduce_sum, 0.0, 0),
        (tf.reduce_max, -INF, -(2**31)),
        (tf.reduce_min, INF, 2**31 - 1),
    ],
)
def test_a_reduction_of_nothing(reduce, of_floats, of_ints):
    assert reduce([]).tolist() == of_floats
    assert reduce(np.zeros((2, 0), np.int32), axis=1).tolist() == [of_ints] * 2


def test_a_mean_of_nothing():
    assert np.isnan(tf.reduce_mean([]))
    assert tf.reduce_mean(np.zeros(0, np.int32)).tolist() == 0


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_axes_may_be_several_or_none(reduce):
    assert reduce([[1, 1]], axis=[0, -1]).shape == ()
    assert reduce([[1, 2]], axis=[]).tolist() == [[1, 2]]
    assert reduce([[1, 1]], axis=jnp.array([0, 1]), keepdims=True).shape == (1, 1)
    assert reduce(5).tolist() == 5


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize(
    ("axis", "text"),
    [
        (2, "axis 2 does not exist in a tensor of rank 2"),
        (-3, "axis -3 does not exist"),
        ([0, 0], r"contains an axis twice: \[0, 0\]"),
        (1.0, "must be an integer or a list of integers, but got 1.0"),
        ("a", "must be an integer"),
    ],
)
def test_an_invalid_axis_is_an_error(reduce, axis, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        reduce([[1, 2]], axis=axis)


WIDE = [
    (tf.reduce_sum, np.array([2**30] * 3)),
    (tf.reduce_sum, np.array([2**31] * 2, np.uint64)),
    (tf.reduce_sum, np.array([3e38, 3e38])),
    (tf.reduce_sum, [2**40, 2**40]),
    (tf.reduce_mean, np.array([2**40, 2**40])),
    (tf.reduce_max, np.array([1, 2**40])),
    (tf.reduce_min, np.array([1e39, 1e40])),
    (tf.square, np.array([2**16])),
    (tf.square, np.array([1e30])),
]


@pytest.mark.parametrize(("function", "value"), WIDE)
def test_a_result_of_64_bits_that_does_not_fit_is_an_error(function, value):
    what = f"in the result of {function.__name__} does not fit into"
    with pytest.raises(tf.errors.InvalidArgumentError, match=what):
        function(value)
    with jax.enable_x64(True):
        assert function(value).dtype == np.asarray(value).dtype


@pytest.mark.parametrize(
    ("function", "value", "result"),
    [
        (tf.reduce_sum, np.array([2**31, -(2**31), 5]), 5),
        (tf.reduce_sum, np.array([3e38, 3e38, -3e38, -3e38, 1]), 1.0),
        (tf.reduce_mean, np.array([2**40, -(2**40), 30]), 10),
        (tf.reduce_mean, np.array([3e38, 3e38, -6e38]), 0.0),
        (tf.reduce_min, np.array([7, 2**40]), 7),
        (tf.square, np.array(-(2**15)), 2**30),
    ],
)
def test_values_of_64_bits_on_the_host_are_computed_with_all_of_them(function, value, result):
    assert function(value).tolist() == result
    assert function(value).dtype.itemsize == 4
    assert jax.jit(lambda: function(value))().tolist() == result


@pytest.mark.parametrize("reduce", [tf.reduce_max, tf.reduce_min])
def test_the_extreme_of_empty_64_bit_values_is_that_of_the_32_bit_dtype(reduce):
    limits = np.iinfo(np.int32)
    assert reduce(np.array([], np.int64)).item() in (limits.min, limits.max)


def test_extremes_of_complex_numbers_are_an_error():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"reduce_max needs real numbers.*complex128"
    ):
        tf.reduce_max([1j])


@pytest.mark.parametrize("reduce", [tf.reduce_max, tf.reduce_min])
def test_extremes_pass_on_nan(reduce):
    assert np.isnan(reduce([1.0, NAN, 2.0]))


@pytest.mark.parametrize(
    ("x", "y", "result"),
    [
        ([1, 2], [1, 3], [True, False]),
        ([[1], [2]], [1, 2], [[True, False], [False, True]]),
        (["a", "b"], "a", [True, False]),
        ("a", b"a", True),
        (NAN, NAN, False),
        (0.1, np.float16(0.1), True),
        (jnp.int32(1), jnp.float32(1), True),
        (jnp.int32(1), 1.5, False),
    ],
)
def test_equal_compares_value_by_value(x, y, result):
    tensor = tf.equal(x, y)
    assert isinstance(tensor, jax.Array)
    assert (tensor.dtype, tensor.tolist()) == (tf.bool, result)


@pytest.mark.parametrize(
    ("x", "y", "error", "text"),
    [
        (
            [1, 2],
            [1, 2, 3],
            tf.errors.InvalidArgumentError,
            r"Cannot compare.*\(2,\) and \(3,\)",
        ),
        (["a", "b"], ["a"] * 3, tf.errors.InvalidArgumentError, "Cannot compare"),
        ("a", 1, TypeError, "1 cannot become a tensor of dtype string"),
        (jnp.int32(1), "a", TypeError, "'a' cannot become a tensor of dtype int32"),
        (None, 1, ValueError, "cannot become a tensor"),
    ],
)
def test_an_invalid_comparison_is_an_error(x, y, error, text):
    with pytest.raises(error, match=text):
        tf.equal(x, y)


def test_all_of_it_traces():
    x = jnp.array([[1.0, 2.0], [3.0, 5.0]])
    for function in (
        tf.square,
        *REDUCTIONS,
        lambda x: tf.equal(x, 2.0),
        lambda x: tf.cast(x, tf.uint8),
    ):
        np.testing.assert_array_equal(jax.jit(function)(x), function(x))
        assert jax.vmap(function)(x).shape[0] == 2
    assert jax.grad(lambda x: tf.reduce_mean(tf.square(x)))(x).tolist() == (x / 2).tolist()
    assert jax.vmap(tf.reduce_mean)(jnp.array([[-1, -2], [3, 4]])).tolist() == [-1, 3]


def test_a_mean_of_integers_compiles_for_every_replica():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("replica",))
    spec = jax.sharding.PartitionSpec("replica")

    def step(x):
        return tf.reduce_mean(x, keepdims=True) + tf.constant(1) + tf.cast(np.int64(1), tf.int32)

    run = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    assert run(jnp.arange(16)).tolist() == [2 + 2 * index for index in range(8)]
