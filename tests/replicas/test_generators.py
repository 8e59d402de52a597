import jax
import numpy as np
import pytest

import evenfeed as tf

SEED = (1, -2)
DRAWS = {
    "uniform": lambda seed: tf.random.stateless_uniform([5], seed),
    "integers": lambda seed: tf.random.stateless_uniform([5], seed, -3, 2**31 - 1, tf.int32),
    "whole range": lambda seed: tf.random.stateless_uniform([5], seed, None, None, tf.uint32),
    "half": lambda seed: tf.random.stateless_uniform([5], seed, dtype=tf.float16),
    "normal": lambda seed: tf.random.stateless_normal([5], seed),
    "truncated": lambda seed: tf.random.stateless_truncated_normal([5], seed),
    "categorical": lambda seed: tf.random.stateless_categorical([[0.1, 0.9]], 9, seed),
    "shuffle": lambda seed: tf.random.experimental.stateless_shuffle([1, 2, 3, 4], seed),
    "split": lambda seed: tf.random.split(seed, 3),
    "fold_in": lambda seed: tf.random.fold_in(seed, 3),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_a_compiled_function_and_a_map_draw_the_numbers_that_python_draws(draw):
    drawn = np.asarray(draw(np.array(SEED, np.int32)))
    compiled = tf.function(draw)(tf.constant(SEED))
    mapped = next(iter(tf.data.Dataset.from_tensors(np.array(SEED, np.int32)).map(draw)))
    for found in (compiled, mapped):
        np.testing.assert_allclose(np.asarray(found), drawn, rtol=1e-5)
    assert compiled.dtype == drawn.dtype


def test_the_counter_carries_into_its_higher_words():
    generator = tf.random.Generator.from_state([-1, 5, 7], "philox")
    step = tf.function(lambda: generator.uniform([9]))
    drawn = step().tolist()
    assert generator.state.tolist() == [256 * 9 - 1, 6, 7]
    generator.reset([-1, 5, 7])
    assert generator.uniform([9]).tolist() == drawn


@pytest.mark.parametrize("delta", [3, 2**30])
def test_a_compiled_skip_adds_what_an_eager_one_adds(delta):
    eager, compiled = (tf.random.Generator.from_seed(2**64 - 1) for _ in range(2))
    eager.skip(delta)
    tf.function(compiled.skip)(tf.constant(delta))
    assert compiled.state.tolist() == eager.state.tolist()


def test_seeds_of_a_generator_seed_stateless_functions_in_a_map():
    generator = tf.random.Generator.from_seed(3)
    dataset = tf.data.Dataset.range(4).map(
        lambda _: tf.random.stateless_uniform([], generator.make_seeds(2)[0])
    )
    first = [float(number) for number in dataset]
    assert len(set(first)) == 4
    generator.reset_from_seed(3)
    assert [float(number) for number in dataset] == first


def test_each_replica_draws_its_own_numbers_and_all_advance_together():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        generator = tf.random.Generator.from_seed(9)

    def run(step):
        return [part.tolist() for part in strategy.experimental_local_results(strategy.run(step))]

    eager = run(lambda: generator.uniform([2]))
    assert generator.state.tolist() == [9 + 2 * 256, 0, 0]
    generator.reset_from_seed(9)
    compiled = run(tf.function(lambda: generator.uniform([2])))
    assert generator.state.tolist() == [9 + 2 * 256, 0, 0]
    assert compiled == eager
    assert eager[0] != eager[1]


def test_a_copy_goes_on_by_itself():
    generator = tf.random.Generator.from_seed(1)
    copied = tf.random.Generator(copy_from=generator)
    assert copied.uniform([2]).tolist() == generator.uniform([2]).tolist()
    copied.skip(1)
    assert copied.state.tolist() != generator.state.tolist()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: tf.random.Generator.from_seed(1, alg="threefry"), ValueError, "'threefry'"),
        (lambda: tf.random.Generator.from_seed(1, alg=7), ValueError, "but got 7"),
        (lambda: tf.random.Generator.from_seed(1, alg=1.5), TypeError, "but got 1.5"),
        (
            lambda: tf.random.Generator.from_state([1, 2], 1),
            ValueError,
            r"3 integers, but got \[1, 2\]",
        ),
        (lambda: tf.random.stateless_uniform([1], 5), ValueError, r"shape \[2\], but got 5"),
        (lambda: tf.random.stateless_uniform([1], (0.5, 1)), TypeError, "seed must be int32"),
    ],
)
def test_an_invalid_seed_or_algorithm_is_an_error(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_the_state_is_not_read_in_a_compiled_function_without_x64():
    generator = tf.random.Generator.from_seed(1)
    with (
        jax.enable_x64(False),
        pytest.raises(tf.errors.InvalidArgumentError, match="has 64 bits"),
    ):
        tf.function(lambda: generator.state)()


def test_the_global_generator_can_be_replaced():
    tf.random.set_global_generator(tf.random.Generator.from_seed(4))
    assert tf.random.get_global_generator().state.tolist() == [4, 0, 0]
