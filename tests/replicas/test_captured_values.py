"""Values of all replicas that a compiled function captures: reduced, gathered, run on and returned, in its program."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import each, mirrored

import evenfeed as tf

KINDS = {
    "even": lambda s: each(s, lambda r: jnp.zeros(2) + r),
    "uneven": lambda s: each(s, lambda r: jnp.zeros(2 + r) + r),
    "uneven, of the host": lambda _: tf.distribute.PerReplica(
        [np.zeros(2, "f4"), np.ones(3, "f4")]
    ),
    "of the host": lambda _: tf.distribute.PerReplica([np.zeros(2, "f4"), np.ones(2, "f4")]),
    "scalars": lambda s: each(s, jnp.float32),
    "numbers": lambda s: each(s, float),
    "a batch": lambda s: next(
        iter(s.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4)))
    ),
    "a result": lambda s: s.run(tf.function(lambda x: x * 1), args=(KINDS["even"](s),)),
    "a scalar result": lambda s: s.run(tf.function(lambda x: x.sum()), args=(KINDS["even"](s),)),
    "an eager result": lambda s: s.run(lambda x: x.sum(), args=(KINDS["uneven"](s),)),
}
of_all_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def strategy():
    return mirrored(2)


def shown(value):
    if isinstance(value, tf.distribute.DistributedValues):
        return [np.asarray(part).tolist() for part in value.values]
    return np.asarray(value).tolist()


def compiled_is_eager(call):
    """Compare a call with the same one in a function, which runs twice and must not be given up."""
    expected = shown(call())
    function = tf.function(call)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            found = shown(function())
            assert jax.tree.structure(found) == jax.tree.structure(expected)
            assert jax.tree.leaves(found) == pytest.approx(jax.tree.leaves(expected))


@of_all_kinds
@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_it_is_reduced(strategy, kind, op):
    value = kind(strategy)
    axis = 0 if np.ndim(value.values[0]) else None
    compiled_is_eager(lambda: strategy.reduce(op, value, axis))


@of_all_kinds
def test_it_is_gathered(strategy, kind):
    value = kind(strategy)
    if np.ndim(value.values[0]):
        compiled_is_eager(lambda: strategy.gather(value, 0))


@of_all_kinds
def test_it_is_run_on_alone_and_beside_an_argument(strategy, kind):
    value = kind(strategy)
    compiled_is_eager(lambda: strategy.run(lambda x: x * 2, args=(value,)))
    compiled_is_eager(lambda: strategy.reduce("SUM", strategy.run(jnp.sum, args=(value,)), None))
    other = KINDS["even"](strategy)
    both = tf.function(lambda y: strategy.run(lambda x, y: jnp.sum(x) + y, args=(value, y)))
    eager = strategy.run(lambda x, y: jnp.sum(x) + y, args=(value, other))
    assert shown(both(other)) == shown(eager)


@of_all_kinds
def test_it_is_returned_and_taken_apart(strategy, kind):
    value = kind(strategy)
    compiled_is_eager(lambda: value)
    results = tf.function(lambda: strategy.experimental_local_results(value))()
    assert [shown(part) for part in results] == shown(value)
    assert shown(value) == shown(kind(strategy)), "nothing of the trace is left in it"


def test_a_mirrored_value_is_gathered_and_reduced(strategy):
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
    value = v.assign([3.0, 4.0])
    compiled_is_eager(lambda: strategy.gather(value, 0))
    compiled_is_eager(lambda: strategy.reduce("SUM", value, None))


def test_values_of_several_kinds_are_reduced_together(strategy):
    values = {name: KINDS[name](strategy) for name in ("scalars", "numbers", "a scalar result")}
    compiled = tf.function(lambda: strategy.reduce("SUM", {**values, "x": even}, axis=None))
    even = KINDS["even"](strategy)
    found = {name: shown(total) for name, total in compiled().items()}
    assert found == {"scalars": 1.0, "numbers": 1.0, "a scalar result": 2.0, "x": [1.0, 1.0]}
