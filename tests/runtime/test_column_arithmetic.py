from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenfeed as tf
from evenfeed.core.block import Block, ScratchBlock
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.dataset import plan_of
from evenfeed.runtime.functions.arithmetic.column_arithmetic import arithmetic_of
from evenfeed.runtime.functions.vectorise import BlockProgram, Row, on_host, traced


def calling(function):
    def call(leaves):
        results = function(*leaves)
        return None, list(results) if isinstance(results, tuple) else [results]

    return call


def found_for(function, *columns):
    return traced(calling(function), [Row(c.shape[1:], c.dtype) for c in columns])


def done(function, *columns):
    return found_for(function, *columns).arithmetic.run(columns, len(columns[0]))


def numbers(dtype="float32", shape=(5, 4), seed=0):
    drawn = np.random.default_rng(seed).integers(-9, 9, shape)
    return (drawn * (0.37 if np.dtype(dtype).kind == "f" else 1)).astype(dtype)


SIMPLE = [
    lambda x: x * 2 - 1,
    lambda x: x * 3.3 - 1.1,
    lambda x: (x + 1) * (x - 1),
    lambda x: x > 0,
    lambda x: (x > 0) & ~(x > 2),
    lambda x: -x,
    abs,
    lambda x: x**2,
    lambda x: jnp.where(x > 0, x, 0),
    lambda x: x + np.arange(4),
    lambda x: jnp.reshape(x, (2, 2)) * 2,
    lambda x: (x * 2, x * 2 - 1),
    lambda x: x * jnp.ones(4),
    lambda x: tf.cast(x, tf.float64) / 3,
    lambda x: x % 3,
    lambda x: x // 0.7,
    lambda x: x[0] % 2 == 0,
    lambda x: x % np.array([1, 2, 3, 4]),
    lambda x: (x[1:3] * 2, x[::2] + 1, x[-1]),
    lambda x: x * jnp.asarray(np.arange(8.0))[2:6],
]


@given(
    st.sampled_from(SIMPLE),
    st.sampled_from(["int8", "uint8", "int32", "int64", "float32", "float64"]),
    st.integers(0, 2**16),
)
def test_a_column_is_the_rows_to_the_last_bit(function, dtype, seed):
    column = numbers(dtype, seed=seed)
    found = found_for(function, column)
    together = found.arithmetic.run([column], 5)
    for index in range(5):
        alone = found.arithmetic.run([column[index : index + 1]], 1)
        for one, all_of in zip(alone, together, strict=True):
            assert one.dtype == all_of.dtype
            assert one.tobytes() == all_of[index : index + 1].tobytes()


@given(
    st.sampled_from(SIMPLE),
    st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "float32", "float64"]),
    st.integers(0, 2**16),
)
def test_numpy_gives_what_xla_gives(function, dtype, seed):
    column = numbers(dtype, seed=seed)
    found = found_for(function, column)
    mine = found.arithmetic.run([column], 5)
    program = BlockProgram([Row((4,), column.dtype)], found)
    theirs, _ = program.start([column]).wait()
    for one, two in zip(mine, theirs, strict=True):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        # XLA fuses a product and a sum and rounds once; NumPy rounds twice.
        np.testing.assert_allclose(one, two, rtol=2e-6, atol=2e-6)


LARGE = [*SIMPLE, lambda x: x, lambda x: (tf.cast(x, tf.float32) / 255.0 - 0.4) / 0.2]


@pytest.mark.parametrize("number", range(len(LARGE)))
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("size", [1, 2])
def test_pieces_are_computed_one_by_one_to_the_same_bits(number, dtype, size):
    column = numbers(dtype)
    found = found_for(LARGE[number], column)
    together = found.arithmetic.run([column], 5)
    arithmetic = replace(found.arithmetic, rows_per_piece=size)
    before, rooms = column.tobytes(), {}

    def room(number, kind):
        rooms[number] = np.empty((5, *kind[0]), kind[1])
        return rooms[number]

    for rows in (column, list(column), list(column[:, ::-1])):
        expected = together
        if isinstance(rows, list) and rows[0].strides[0] < 0:
            expected = found.arithmetic.run([column[:, ::-1]], 5)
        for given_room in (None, room):
            one_by_one = arithmetic.run([rows], 5, given_room)
            for one, all_of in zip(one_by_one, expected, strict=True):
                assert (one.dtype, one.shape) == (all_of.dtype, all_of.shape)
                assert one.tobytes() == all_of.tobytes()
        assert all(one is rooms[place] for place, one in enumerate(one_by_one))
    assert column.tobytes() == before


def test_each_operation_is_rounded_as_numpy_does():
    x = numbers()
    (out,) = done(lambda x: x * 3.3 - 1.1, x)
    assert out.tobytes() == (x * np.float32(3.3) - np.float32(1.1)).tobytes()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_what_is_too_large_wraps_as_in_xla(dtype):
    edge = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    assert [c.tolist() for c in done(lambda x: (x + 1, -x, abs(x)), edge)] == [
        (edge + np.array(1, dtype)).tolist(),
        (-edge).tolist(),
        np.abs(edge).tolist(),
    ]


DIVISORS = [
    *(("uint8", divisor) for divisor in (1, 2, 7)),
    *(
        (dtype, divisor)
        for dtype in ("int8", "int32", "int64")
        for divisor in (1, -1, 3, -7, 2, 64, -4)
    ),
    *((dtype, divisor) for dtype in ("float32", "float64") for divisor in (3, 0.5, -0.1, np.inf)),
]


@pytest.mark.parametrize(("dtype", "divisor"), DIVISORS)
def test_a_division_is_that_of_xla_to_the_last_bit(dtype, divisor):
    whole = np.dtype(dtype).kind != "f"
    edges = np.iinfo(dtype) if whole else np.finfo(dtype)
    others = [] if whole else [np.inf, np.nan, -0.0, 0.3]
    column = np.array([edges.min, edges.max, 0, 1, 2, 100, *others, *range(60)]).astype(dtype)
    column = np.concatenate([column, -column])

    def function(x):
        by = np.array(divisor, dtype)
        return (x % by, x // by, jax.lax.div(x, by), jax.lax.rem(x, by)) if whole else x % by

    program = BlockProgram([Row((), column.dtype)], found_for(function, column), len(column))
    for mine, theirs in zip(done(function, column), program.start([column]).wait()[0], strict=True):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(np.signbit(mine[mine == 0]), np.signbit(theirs[theirs == 0]))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_a_remainder_or_quotient_is_one_step(dtype):
    # If one fails, JAX writes % and // in another way, and both take seven steps or more.
    for function in (lambda x: x % 7, lambda x: x % 4, lambda x: x // 7, lambda x: x % -3):
        assert len(found_for(function, numbers(dtype)).arithmetic.steps) == 1


def test_what_looks_like_a_remainder_is_not_taken_for_one():
    def truncated(x):
        rest = jax.lax.rem(x, np.int64(5))
        other = (rest < 0) != (x < 0)  # not the sign of the divisor
        return jnp.where(other & (rest != 0), rest + 5, rest)

    def moved(x):
        rest = jax.lax.rem(x, np.int64(5))
        return jnp.where((rest < 0) & (rest != 0), rest + 6, rest)

    x = numbers("int64")
    rest = np.fmod(x, 5)
    assert done(truncated, x)[0].tolist() == rest.tolist()
    assert done(moved, x)[0].tolist() == np.where(rest < 0, rest + 6, rest).tolist()


WHOLE = [
    *(lambda x, by=by: x // np.array(by, x.dtype) for by in (1, 2, 7, 100)),
    *(lambda x, by=by: x // np.array(by).astype(x.dtype) for by in (-1, -3, -100)),
    lambda x: tf.math.floordiv(x, np.array(3, x.dtype)),
    lambda x: divmod(x, np.array(5, x.dtype)),
    lambda x: jnp.minimum(jnp.maximum(x, 2), 50),
    lambda x: tf.clip_by_value(x, np.array(3, x.dtype), np.array(40, x.dtype)),
    jnp.sign,
    lambda x: x**3,
    lambda x: (x << 3, x >> 2),
    lambda x: tf.stack([x, np.array(7, x.dtype), x + 1]),
    lambda x: tf.concat([[x], [x, x]], 0),
    lambda x: jnp.sum(tf.stack([x, x, x]), dtype=x.dtype),
    lambda x: (jnp.max(tf.stack([x, x // 2])), jnp.min(tf.stack([x, x % 5]))),
    lambda x: (tf.reduce_all(tf.stack([x > 3, x < 7])), tf.reduce_any(tf.stack([x > 3, x < 1]))),
]


@pytest.mark.parametrize("function", WHOLE)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_arithmetic_of_integers_is_that_of_xla(function, dtype):
    edges = np.iinfo(dtype)
    column = np.array([edges.min, edges.max, *range(-60, 60)]).astype(dtype)
    found = found_for(function, column)
    assert found.arithmetic is not None
    program = BlockProgram([Row((), column.dtype)], found, len(column))
    theirs, _ = program.start([column]).wait()
    for one, two in zip(found.arithmetic.run([column], len(column)), theirs, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_rounded_half_to_even(dtype):
    column = np.array([-2.5, -0.5, -0.3, 0.5, 1.5, 2.5, 1e30, np.inf, -np.inf, np.nan], dtype)
    (mine,) = done(tf.round, column)
    assert mine.tobytes() == np.rint(column).tobytes()


def test_dividing_by_zero_is_not_warned_of(recwarn):
    (out,) = done(lambda x: 1 / x, np.zeros(2, np.float32))
    assert np.isinf(out).all()
    assert not recwarn.list


def test_a_number_for_each_row_is_not_taken_for_a_column():
    x, y = np.ones((4, 4), np.float32), np.arange(4, dtype=np.float32)
    found = found_for(lambda x, y: x * y, x, y)
    (out,) = found.arithmetic.run([x, y], 4)
    assert out.tolist() == (x * y[:, None]).tolist()


def test_arguments_stay_as_they_are_and_results_cannot_be_written_to():
    x = numbers()
    before = x.copy()
    for out in done(lambda x: (x * 2, (x * 2 - 1) * 3, jnp.reshape(x * 2, (2, 2))), x):
        assert not out.flags.writeable
    assert (x == before).all()


def test_a_value_that_is_used_again_is_not_overwritten():
    def function(x):
        y = x * 2
        return y - 1, y + 1, y

    x = numbers()
    assert [out.tolist() for out in done(function, x)] == [
        (x * 2 - 1).tolist(),
        (x * 2 + 1).tolist(),
        (x * 2).tolist(),
    ]


def test_a_function_called_twice_within_has_values_of_its_own():
    @jax.jit
    def inner(x, k):
        return x * k

    x = numbers()
    (out,) = done(lambda x: inner(x, 2.0) - inner(x, 3.0), x)
    np.testing.assert_array_equal(out, x * np.float32(2) - x * np.float32(3))


def test_what_does_not_depend_on_the_element_is_there_for_each():
    (out,) = done(lambda x: jnp.full(3, 7, "int32"), numbers())
    assert out.tolist() == [[7, 7, 7]] * 5


def test_no_rows_are_no_rows():
    (out,) = done(lambda x: x * 2 - 1, numbers(shape=(0, 4)))
    assert (out.shape, out.dtype) == ((0, 4), np.float32)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x: x // x, "int32"),  # NumPy and XLA differ on division by zero
        (jnp.sign, "float32"),  # of -0.0 it is -0.0 in XLA, and 0.0 in NumPy
        (lambda x: x % x, "int64"),
        (lambda x: jnp.maximum(x, 0), "float32"),  # the sign of zero may differ
        (jnp.max, "float32"),
        (lambda x: x << 70, "int64"),  # undefined
        (lambda x: x >> x, "int64"),
        (lambda x: jax.lax.rem(x, np.array([1, 2, 0, 3])), "int64"),
        (lambda x: tf.cast(x, tf.int32), "float32"),  # undefined for values that do not fit
        (jnp.exp, "float32"),  # libraries differ in the last bit
        (jnp.sum, "float32"),
        (lambda x: x * 2, "float16"),
        (lambda x: x * 2, "bfloat16"),
        (lambda x: x * 1j, "float32"),
        (lambda x: x / 2, "int32"),  # computed in wider numbers
        (lambda x: x[jnp.argmax(x)], "float32"),
        (lambda x: x @ np.ones((4, 2), np.float32), "float32"),
        (lambda x: sum((x * k for k in range(9)), x), "float32"),  # many steps: compiled is faster
    ],
)
def test_what_is_not_simple_is_left_to_xla(function, dtype):
    assert found_for(function, numbers("float32").astype(tf.as_dtype(dtype))).arithmetic is None


def test_results_are_converted_at_the_end():
    with on_host():
        closed = jax.make_jaxpr(lambda x: x * 2.5)(np.float64(1))
    (out,) = arithmetic_of(closed, [np.dtype("float32")]).run([np.array([1.1, 2.2])], 2)
    assert out.tobytes() == (np.array([1.1, 2.2]) * 2.5).astype("float32").tobytes()


def test_a_constant_for_each_channel_is_stretched_to_the_rows():
    mean = np.array([1, 2, 4], np.float32)
    images = np.arange(5 * 2 * 4 * 3, dtype=np.float32).reshape(5, 2, 4, 3)
    dataset = tf.data.Dataset.from_tensor_slices(images).map(lambda x: (x - mean) / mean)
    np.testing.assert_array_equal(list(dataset), (images - mean) / mean)
    assert plan_of(dataset).function.compilations == 0


def test_a_slice_of_a_constant_is_not_taken_for_a_stretch():
    table = np.array([10, 20, 30], np.int32)
    dataset = tf.data.Dataset.range(3).map(lambda x: x + jnp.asarray(table)[1])
    assert [int(x) for x in dataset] == [20, 21, 22]


@pytest.mark.parametrize("function", SIMPLE)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_results_are_written_over_columns_that_nobody_needs(function, dtype):
    column = numbers(dtype)
    before, found = column.copy(), found_for(function, column).arithmetic
    expected = [out.copy() for out in found.run([column], 5)]
    assert (column == before).all()
    results = found.run([column], 5, free={0})
    assert [out.tobytes() for out in results] == [out.tobytes() for out in expected]
    if found.overwritten:
        assert all(np.shares_memory(out, column) for out in results)
    else:
        assert (column == before).all()
    for size in (1, 2):
        results = replace(found, rows_per_piece=size).run([before.copy()], 5, free={0})
        assert [out.tobytes() for out in results] == [out.tobytes() for out in expected]


def test_only_free_columns_are_overwritten():
    x, y = numbers(seed=1), numbers(seed=2)
    found = found_for(lambda x, y: (x * 2 - 1, y + 1), x, y).arithmetic
    before = x.copy(), y.copy()
    for free in ((), {0}, {1}):  # all or none: a call that needs memory might fail after another
        found.run([x, y], 5, free=free)
        assert (x == before[0]).all()
        assert (y == before[1]).all()
    first, second = found.run([x, y], 5, free={0, 1})
    assert np.shares_memory(first, x)
    assert np.shares_memory(second, y)
    assert first.tolist() == (before[0] * 2 - 1).tolist()


def test_a_map_writes_over_rows_that_were_fetched_for_it():
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros(5, np.float32)).map(lambda x: x * 2 - 1)
    for kind, is_overwritten in ((ScratchBlock, True), (Block, False)):
        column = np.arange(5, dtype=np.float32)
        (result,) = plan_of(dataset).function.rows(kind((column,), 5)).columns
        assert result.tolist() == [-1, 1, 3, 5, 7]
        assert np.shares_memory(result, column) is is_overwritten


@pytest.mark.parametrize("size", [5, 40])
def test_rows_that_are_mapped_in_place_stay_as_they_are_elsewhere(size):
    rows, labels = np.arange(80, dtype=np.float32).reshape(40, 2), np.arange(40)
    weight = tf.Variable(3.0)
    source = tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(40, seed=1)
    dataset = source.map(lambda x, n: (x * 2 - weight, x, n, n + 1)).map(
        lambda a, b, c, d: (a + 1, b, c, d * 2)
    )
    for _ in range(2):
        seen = []
        for a, b, n, d in dataset.batch(size):
            np.testing.assert_array_equal(b, rows[n])
            np.testing.assert_array_equal(a, rows[n] * 2 - 2)
            np.testing.assert_array_equal(d, 2 * (n + 1))
            seen += n.tolist()
        assert sorted(seen) == list(range(40))
    assert rows.ravel().tolist() == list(range(80))
    assert float(weight) == 3
    numbers = tf.data.Dataset.range(size)
    both = tf.data.Dataset.zip(
        (numbers, numbers.map(lambda x: x * 3 + 1), numbers.shuffle(size).map(lambda x: -x))
    )
    found = [part.tolist() for part in next(iter(both.batch(size)))]
    assert found[:2] == [list(range(size)), [3 * n + 1 for n in range(size)]]
    assert sorted(found[2]) == [-n for n in reversed(range(size))]
