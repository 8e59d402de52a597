"""What a tape returns for derivatives of higher order, for results that are their argument, and for odd requests."""

import numpy as np
import pytest
from tests.mirroring import WAYS, mirrored, parts, run

import evenfeed as tf


def _followed(x):
    """Return a value, its gradient and its second derivative, whose rules are not those of the formula."""

    @tf.custom_gradient
    def shifted(value):
        def gradient(upstream):
            @tf.custom_gradient
            def slope(_):
                return tf.constant(-1.1), lambda above: -2.1 * above

            return upstream * slope(value)

        return value + 10.0, gradient

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = shifted(x) ** 4
        first = inner.gradient(y, x)
    return first, outer.gradient(first, x)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["plain", "compiled"])
def test_a_second_derivative_takes_the_own_gradient_of_a_result_too(wrap):
    first, second = wrap(_followed)(tf.constant(1.0))
    np.testing.assert_allclose(first, 4 * 11.0**3 * -1.1, rtol=1e-6)
    np.testing.assert_allclose(second, 12 * 11.0**2 * 1.1**2 - 2.1 * 4 * 11.0**3, rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_replicas_compute_second_derivatives_with_own_gradients(way):
    strategy = mirrored(2)
    found = run(way, strategy, lambda: _followed(tf.constant(1.0))[1])
    np.testing.assert_allclose(parts(strategy, found), [-9423.48] * 2, rtol=1e-6)


def test_a_second_derivative_sees_the_variables_of_an_own_gradient():
    v, x = tf.Variable(2.0), tf.constant(3.0)

    @tf.custom_gradient
    def scaled(value):
        def gradient(upstream, variables):
            (own,) = variables
            return upstream * own * 10.0, [upstream * value * own]

        return v * value, gradient

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = scaled(x) ** 2
        first = inner.gradient(y, x)  # 2 v x * 10 v
    np.testing.assert_allclose(first, 240.0)
    np.testing.assert_allclose(outer.gradient(first, x), 2 * 10 * 2.0 * 10 * 2.0)


def test_a_custom_gradient_may_have_integers_among_its_arguments():
    @tf.custom_gradient
    def power(x, n):
        return x**n, lambda upstream: (upstream * 5.0, None)

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = power(x, tf.constant(3))
        first = inner.gradient(y, x)
    assert (float(y), float(first), outer.gradient(first, x)) == (8.0, 5.0, None)


def _of_identities(x):
    one, other = tf.identity(x), tf.add(x, 0)
    with tf.GradientTape() as tape:
        for each_ in (x, one, other):
            tape.watch(each_)
        y = 2.0 * x + 3.0 * one + 4.0 * other
    return tape.gradient(y, [x, one, other])


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["plain", "compiled"])
def test_an_identity_has_a_gradient_of_its_own(wrap):
    assert [float(g) for g in wrap(_of_identities)(tf.constant(10.0))] == [2.0, 3.0, 4.0]


def test_the_gradient_flows_through_an_identity_in_the_block():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.identity(x)
        z = y * y + x
    of_x, of_y = tape.gradient(z, [x, y])
    assert (of_x.tolist(), of_y.tolist()) == ([3.0, 5.0], [2.0, 4.0])


def test_an_identity_shares_the_memory_of_its_argument():
    x = tf.constant([1.0, 2.0])
    y = tf.identity(x)
    assert y is not x
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def test_watched_variables_come_in_the_order_in_which_they_were_made():
    first, second = tf.Variable(1.0, name="first"), tf.Variable(2.0, name="second")
    with tf.GradientTape() as tape:
        y = second * second + first
    assert [v.name for v in tape.watched_variables()] == ["first:0", "second:0"]
    assert [float(g) for g in tape.gradient(y, tape.watched_variables())] == [1.0, 4.0]


def test_text_may_be_watched_and_has_no_gradient():
    x, text = tf.constant(3.0), tf.constant("a")
    with tf.GradientTape() as tape:
        tape.watch([x, text])
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


@pytest.mark.parametrize("shape", [[2], [2, 2, 2]])
def test_a_batch_jacobian_needs_two_axes(shape):
    x, y = tf.ones([2, 2]), tf.ones(shape)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
    if len(shape) < 2:
        with pytest.raises(ValueError, match="two or more axes"):
            tape.batch_jacobian(y, x)
        with pytest.raises(ValueError, match="two or more axes"):
            tape.batch_jacobian(x, y)
    else:
        assert tape.batch_jacobian(y, x).shape == (2, 2, 2, 2)


def test_a_batch_jacobian_without_a_connection_is_zero():
    x = tf.ones([2, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
    assert tape.batch_jacobian(tf.ones([2, 2]), x).tolist() == np.zeros([2, 2, 3]).tolist()


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (tf.constant([1.0, 2.0, 3.0]), r"must be of dtype float32 and fit the shape \(2,\)"),
        (tf.constant([1, 2]), r"must be of dtype float32 and fit the shape \(2,\)"),
        ([1.0, 2.0], "for each of the 1 targets, but got 2"),
    ],
    ids=["shape", "dtype", "count"],
)
def test_a_gradient_to_start_with_must_fit_its_target(start, text):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tape.gradient(y, x, output_gradients=start)


def _gradients(formula, *xs):
    xs = [tf.constant(x) for x in xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = formula(*xs)
    return tape.gradient(y, xs)


def test_the_gradient_of_a_cholesky_factor_is_symmetric():
    (found,) = _gradients(
        lambda x: tf.reduce_sum(tf.linalg.cholesky(x) ** 3),
        [[4.0, 1.0, 0.5], [7.0, 3.0, 0.2], [7.0, 7.0, 2.0]],
    )
    np.testing.assert_allclose(found, found.T, rtol=1e-6)
    factor = np.linalg.cholesky([[4.0, 7.0, 7.0], [7.0, 30.0, 7.0], [7.0, 7.0, 20.0]])
    again = tf.linalg.cholesky(tf.constant(np.tril(factor @ factor.T), tf.float32))
    np.testing.assert_allclose(again, factor, rtol=1e-5)


def test_the_gradient_of_multiply_no_nan_is_that_of_a_product():
    of_x, of_y = _gradients(tf.math.multiply_no_nan, [2.0, 3.0], [0.0, 5.0])
    assert (of_x.tolist(), of_y.tolist()) == ([0.0, 5.0], [2.0, 3.0])
    assert tf.math.multiply_no_nan(np.float32(np.inf), np.float32(0)).numpy() == 0


def test_betainc_has_a_gradient_for_its_last_argument_only():
    of_a, of_b, of_x = _gradients(tf.math.betainc, 1.0, 2.0, 0.25)
    assert of_a is None
    assert of_b is None
    np.testing.assert_allclose(of_x, 1.5, rtol=1e-5)
