"""A variable that takes replica 0's value needs no all-reduce if all replicas have computed the same."""

import numpy as np
import pytest
from tests.mirroring import context, each, mirrored, number, parts

import evenfeed as tf
from evenfeed.replicas.run import spmd
from evenfeed.replicas.run.needless_copies import without_needless_copies

STRATEGY = mirrored(2)
ROWS = np.arange(4, dtype=np.float32)


@pytest.fixture
def all_reduces(monkeypatch):
    """Count the all-reduces in the programs that are traced."""
    counts = []

    def noted(closed, axes, own):
        found = without_needless_copies(closed, axes, own)
        counts.append(str(found).count("psum"))
        return found

    monkeypatch.setattr(spmd, "without_needless_copies", noted)
    return counts


def run(step):
    """Run a step on one row of each replica, and return the copies of its variable."""
    with STRATEGY.scope():
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        variable = tf.Variable(1.0, aggregation=first)
    data = tf.data.Dataset.from_tensor_slices(ROWS).batch(2)
    rows = next(iter(STRATEGY.experimental_distribute_dataset(data)))

    def inside(x):
        step(variable, x[0])

    tf.function(lambda x: STRATEGY.run(inside, args=(x,)))(rows)
    return parts(STRATEGY, variable)


def reduced(variable, x):
    variable.assign_sub(0.5 * context().all_reduce("SUM", x) + 1.0)


def own(variable, x):
    variable.assign_sub(x + context().all_reduce("SUM", x))


def numbered(variable, x):
    total = context().all_reduce("SUM", x)
    variable.assign(total * 0 + number())


def same(variable, x):
    del x
    variable.assign(3.0)


@pytest.mark.parametrize(
    ("step", "count", "found"),
    [(reduced, 1, -0.5), (own, 2, 0.0), (numbered, 2, 0.0), (same, 0, 3.0)],
)
def test_only_values_that_differ_are_copied_from_the_first_replica(step, count, found, all_reduces):
    assert run(step) == [found] * 2
    assert all_reduces == [count]


def test_the_copy_of_another_variable_may_differ(all_reduces):
    with STRATEGY.scope():
        other = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    other.assign(each(STRATEGY, lambda replica: 5.0 + replica))
    assert run(lambda variable, _: variable.assign(other.value())) == [5.0] * 2
    assert all_reduces == [1]
