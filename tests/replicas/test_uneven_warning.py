"""The warning for batches that are uneven at every step."""

import warnings

import jax.numpy as jnp
import pytest
from tests.mirroring import context, each, mirrored

import evenfeed as tf


def stepping(strategy):
    @tf.function
    def step(x):
        return strategy.run(lambda x: context().all_reduce("SUM", x.sum()), args=(x,))

    return step


def value(strategy, lengths):
    return each(strategy, lambda r: jnp.ones(lengths[r]))


def warned(step, batches):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in batches:
            step(batch)
    return [str(warning.message) for warning in caught]


def test_a_steady_uneven_batch_is_told_of_once_with_sizes_that_fit():
    strategy = mirrored(4)
    told = warned(stepping(strategy), [value(strategy, (3, 3, 3, 1))] * 8)
    assert told == [
        "The replicas get [3, 3, 3, 1] rows at every step. Uneven parts cannot run as one program, which is slower. "
        "A batch size of 8 or 12 divides evenly among 4 replicas."
    ]


def test_the_warning_names_the_users_line():
    strategy = mirrored(2)
    step = stepping(strategy)
    uneven = value(strategy, (1, 0))
    step(uneven)
    step(uneven)
    with pytest.warns(UserWarning, match="batch size of 2 ") as caught:
        step(uneven)
    assert caught[0].filename == __file__


def test_partial_last_batches_are_no_reason_to_warn():
    strategy = mirrored(2)
    epoch = [value(strategy, (2, 2)), value(strategy, (2, 1))]
    assert warned(stepping(strategy), epoch * 5) == []
    assert warned(stepping(strategy), [value(strategy, (2, 1))] * 2) == []


def test_parts_that_differ_in_something_else_are_no_reason_to_warn():
    strategy = mirrored(2)
    other = each(strategy, lambda r: jnp.ones((2, r + 1)))
    assert warned(stepping(strategy), [other] * 5) == []
