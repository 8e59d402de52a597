import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.randomness.seeds import operation_seed


@pytest.fixture(autouse=True)
def no_seed():
    yield
    tf.random.set_seed(None)


def draws(count=3, **options):
    return [float(tf.random.uniform([], **options)) for _ in range(count)]


def after_seed(global_seed, **options):
    tf.random.set_seed(global_seed)
    return draws(**options)


# The pairs come from TensorFlow 2.21.
def test_seeds_combine_as_in_tensorflow():
    tf.random.set_seed(None)
    assert operation_seed(None) is None
    assert operation_seed(5) == (87654321, 5)
    tf.random.set_seed(1)
    assert [operation_seed(None) for _ in range(2)] == [(1, 577090037), (1, 271041745)]
    assert operation_seed(5) == (1, 5)
    tf.random.set_seed(1)
    assert operation_seed(None) == (1, 577090037)


@pytest.mark.parametrize(("seed", "kept"), [(2**40, 512), (-1, 2**31 - 2), (np.int64(3), 3)])
def test_seeds_are_cut_to_31_bits(seed, kept):
    tf.random.set_seed(seed)
    assert operation_seed(seed) == (kept, kept)


@pytest.mark.parametrize("seed", ["a", 1.5, [1]])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(TypeError, match="seed must be a whole number"):
        tf.random.set_seed(seed)


def test_without_seeds_nothing_repeats():
    tf.random.set_seed(None)
    assert len(set(draws(20))) == 20


def test_the_global_seed_repeats_the_sequence():
    first = after_seed(1)
    assert len(set(first)) == 3
    assert after_seed(1) == first
    assert after_seed(2) != first


def test_the_seed_of_an_operation_repeats_its_own_sequence():
    first = after_seed(1, seed=5)
    assert len(set(first)) == 3
    tf.random.set_seed(1)
    draws()  # other operations in between do not count
    tf.random.normal([], seed=5)
    assert draws(seed=5) == first
    assert after_seed(2, seed=5) != first
    assert after_seed(None, seed=5) == after_seed(None, seed=5)


def test_threads_share_one_sequence_without_loss():
    tf.random.set_seed(3)
    expected = {operation_seed(None) for _ in range(400)}
    tf.random.set_seed(3)
    found = []

    def take():
        found.extend([operation_seed(None) for _ in range(100)])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == expected


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_uniform_floats_fill_their_range(dtype):
    values = np.asarray(tf.random.uniform([2000], 2, 4, dtype), np.float32)
    assert (values >= 2).all()
    assert (values <= 4).all()
    assert abs(values.mean() - 3) < 0.1


def test_uniform_integers_reach_every_number_but_maxval():
    assert set(tf.random.uniform([500], 5, 8, tf.int32).tolist()) == {5, 6, 7}
    with jax.enable_x64(True):
        assert tf.random.uniform([3], 2**40, 2**40 + 1, tf.int64).tolist() == [2**40] * 3


def test_normal_numbers_have_mean_and_width():
    values = np.asarray(tf.random.normal([4000], mean=5.0, stddev=2.0))
    assert abs(values.mean() - 5) < 0.2
    assert abs(values.std() - 2) < 0.2


def test_bounds_may_be_tensors():
    assert tf.random.uniform([2], [0.0, 10.0], [0.0, 10.0]).tolist() == [0.0, 10.0]
    assert tf.random.normal([2], mean=[[0.0], [1.0]]).shape == (2, 2)


def test_the_defaults_stay_32_bits_under_x64():
    with jax.enable_x64(True):
        assert tf.random.uniform([1]).dtype == tf.random.normal([1]).dtype == tf.float32
        assert tf.random.normal([1], dtype=tf.float64).dtype == tf.float64


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([2], 0, None, tf.int32), ValueError, "needs maxval for int32"),
        (([2], 5, 5, tf.int32), tf.errors.InvalidArgumentError, "below maxval, but got 5 and 5"),
        (([2], 0, [3, 4], tf.int32), tf.errors.InvalidArgumentError, "must be single numbers"),
        (([2], 0.5, 3, tf.int32), TypeError, "0.5 cannot become"),
        (([2], 0, 5, tf.uint8), ValueError, "uniform draws float16.*but dtype is uint8"),
        ((3,), tf.errors.InvalidArgumentError, "a vector of lengths, but got 3"),
        (([-1],), tf.errors.InvalidArgumentError, "at least 0, but got -1"),
        (([2.5],), tf.errors.InvalidArgumentError, "a vector of lengths"),
    ],
)
def test_an_invalid_uniform_is_an_error(arguments, error, text):
    with pytest.raises(error, match=text):
        tf.random.uniform(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((0.0, 1.0, tf.int32), TypeError, "0.0 cannot become"),
        ((0, 1, tf.int32), tf.errors.InvalidArgumentError, "are floats, but dtype is int32"),
        ((0, 1, tf.complex64), tf.errors.InvalidArgumentError, "floats, but dtype is complex64"),
    ],
)
def test_normal_numbers_are_floats(arguments, error, text):
    with pytest.raises(error, match=text):
        tf.random.normal([1], *arguments)


def test_a_compiled_function_draws_new_numbers_each_time_and_repeats_after_set_seed():
    step = jax.jit(lambda x: tf.random.uniform([]) + x)
    tf.random.set_seed(1)
    first = [float(step(0.0)) for _ in range(3)]
    assert len(set(first)) == 3
    tf.random.set_seed(1)
    assert [float(step(0.0)) for _ in range(3)] == first
    tf.random.set_seed(2)
    assert float(step(0.0)) not in first


def test_drawing_works_in_loops_and_gradients():
    loop = jax.jit(lambda: jax.lax.scan(lambda c, _: (c, tf.random.normal([])), 0.0, None, 3)[1])
    assert len(set(loop().tolist())) == 3
    slope = jax.jit(jax.grad(lambda x: x * tf.random.uniform([], 2.0, 3.0)))(1.0)
    assert 2 <= slope <= 3


def test_every_replica_draws_its_own_numbers_and_repeats_them():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("replica",))
    spec = jax.sharding.PartitionSpec("replica")

    def step(x):
        return x + tf.random.uniform([1])

    run = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    tf.random.set_seed(1)
    first = [run(jnp.zeros(8)).tolist() for _ in range(3)]
    assert len({number for numbers in first for number in numbers}) == 24
    tf.random.set_seed(1)
    assert [run(jnp.zeros(8)).tolist() for _ in range(3)] == first


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.int32])
def test_numbers_for_an_element_are_those_that_are_drawn_outside(dtype):
    bounds = [(-3, 7), (tf.constant(-3, dtype), tf.constant(7, dtype))]

    def draw(_):
        return [tf.random.stateless_uniform([40], (1, 2), low, high, dtype) for low, high in bounds]

    (inside,) = tf.data.Dataset.range(1).map(draw, vectorize=False)
    np.testing.assert_array_equal(np.asarray(inside), np.asarray(draw(0)), strict=True)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_normal_numbers_for_an_element_are_those_that_are_drawn_outside(dtype):
    def draw(_):
        return tf.random.stateless_normal([40], (1, 2), 0.1, [0.3] * 40, dtype)

    (inside,) = tf.data.Dataset.range(1).map(draw, vectorize=False)
    np.testing.assert_array_equal(np.asarray(inside), np.asarray(draw(0)), strict=True)


def test_bounds_of_an_element_may_be_infinite():
    def draw(_):
        return tf.random.stateless_uniform([2], (1, 2), 1e-40, float("inf"))

    (inside,) = tf.data.Dataset.range(1).map(draw, vectorize=False)
    assert np.isinf(inside).all()
