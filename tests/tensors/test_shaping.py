import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import evenfeed as tf

ARRAYS = hnp.arrays(
    st.sampled_from([np.int32, np.float32, np.bool_]),
    hnp.array_shapes(max_dims=2, max_side=3),
    elements=st.sampled_from([0, 1]),
)


@pytest.mark.parametrize(
    ("value", "result"),
    [([[1, 2]], [1, 2]), (1, []), ("a", []), ([["a"]], [1, 1]), (np.zeros((2, 0)), [2, 0])],
)
def test_shape_is_a_vector_of_int32_in_both_modes(value, result):
    for x64 in (False, True):
        with jax.enable_x64(x64):
            tensor = tf.shape(value)
            assert isinstance(tensor, jax.Array)
            assert (tensor.dtype, tensor.tolist()) == (tf.int32, result)


def test_a_shape_has_no_other_dtypes():
    with pytest.raises(tf.errors.InvalidArgumentError, match="int32 or int64, but got float32"):
        tf.shape([1], tf.float32)


def test_the_shape_of_a_tracer_is_known():
    @jax.jit
    def flat(x):
        rows, columns = tf.shape(x)
        assert tf.shape(x).dtype == tf.int32
        return tf.reshape(x, [rows * columns])

    assert flat(jnp.ones((2, 3))).shape == (6,)


@pytest.mark.parametrize(
    ("value", "shape", "result"),
    [
        ([1, 2, 3, 4], [2, -1], [[1, 2], [3, 4]]),
        ([1], [], 1),
        ([1, 2], -1, [1, 2]),
        (["a", "b"], [2, 1], [[b"a"], [b"b"]]),
        ([1, 2], np.array([2, 1]), [[1], [2]]),
        ([1, 2], [jnp.int32(2), 1], [[1], [2]]),
        (np.zeros((0, 3)), [-1, 3], []),
    ],
)
def test_reshape_lays_values_out(value, shape, result):
    assert tf.reshape(value, shape).tolist() == result


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ([2, 2], r"3 values cannot be reshaped to \[2, 2\]"),
        ([2, -1], r"3 values cannot be reshaped to \[2, -1\]"),
        ([-1, 0], "3 values cannot be reshaped to"),
        ([-1, -1], "at most one -1"),
        ([-2], "at least 0"),
        ([[3]], "a vector of lengths"),
        ([3.0], "a vector of integers"),
        ("a", "a vector of integers"),
    ],
)
def test_an_invalid_reshape_is_an_error(shape, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.reshape([1, 2, 3], shape)


@given(ARRAYS, st.data())
def test_stack_agrees_with_numpy(array, data):
    axis = data.draw(st.integers(-array.ndim - 1, array.ndim))
    result = tf.stack([array, array, array], axis)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(np.asarray(result), np.stack([array] * 3, axis))


@given(ARRAYS, st.data())
def test_concat_agrees_with_numpy(array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    other = np.take(array, [0], axis)
    result = tf.concat([array, other], axis)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(np.asarray(result), np.concatenate([array, other], axis))


@pytest.mark.parametrize(
    ("values", "axis", "dtype", "result"),
    [
        ([1, 2], 0, tf.int32, [1, 2]),
        ([1, 2.5], 0, tf.float32, [1.0, 2.5]),
        (["a", "b"], 0, tf.string, [b"a", b"b"]),
        ([["a"], ["b"]], 1, tf.string, [[b"a", b"b"]]),
        ([], 0, tf.float32, []),
        (5, 0, tf.int32, 5),
        (np.ones((2, 3), np.float32), 1, tf.float32, [[1.0, 1.0]] * 3),
        ([jnp.int32(1), jnp.float32(2)], 0, tf.float32, [1.0, 2.0]),
        ([0.5, jnp.float16(0.5)], 0, tf.float16, [0.5, 0.5]),
        ([jnp.array([1]), [3]], 1, tf.int32, [[1, 3]]),
    ],
)
def test_stack_joins_along_a_new_axis(values, axis, dtype, result):
    tensor = tf.stack(values, axis)
    assert (tensor.dtype, tensor.tolist()) == (dtype, result)


@pytest.mark.parametrize(
    ("values", "axis", "error", "text"),
    [
        (
            [[1], [1, 2]],
            0,
            tf.errors.InvalidArgumentError,
            r"values\[0\] has \(1,\) and values\[1\]",
        ),
        ([["a"], "a"], 0, tf.errors.InvalidArgumentError, "one shape"),
        ([[1, 2]], 2, ValueError, "axis 2 does not exist in the stacked tensor"),
        ([[1, 2]], -3, ValueError, "pass an axis from -2 to 1"),
        (["a", 1], 0, TypeError, "1 cannot become a tensor of dtype string"),
    ],
)
def test_an_invalid_stack_is_an_error(values, axis, error, text):
    with pytest.raises(error, match=text):
        tf.stack(values, axis)


@pytest.mark.parametrize(
    ("values", "axis", "dtype", "result"),
    [
        ([[1], [2, 3]], 0, tf.int32, [1, 2, 3]),
        ([[[1]], [[2]]], -1, tf.int32, [[1, 2]]),
        ([["a"], ["b"]], 0, tf.string, [b"a", b"b"]),
        ([[], [1]], 0, tf.float32, [1.0]),
        ([[1]], 1, tf.int32, [1]),
        ([5], 0, tf.int32, 5),
        (jnp.array([1]), 0, tf.int32, [1]),
        ([jnp.array([1]), jnp.array([2.5])], 0, tf.float32, [1.0, 2.5]),
        ([[1], [2]], jnp.int32(0), tf.int32, [1, 2]),
    ],
)
def test_concat_joins_along_an_axis(values, axis, dtype, result):
    tensor = tf.concat(values, axis)
    assert (tensor.dtype, tensor.tolist()) == (dtype, result)


@pytest.mark.parametrize(
    ("values", "axis", "text"),
    [
        ([1, 2], 0, r"(?s)shape \[\].*evenfeed.stack"),
        (["a", "b"], 0, "cannot join scalars"),
        ([], 0, "got no tensors"),
        ([[[1]], [2]], 0, r"\(1, 1\) and values\[1\] has \(1,\)"),
        ([[[1]], [[2, 3]]], 0, r"differ only along axis 0.*\(1, 1\) and values\[1\] has \(1, 2\)"),
        ([[1], [2]], 5, "axis 5 does not exist in tensors of rank 1"),
        ([[1], [2]], 0.0, "a single integer, but got 0.0"),
    ],
)
def test_an_invalid_concat_is_an_error(values, axis, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.concat(values, axis)


def test_a_concat_along_the_last_axis_compares_the_others():
    with pytest.raises(tf.errors.InvalidArgumentError, match="only along axis -1"):
        tf.concat([np.ones((2, 1)), np.ones((3, 1))], -1)


def test_a_shape_that_is_traced_is_refused_in_jaxs_own_words():
    with pytest.raises(jax.errors.TracerArrayConversionError, match="traced array"):
        jax.jit(tf.reshape)(jnp.ones(2), jnp.array([1, 2]))


def test_all_of_it_traces():
    def joined(x):
        return tf.concat([tf.reshape(x, [-1, 1]), tf.stack([x, x + 1], axis=1)], axis=1)

    x = jnp.array([1.0, 2.0])
    assert jax.jit(joined)(x).tolist() == [[1.0, 1.0, 2.0], [2.0, 2.0, 3.0]]
    assert jax.vmap(joined)(x[None]).shape == (1, 2, 3)
    assert jax.grad(lambda x: tf.reduce_sum(joined(x)))(x).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("axis", ["a", None, 0.0, [0]])
@pytest.mark.parametrize("values", [[1, 2], np.arange(2)])
def test_an_axis_that_is_not_an_integer_is_a_type_error(values, axis):
    with pytest.raises(TypeError, match=r"axis must be a whole number(?s:.*)at: (?s:.*)fix: "):
        tf.stack(values, axis=axis)


def test_an_axis_may_be_a_tensor():
    assert tf.stack([[1, 2]], axis=tf.constant(1)).tolist() == [[1], [2]]


@pytest.fixture
def compiled():
    """A list that grows by one for each program that XLA compiles."""
    found = []

    def count(event, _, **__):
        if event.endswith("backend_compile_duration"):
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(count)
    yield found
    jax.monitoring.unregister_event_duration_listener(count)


def test_a_loop_that_joins_longer_and_longer_tensors_compiles_nothing(compiled):
    rows = np.arange(62, dtype=np.float32).reshape(31, 2)
    grown = tf.constant(rows[:1])
    for row in rows[1:]:
        grown = tf.concat([grown, [row]], axis=0)
        stacked = tf.stack([grown, tf.constant(rows[: len(grown)])])
    assert compiled == []
    assert isinstance(grown, jax.Array)
    assert grown.tolist() == rows.tolist()
    assert stacked.tolist() == [rows.tolist()] * 2
    jnp.zeros([3, 5, 7]) + 1.0
    assert compiled, "compiling was not counted"


def test_joined_tensors_are_where_their_parts_are():
    first, second = jax.devices()[:2]
    there = jax.device_put(jnp.ones(2), second)
    assert tf.concat([there, there], 0).devices() == {second}
    assert tf.stack([there, [2.0, 3.0]]).devices() == {second}
    with tf.device("CPU:1"):
        assert tf.concat([tf.constant([1.0]), [2.0]], 0).devices() == {second}
    assert tf.stack([tf.constant([1.0]), [2.0]]).devices() == {first}


def test_dtypes_of_joined_tensors_are_promoted_as_jax_does():
    whole, half = tf.constant([1], tf.int32), tf.constant([0.5], tf.float16)
    assert tf.concat([whole, half], 0).dtype == jnp.concatenate([whole, half]).dtype


def test_a_tape_records_what_is_joined():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.concat([x, x * x], 0)
        total = tf.reduce_sum(y * y) + tf.reduce_sum(tf.stack([x, x]))
    assert tape.gradient(total, x).tolist() == [8.0, 38.0]


@pytest.mark.parametrize(
    ("joined", "shape"),
    [
        (lambda x: tf.stack([tf.shape(x)[1], tf.shape(x)[0]]), [3, 4]),
        (lambda x: tf.stack([-1, tf.shape(x)[1] // 3, 3]), [4, 1, 3]),
        (lambda x: tf.concat([tf.shape(x)[:1], [3, 1]], 0), [4, 3, 1]),
        (lambda x: tf.concat([[-1], tf.shape(x)[1:]], axis=0), [4, 3]),
        (lambda x: tf.concat([tf.shape(x), (1,), tf.shape(x)[:0]], 0), [4, 3, 1]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_joined_lengths_are_a_shape_in_a_compiled_function(joined, shape):
    found = tf.function(lambda x: tf.reshape(x, joined(x)))(tf.ones((4, 3)))
    assert found.shape == tuple(shape)
    rows = tf.data.Dataset.from_tensors(np.ones((4, 3))).map(lambda x: tf.reshape(x, joined(x)))
    assert rows.element_spec.shape.as_list() == shape


def test_joined_lengths_of_different_shapes_are_an_error_in_a_compiled_function():
    with pytest.raises(ValueError, match="shape"):
        tf.function(lambda x: tf.stack([tf.shape(x), tf.shape(x)[:1]]))(tf.ones((4, 3)))
    with pytest.raises(ValueError, match=r"axis|dimension"):
        tf.function(lambda x: tf.concat([tf.shape(x), [1]], 1))(tf.ones((4, 3)))


def test_an_array_is_measured_without_a_copy(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("copied to a device")

    monkeypatch.setattr(jax, "device_put", refused)
    array = np.zeros((2, 3), np.float32)
    assert (int(tf.size(array)), int(tf.rank(array))) == (6, 2)
