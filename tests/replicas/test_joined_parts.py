"""Programs that combine parts of different replicas themselves, and arrays that replicas close over."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import each, mirrored

import evenfeed as tf
from evenfeed.core.errors import UnimplementedError

JOINS = {
    "concat": lambda parts: tf.concat(parts, 0),
    "stack": lambda parts: tf.stack(parts).reshape(-1),
    "jnp.concatenate": jnp.concatenate,
    "jnp.stack": lambda parts: jnp.stack(parts).reshape(-1),
    "numpy": np.concatenate,
    "jit": jax.jit(jnp.concatenate),
    "function": tf.function(lambda parts: tf.concat(parts, 0)),
}


def batch(strategy):
    data = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    return next(iter(strategy.experimental_distribute_dataset(data)))


MADE = {
    "a batch": batch,
    "an eager result": lambda s: s.run(lambda x: x * 1, args=(batch(s),)),
    "a compiled result": lambda s: s.run(tf.function(lambda x: x * 1), args=(batch(s),)),
    "by hand": lambda s: tf.distribute.PerReplica(
        [jax.device_put(jnp.arange(2.0) + 2 * r, d) for r, d in enumerate(s.mesh.devices)]
    ),
    "a function of the replica": lambda s: each(s, lambda r: jnp.arange(2.0) + 2 * r),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_the_parts_of_a_value_can_be_joined(made, join):
    strategy = mirrored(2)
    value = made(strategy)
    for parts in (strategy.experimental_local_results(value), value.values):
        assert join(list(parts)).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_the_parts_of_a_value_can_be_added():
    strategy = mirrored(4)
    losses = strategy.run(lambda x: x.sum(), args=(batch(strategy),))
    assert float(sum(strategy.experimental_local_results(losses))) == 6.0
    assert float(losses[0] + losses[3]) == 3.0


def test_the_copies_of_a_variable_can_be_joined_and_lie_on_their_devices():
    strategy = mirrored(2)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
    assert jnp.stack(v.values).tolist() == [[1.0, 2.0]] * 2
    assert [part.devices() for part in v.values] == [{device} for device in strategy.mesh.devices]


def test_sums_and_joins_of_a_strategy_go_together_with_its_parts():
    strategy = mirrored(2)
    x = batch(strategy)
    last = strategy.experimental_local_results(x)[1]
    total = strategy.reduce("SUM", x, axis=None)
    assert (total + last).tolist() == [4.0, 7.0]
    assert jnp.concatenate([strategy.gather(x, 0), last]).tolist() == [0.0, 1.0, 2.0, 3.0, 2.0, 3.0]


def replicated(strategy, value):
    return jax.device_put(jnp.asarray(value), strategy.sharding())


def variable_of(strategy):
    with strategy.scope():
        return tf.Variable([1.0, 2.0])


CLOSED_OVER = {
    "replicated": lambda s: replicated(s, [1.0, 2.0]),
    "sharded": lambda s: jax.device_put(jnp.array([1.0, 2.0]), s.sharding("replica")),
    "a variable's value": lambda s: variable_of(s).value(),
    "a sum": lambda s: s.reduce("SUM", each(s, lambda r: jnp.array([r, 2.0 * r])), axis=None),
    "a compiled sum": tf.function(
        lambda: mirrored(2).reduce("SUM", mirrored(2).run(lambda: jnp.array([0.5, 1.0])), axis=None)
    ),
    "a copy": lambda s: variable_of(s).values[1],
}


@pytest.mark.parametrize("made", CLOSED_OVER.values(), ids=CLOSED_OVER)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_replicas_may_close_over_arrays_of_other_devices(made, compiled):
    strategy = mirrored(2)
    array = made() if isinstance(made, type(tf.function(len))) else made(strategy)

    def step(x):
        total = tf.distribute.get_replica_context().all_reduce("SUM", x * array)
        return total + array, helper(x)

    def helper(x):
        return x + array

    run = tf.function(step) if compiled else step
    total, own = strategy.run(run, args=(batch(strategy),))
    assert [part.tolist() for part in total.values] == [[3.0, 10.0]] * 2
    assert [part.tolist() for part in own.values] == [[1.0, 3.0], [3.0, 5.0]]
    if not compiled:
        assert own.array.sharding == strategy.sharding("replica"), "each part is on its device"


def test_an_assigned_array_may_lie_on_other_devices():
    strategy = mirrored(2)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0], aggregation=tf.VariableAggregation.MEAN)
    array = replicated(strategy, np.float32([1, 1]))
    strategy.run(lambda: v.assign_add(array) + array)
    v.assign_add(array)
    assert [part.tolist() for part in v.values] == [[3.0, 4.0]] * 2


def uneven(strategy):
    return each(strategy, lambda r: jnp.arange(2.0 - r) + 2 * r)


TAKEN_APART = {
    "concat": lambda s, x: tf.concat(s.experimental_local_results(x), 0),
    "sum": lambda s, x: sum(part.sum() for part in x.values),
    "results": lambda s, x: sum(s.run(lambda own: own.sum(), args=(x,)).values),
    "results and parts": lambda s, x: (
        s.run(lambda own: own.sum(), args=(x,)).values[1] + x.values[0]
    ),
    "sums and parts": lambda s, x: s.reduce("SUM", x, axis=0) + x.values[1],
}


@pytest.mark.parametrize("join", TAKEN_APART.values(), ids=TAKEN_APART)
@pytest.mark.parametrize("made", [batch, uneven], ids=["even", "uneven"])
def test_a_function_may_join_the_parts_of_its_arguments(made, join):
    strategy = mirrored(2)
    value = made(strategy)
    eager = np.asarray(join(strategy, value))
    np.testing.assert_array_equal(tf.function(lambda x: join(strategy, x))(value), eager)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("way", ["jit", "grad", "scan", "vmap"])
def test_transformations_take_collectives_beside_arrays_of_other_devices(way):
    strategy = mirrored(2)
    array = replicated(strategy, [1.0, 2.0])

    def total(x, array=array):
        return tf.distribute.get_replica_context().all_reduce("SUM", (x * array).sum())

    ways = {
        "jit": jax.jit(total),
        "grad": jax.grad(total),
        "scan": lambda x, *given: jax.lax.scan(
            lambda c, _: (c + total(x, *given), None), 0.0, None, length=2
        )[0],
        "vmap": lambda x, *given: jax.vmap(lambda row: total(row, *given))(x[None]),
    }
    expected = {"jit": 10.0, "grad": [2.0, 4.0], "scan": 20.0, "vmap": [10.0]}
    x = batch(strategy)
    passed = strategy.run(ways[way], args=(x, array))
    assert [part.tolist() for part in passed.values] == [expected[way]] * 2
    if (
        way == "scan"
    ):  # it compiles a program for several devices, which cannot run collectives with other replicas
        with pytest.raises(UnimplementedError, match=r"lies on several devices") as caught:
            strategy.run(ways[way], args=(x,))
        assert "args=(array,)" in str(caught.value)
    else:
        closed = strategy.run(ways[way], args=(x,))
        assert [part.tolist() for part in closed.values] == [expected[way]] * 2
