"""Samples of classes are as likely as they should be, and losses of sequences have gradients."""

# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf


def test_classes_are_drawn_as_often_as_their_probability_says():
    drawn, expected, _ = tf.random.log_uniform_candidate_sampler(
        np.arange(10)[:, None], 1, 20_000, False, 10, seed=1
    )
    counts = np.bincount(np.asarray(drawn), minlength=10)
    np.testing.assert_allclose(counts, np.asarray(expected)[:, 0], rtol=0.15)


def draws_until_different(chances, sampled, random):
    """Draw as TensorFlow does; return the different classes, and the number of draws."""
    found, draws = set(), 0
    while len(found) < sampled:
        found.add(int(random.choice(len(chances), p=chances)))
        draws += 1
    return found, draws


def test_different_classes_are_those_of_repeated_draws():
    chances = np.log1p(1 / np.arange(1.0, 7.0)) / np.log(7)
    seen, wanted, draws, wanted_draws = np.zeros(6), np.zeros(6), 0, 0
    random = np.random.default_rng(0)
    tf.random.set_seed(5)
    try:
        for _ in range(300):
            drawn, counts, of_drawn = tf.random.log_uniform_candidate_sampler(
                np.arange(6)[:, None], 1, 3, True, 6
            )
            assert len(set(drawn.tolist())) == 3
            np.testing.assert_array_equal(of_drawn, np.asarray(counts)[np.asarray(drawn), 0])
            seen[np.asarray(drawn)] += 1
            last = float(counts[5, 0])
            is_first = np.isclose(last, 3 * chances[5])
            draws += 3 if is_first else np.log1p(-last) / np.log1p(-chances[5])
            found, count = draws_until_different(chances, 3, random)
            wanted[[*found]] += 1
            wanted_draws += count
    finally:
        tf.random.set_seed(None)
    np.testing.assert_allclose(seen / 300, wanted / 300, atol=0.12)
    np.testing.assert_allclose(draws / 300, wanted_draws / 300, rtol=0.12)


def test_a_compiled_step_draws_other_classes_each_time():
    @tf.function
    def draw():
        return tf.random.uniform_candidate_sampler([[0]], 1, 8, True, 1000).sampled_candidates

    first, second = draw().tolist(), draw().tolist()
    assert len(set(first)) == len(set(second)) == 8
    assert first != second


def test_the_loss_of_a_sequence_is_that_of_all_its_paths():
    logits = np.random.default_rng(0).normal(size=(4, 1, 3)).astype(np.float32)
    chances = np.asarray(jax.nn.softmax(logits))[:, 0]
    total = 0.0
    for path in np.ndindex(3, 3, 3, 3):
        merged = [c for at, c in enumerate(path) if c and (at == 0 or path[at - 1] != c)]
        total += np.prod(chances[range(4), path]) if merged == [1, 2] else 0
    loss = tf.nn.ctc_loss([[1, 2]], logits, [2], [4], blank_index=0)
    np.testing.assert_allclose(loss, [-np.log(total)], rtol=1e-5)


def test_gradients_of_a_sequence_that_does_not_fit_are_no_nan():
    def loss(logits):
        found = tf.nn.ctc_loss([[1, 1], [1, 2]], logits, [2, 2], [2, 2], blank_index=0)
        return jnp.sum(jnp.where(jnp.isinf(found), 0, found)), found

    gradient, found = jax.grad(loss, has_aux=True)(jnp.zeros((2, 2, 3)))
    assert np.isinf(found[0])
    assert np.isfinite(found[1])
    assert np.isfinite(gradient).all()
    assert np.any(gradient[:, 1] != 0)


def test_gradients_of_pooling_go_to_the_largest_values():
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    gradient = jax.grad(lambda x: tf.reduce_sum(tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")[0]))(
        image
    )
    assert np.flatnonzero(gradient).tolist() == [5, 7, 13, 15]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: tf.random.uniform_candidate_sampler([[0]], 1, 5, True, 4),
            "only 4 classes, but 5 different ones were requested",
        ),
        (
            lambda: tf.random.uniform_candidate_sampler([[7]], 1, 2, True, 4),
            "needs classes from 0 to 3, but got 7 to 7",
        ),
        (
            lambda: tf.nn.ctc_greedy_decoder(tf.zeros([2, 1, 3]), [3]),
            "sequence_length must be at most 2, the number of times, but got 3",
        ),
        (
            lambda: tf.nn.max_pool_with_argmax(tf.zeros([1, 2, 2, 1]), 2, 2, "SAME", "NCHW"),
            "needs NHWC and the padding SAME or VALID, but got NCHW",
        ),
        (
            lambda: tf.edit_distance(tf.sparse.from_dense([1]), tf.sparse.from_dense([[1]])),
            "needs tensors of one dtype and rank",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, said):
    with pytest.raises((ValueError, tf.errors.FailedPreconditionError), match=said):
        call()
