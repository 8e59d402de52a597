"""Gamma, Poisson and binomial numbers: their means, and that they follow from seeds."""

import numpy as np
import pytest

import evenfeed as tf

MANY = 20_000


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (lambda: tf.random.gamma([MANY], 4.0, 2.0, seed=1), 2.0, 1.0),
        (lambda: tf.random.poisson([MANY], 5.0, seed=1), 5.0, 5.0),
        (lambda: tf.random.stateless_gamma([MANY], [1, 2], 4.0, 2.0), 2.0, 1.0),
        (lambda: tf.random.stateless_poisson([MANY], [1, 2], 5.0), 5.0, 5.0),
        (lambda: tf.random.stateless_binomial([MANY], [1, 2], 20.0, 0.25), 5.0, 3.75),
    ],
)
def test_the_numbers_have_their_mean_and_variance(draw, mean, variance):
    found = np.asarray(draw(), np.float64)
    assert abs(found.mean() - mean) < 6 * (variance / MANY) ** 0.5
    assert abs(found.var() / variance - 1) < 0.1


def test_seeds_choose_the_numbers():
    draw = tf.random.stateless_gamma
    assert draw([4], [1, 2], 1.0).tolist() == draw([4], [1, 2], 1.0).tolist()
    assert draw([4], [1, 2], 1.0).tolist() != draw([4], [1, 3], 1.0).tolist()
    tf.random.set_seed(3)
    first = tf.random.poisson([8], 50.0, seed=1).tolist()
    assert first != tf.random.poisson([8], 50.0, seed=1).tolist()
    tf.random.set_seed(3)
    assert first == tf.random.poisson([8], 50.0, seed=1).tolist()
    tf.random.set_seed(None)


def test_a_compiled_function_and_a_map_draw_other_numbers_each_time():
    step = tf.function(lambda: tf.random.gamma([4], 2.0))
    assert step().tolist() != step().tolist()
    numbers = tf.data.Dataset.range(3)
    rows = [x.tolist() for x in numbers.map(lambda _: tf.random.gamma([2], 2.0))]
    assert len({tuple(row) for row in rows}) == 3


def test_parameters_that_do_not_fit_are_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(2,\) to \(3,\)"):
        tf.random.stateless_poisson([3], [1, 2], [1.0, 2.0])
