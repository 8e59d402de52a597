"""Functions compiled for all replicas at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import context, each, mirrored, number, parts, run

import evenfeed as tf


def test_the_function_is_traced_once_for_all_replicas():
    strategy = mirrored(3)
    traced = []

    def step(x):
        traced.append(1)
        return context().all_reduce("SUM", x)

    f = tf.function(lambda x: strategy.run(step, args=(x,)))
    for _ in range(3):
        f(each(strategy, jnp.float32))
    assert traced == [1]


def test_a_nest_is_reduced_in_one_collective():
    strategy = mirrored(2)
    tree = {"a": jnp.zeros((8, 4), "f4"), "b": [jnp.zeros(3, "f4"), jnp.float32(1)]}

    def step(tree):
        return context().all_reduce("MEAN", tree)

    closed = jax.make_jaxpr(step_over(strategy, step))(tree)
    sums = [e for e in _equations(closed.jaxpr) if e.primitive.name == "psum"]
    assert sum(len(equation.invars) for equation in sums) == 3
    text = jax.jit(step_over(strategy, step)).lower(tree).compile().as_text()
    assert text.count(" all-reduce(") == 1, "XLA makes one of those that do not wait for each other"


def test_a_step_with_a_collective_calls_no_python():
    strategy = mirrored(2)

    def step(x):
        return context().all_reduce("SUM", x) + number()

    closed = jax.make_jaxpr(step_over(strategy, step))(jnp.float32(1))
    names = {equation.primitive.name for equation in _equations(closed.jaxpr)}
    assert "psum" in names
    assert not any("callback" in name for name in names)


def step_over(strategy, step):
    """Return a pure function that JAX can trace, as `function` builds it."""
    from evenfeed.replicas import contexts
    from evenfeed.replicas.function.staging import Staging

    def function(tree):
        with contexts.staged(Staging({})):
            return jax.tree.leaves(strategy.run(step, args=(tree,)))

    return function


def _equations(jaxpr):
    from evenfeed.replicas.run.varying import equations_in

    return [inner for equation in jaxpr.eqns for inner in equations_in(equation)]


def test_an_error_while_tracing_is_the_users_with_a_note():
    strategy = mirrored(2)

    def step():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        tf.function(lambda: strategy.run(step))()
    assert caught.value.__notes__[0] == "while its function was traced for all 2 replicas."
    assert [int(p) for p in parts(strategy, tf.function(lambda: strategy.run(lambda: number() + 0))())] == [0, 1]  # fmt: skip


def test_results_that_are_no_tensors_come_back_as_they_are():
    strategy = mirrored(2)
    result = run(
        "compiled", strategy, lambda x: {"x": x, "n": None, "k": (x.ndim,)}, jnp.float32(1)
    )
    assert result["n"] is None
    assert [part["k"] for part in parts(strategy, result)] == [(0,), (0,)]


def test_a_variable_that_replicas_return_is_that_variable():
    strategy = mirrored(2)
    with strategy.scope():
        v = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)

    @tf.function
    def step():
        result = strategy.run(lambda: v.assign_add(tf.constant(1.0)) is None or {"v": v})
        assert result["v"] is v
        return result

    # A function returns its value, as in TensorFlow.
    assert float(step()["v"]) == float(v.numpy()) == 3.0
    assert strategy.run(lambda: v) is v


@pytest.mark.parametrize(
    "make",
    [
        lambda x, r: x * (r + 1),
        lambda x, r: x.sum() * r,
        lambda x, r: float(r),
        lambda x, r: np.full(2, r, np.float32),
        lambda x, r: (x, [r, None]),
        lambda x, r: x[: r + 1],
        lambda x, r: x.astype(jnp.int32) if r else x,
    ],
)
def test_values_that_the_function_itself_makes_are_arguments(make):
    strategy = mirrored(2)
    x = jnp.ones(2, jnp.float32)

    def whole(x):
        own = each(strategy, lambda r: make(x, r))
        return strategy.run(lambda own: jax.tree.map(lambda leaf: leaf * 2, own), args=(own,))

    found, expected = (parts(strategy, f(x)) for f in (tf.function(whole), whole))
    for one, other in zip(found, expected, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_merge_call_works_with_what_all_replicas_have(way):
    strategy = mirrored(3)

    def step(x):
        total = context().merge_call(lambda s, x: s.reduce("SUM", x, axis=None), args=(x,))
        same = context().merge_call(lambda s, x: x, args=(x,))
        return total, same

    value = each(strategy, jnp.float32)
    found = parts(strategy, run(way, strategy, step, value))
    assert found == [(3.0, float(r)) for r in range(3)]


def test_draws_differ_from_replica_to_replica_and_from_step_to_step():
    strategy = mirrored(3)
    f = tf.function(lambda: strategy.run(lambda: tf.random.uniform([2])))
    draws = [tuple(part.tolist()) for _ in range(3) for part in parts(strategy, f())]
    assert len(set(draws)) == 9
    eager = [tuple(p.tolist()) for p in parts(strategy, strategy.run(lambda: tf.random.uniform([2])))]  # fmt: skip
    assert len(set(eager)) == 3


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_a_key_of_jax_is_the_same_on_all_replicas_unless_it_is_folded(way):
    strategy = mirrored(2)
    key = jax.random.key(0)

    def step():
        own = jax.random.fold_in(key, number())
        return jax.random.normal(key), jax.random.normal(own)

    (one, own), (other, others) = parts(strategy, run(way, strategy, step))
    assert one == other
    assert own != others


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_text_and_python_values_among_the_arguments(way):
    """A compiled step cannot hold text, so it runs as plain Python."""
    strategy = mirrored(2)
    texts = each(strategy, lambda r: np.array([f"a{r}".encode()], object))
    numbers = tf.distribute.PerReplica([3, 4])

    def step(x, text, number, nothing):
        assert nothing is None
        return context().all_reduce("SUM", x), text, number

    value = each(strategy, jnp.float32)
    found = parts(strategy, run(way, strategy, step, value, texts, numbers, None))
    assert [(float(x), text.tolist(), int(n)) for x, text, n in found] == [
        (1.0, [b"a0"], 3),
        (1.0, [b"a1"], 4),
    ]
