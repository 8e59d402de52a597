"""Compiled steps whose parts differ in shape: as correct as plain Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mirroring import context, each, mirrored, number, parts, run

import evenfeed as tf


def rows(strategy, lengths):
    """Return a per-replica value with the given number of rows on each replica."""
    first = np.cumsum([0, *lengths])
    return each(
        strategy,
        lambda r: jnp.arange(2 * first[r], 2 * first[r + 1], dtype=jnp.float32).reshape(-1, 2),
    )


def total(x, op="SUM"):
    return context().all_reduce(op, x)


STEPS = {
    "a sum": lambda x: total(x.sum(0)),
    "a mean over all rows": lambda x: total(x.sum()) / total(jnp.float32(x.shape[0])),
    "constants": lambda x: (total(2.0), total(x.shape[0], "MEAN")),
    "one after the other": lambda x: total(total(x.sum(0), "MEAN") * x.sum(0)),
    "what is left": lambda x: (x * 2 + number(), x.shape[0], number(), None, "text"),
    "gradients": lambda x: total(jax.grad(lambda w: ((x @ w) ** 2).sum())(jnp.ones(2))),
    "gradients through": jax.grad(lambda x: total((x**2).sum()) ** 2),
    "in a jit": jax.jit(lambda x: total(x.sum())),
    "in a scan": lambda x: jax.lax.scan(lambda c, _: (total(c), None), x.sum(), None, length=2)[0],
    "a gather": lambda x: context().all_gather(x, 0),
    "a merge": lambda x: context().merge_call(lambda s, x: s.reduce("SUM", x, axis=0), args=(x,)),
}


@pytest.mark.parametrize("lengths", [(3, 3, 2), (2, 1, 0), (1, 0, 0)])
@pytest.mark.parametrize("step", STEPS)
def test_a_compiled_step_is_what_plain_python_is(step, lengths):
    strategy = mirrored(3)
    value = rows(strategy, lengths)
    eager, compiled = (parts(strategy, run(way, strategy, STEPS[step], value)) for way in ("eager", "compiled"))  # fmt: skip
    for one, other in zip(eager, compiled, strict=True):
        same(one, other)


def same(one, other):
    ones, tree = jax.tree.flatten(one)
    others, other_tree = jax.tree.flatten(other)
    assert tree == other_tree
    for a, b in zip(ones, others, strict=True):
        if isinstance(a, str):
            assert b == a.encode()  # a function returns text as a tensor
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6)


@settings(max_examples=5)
@given(st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_any_parts_give_what_one_device_gives(lengths):
    strategy = mirrored(3)
    value = rows(strategy, lengths)

    def step(x):
        return total({"sum": jnp.sin(x).sum(0), "rows": x.shape[0]})

    found = parts(strategy, run("compiled", strategy, step, value))
    whole = np.arange(2 * sum(lengths), dtype=np.float32).reshape(-1, 2)
    for part in found:
        assert part["rows"] == sum(lengths)
        np.testing.assert_allclose(part["sum"], np.sin(whole).sum(0), rtol=1e-5, atol=1e-5)


def test_the_function_is_traced_once_for_each_shape():
    strategy = mirrored(3)
    traced = []

    def step(x):
        traced.append(x.shape)
        return total(x.sum())

    f = tf.function(lambda x: strategy.run(step, args=(x,)))
    for _ in range(2):
        f(rows(strategy, (3, 3, 2)))
    assert traced == [(3, 2), (2, 2)]


def test_variables_of_all_aggregations_are_assigned():
    strategy = mirrored(3)
    names = ("SUM", "MEAN", "ONLY_FIRST_REPLICA")

    def made():
        with strategy.scope():
            return [
                tf.Variable(1.0, aggregation=getattr(tf.VariableAggregation, n)) for n in names
            ] + [
                tf.Variable(
                    0.0,
                    synchronization=tf.VariableSynchronization.ON_READ,
                    aggregation=tf.VariableAggregation.SUM,
                )
            ]

    values = {}
    for way in ("eager", "compiled"):
        variables = made()

        def step(x, variables=variables):
            for variable in variables:
                variable.assign_add(x.sum())

        run(way, strategy, step, rows(strategy, (2, 2, 1)))
        values[way] = [float(v.numpy()) for v in variables]
    assert values["compiled"] == values["eager"] == [46.0, 16.0, 7.0, 45.0]


def test_draws_differ_from_replica_to_replica_and_from_step_to_step():
    strategy = mirrored(3)
    f = tf.function(lambda x: strategy.run(lambda x: tf.random.uniform([2]), args=(x,)))
    value = rows(strategy, (2, 2, 1))
    draws = [tuple(part.tolist()) for _ in range(2) for part in parts(strategy, f(value))]
    assert len(set(draws)) == 6


def test_what_is_done_across_replicas_is_done_around_it():
    strategy = mirrored(3)

    @tf.function
    def step(x, scale):
        doubled = strategy.run(lambda x: x * scale, args=(x,))
        again = strategy.run(lambda: total(1.0))
        mean = strategy.reduce("MEAN", doubled, axis=0) * 10
        return mean, strategy.reduce("SUM", again, axis=None)

    mean, threes = step(rows(strategy, (2, 2, 1)), 2.0)
    np.testing.assert_allclose(mean, np.arange(10).reshape(5, 2).mean(0) * 20)
    assert float(threes) == 9.0


def test_variables_are_read_and_assigned_around_it():
    strategy = mirrored(3)
    on_read = tf.VariableSynchronization.ON_READ
    with strategy.scope():
        loss, steps = tf.Variable(0.0), tf.Variable(0)
        counter = tf.Variable(0.0, synchronization=on_read, aggregation=tf.VariableAggregation.SUM)
    traced = []

    @tf.function
    def step(x):
        traced.append(1)
        sums = strategy.run(lambda x: counter.assign_add(x.sum()), args=(x,))
        loss.assign_add(strategy.reduce("SUM", sums, axis=None))
        steps.assign_add(1)
        loss.assign(strategy.run(lambda: loss.value() + 1))
        return loss.value() + steps.value() + counter.value() * 100

    value = rows(strategy, (2, 2, 1))
    assert float(step(value)) == 45 + 1 + 1 + 4500
    assert float(step(value)) == (46 + 90 + 1) + 2 + 9000
    assert [v.numpy().tolist() for v in (loss, steps, counter)] == [137.0, 2, 90.0]
    assert [part.devices() for part in loss.values] == [
        {d} for d in strategy.extended.replicas.devices
    ]
    assert len(traced) == 1


def test_an_error_while_tracing_names_the_replica():
    strategy = mirrored(3)

    def step(x):
        if x.shape[0] == 1:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine") as caught:
        run("compiled", strategy, step, rows(strategy, (2, 2, 1)))
    assert caught.value.__notes__[0] == "while its function was traced for replica 2 of 3."


def test_replicas_that_do_different_things_are_told_so():
    strategy = mirrored(3)

    def step(x):
        return total(x.sum()) if x.shape[0] == 2 else x.sum()

    with pytest.raises(RuntimeError, match="but replica 2 has returned without calling it"):
        run("compiled", strategy, step, rows(strategy, (2, 2, 1)))
