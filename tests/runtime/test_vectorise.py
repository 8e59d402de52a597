import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.handles import Handle
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.runtime.functions.vectorise import BlockProgram, Row, refuses_tracing, traced


def calling(function):
    def call(leaves):
        return None, [function(*leaves)]

    return call


def ran(function, *columns):
    rows = [Row(column.shape[1:], column.dtype) for column in columns]
    found = traced(calling(function), rows)
    (output,), failed = BlockProgram(rows, found).start(columns).wait()
    part = found.parts[0]
    assert (output.shape[1:], output.dtype) == (part.shape, part.dtype)
    return output, failed


def numbers(dtype):
    return np.arange(8).reshape(2, 4).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "function", "becomes"),
    [
        # A default that is 64-bit only because of x64 becomes TensorFlow's default.
        ("uint8", lambda x: x / 255.0, "float32"),
        ("uint8", lambda x: x / 2, "float32"),
        ("float32", lambda x: x * 2.0, "float32"),
        ("float32", lambda x: x + jnp.zeros(4), "float32"),
        ("float32", lambda x: x + np.float64(1), "float32"),
        ("float32", lambda x: x + np.ones(4), "float32"),
        ("int32", jnp.sum, "int32"),
        ("int32", lambda x: x + np.arange(4), "int32"),
        ("float32", lambda x: jnp.arange(3), "int32"),
        # Integers of 32 or more bits are divided as float64.
        ("int32", lambda x: x / 2, "float64"),
        ("uint32", lambda x: x / 2, "float64"),
        ("int64", lambda x: x / 2, "float64"),
        ("int32", lambda x: tf.cast(x, tf.float32) / 2, "float32"),
        # Explicit dtypes, and results of 64-bit parts, stay.
        ("float32", lambda x: x.astype("float64"), "float64"),
        ("float32", lambda x: tf.cast(x, tf.float64), "float64"),
        ("float32", lambda x: tf.ones([2], tf.int64), "int64"),
        ("float64", lambda x: x * 2, "float64"),
        ("int64", lambda x: x * 0.5, "float64"),
        ("int64", lambda x: x * 2 + 1, "int64"),
        ("int32", lambda x: tf.constant(np.arange(9))[x[0]], "int64"),
        ("float16", lambda x: x * 2, "float16"),
        ("bfloat16", lambda x: x * 2, "bfloat16"),
        ("uint8", tf.reduce_mean, "uint8"),
    ],
)
def test_the_dtype_is_tensorflows(dtype, function, becomes):
    output, _ = ran(function, numbers(tf.as_dtype(dtype)))
    assert output.dtype == tf.as_dtype(becomes)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x + np.array(1),
        lambda x: x + tf.constant(1, tf.int64),
        lambda x: tf.stack([x, x])[0] + 1,
    ],
)
def test_ids_above_32_bits_survive(function):
    ids = np.array([2**40, 2**31, 1])
    output, _ = ran(function, ids)
    assert output.dtype == np.int64
    assert output.tolist() == [2**40 + 1, 2**31 + 1, 2]


@pytest.mark.parametrize("big", [np.int64(2**40), np.array([2**40]), [2**40]])
def test_constants_above_32_bits_survive(big):
    def add(x):
        return x + tf.constant(big)

    output, _ = ran(add, np.array([1, 2], np.int32))
    assert output.ravel().tolist() == [2**40 + 1, 2**40 + 2]


def test_64_bits_are_for_the_function_only():
    before = jax.config.read("jax_enable_x64")
    ran(lambda x: x + 1, np.array([2**40]))
    assert jax.config.read("jax_enable_x64") == before


def test_an_index_out_of_range_is_seen_by_row():
    output, failed = ran(lambda x, i: x[i], numbers("float32"), np.array([1, 4]))
    assert failed.tolist() == [False, True]
    assert output[0] == 1


def test_negative_indices_count_from_the_end():
    output, failed = ran(lambda x, i: x[i], numbers("int32"), np.array([-1, -4]))
    assert (output.tolist(), failed.tolist()) == ([3, 4], [False, False])


def test_clipping_asked_for_by_name_is_no_error():
    clip = lambda x, i: jnp.take(x, i, mode="clip")  # noqa: E731
    output, failed = ran(clip, numbers("int32"), np.array([9, 9]))
    assert (output.tolist(), failed) == ([3, 7], None)


def test_a_function_without_indices_is_not_checked():
    assert ran(lambda x: x[1] + x[-1], numbers("int32"))[1] is None


def test_a_fixed_index_is_known_from_the_trace():
    rows = [Row((4,), np.dtype("int32"))]
    assert traced(calling(lambda x: x[np.array([5, 0])]), rows).fixed_index
    assert not traced(calling(lambda x: x[3]), rows).fixed_index


def test_two_traces_of_one_function_read_alike():
    def function(x):
        table = tf.constant([1, 2, 3])
        return jnp.where(x > 1, table[0], jnp.sum(x)), lambda: 0

    def call(leaves):
        return None, [function(*leaves)[0]]

    rows = [Row((4,), np.dtype("int32"))]
    assert traced(call, rows).text == traced(call, rows).text


def test_two_traces_with_other_constants_differ():
    drawn = iter(range(10))
    rows = [Row((), np.dtype("int32"))]
    for function in (
        lambda x: x + np.full(3, next(drawn)),
        lambda x: x * next(drawn),
        lambda x: np.array(next(drawn)),
    ):
        assert traced(calling(function), rows).text != traced(calling(function), rows).text


@pytest.mark.parametrize(
    ("shape", "function"),
    [
        ((), lambda x: x if x > 0 else -x),
        ((), np.sin),
        ((), float),
        ((), range),
        ((), tf.range),
        ((4,), lambda x: x[x > 1]),
    ],
)
def test_what_needs_values_says_so(shape, function):
    with pytest.raises((TypeError, IndexError)) as caught:
        traced(calling(function), [Row(shape, np.dtype("int64"))])
    assert refuses_tracing(caught.value)


@pytest.mark.parametrize(
    "look",
    [
        lambda t: t == "x",
        lambda t: t != "x",
        lambda t: f"{t}",
        str,
        bool,
        len,
        hash,
        repr,
        list,
        lambda t: t + "x",
        lambda t: t[0],
        lambda t: {t: 1},
        lambda t: t in ("a", "b"),
        lambda t: t.decode(),
    ],
)
def test_a_handle_answers_nothing(look):
    with pytest.raises((TypeError, AttributeError)):
        look(Handle(0))
