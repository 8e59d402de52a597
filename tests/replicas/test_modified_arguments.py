"""Functions that change copies of their arguments: an error, instead of a lost change."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import WAYS, each, mirrored, run

import evenfeed as tf


@jax.tree_util.register_dataclass
@dataclass
class Pair:
    a: object
    b: object


def put(d, x):
    d["w"] = d["w"] + x.sum()
    return x


def put_within(d, x):
    d["in"][0]["w"] = x.sum()
    return x


def append(values, x):
    values.append(x)
    return x


def set_field(pair, x):
    pair.a = pair.a + x.sum()
    return x


def count(d, x):
    d["n"] += 1
    return x


CHANGES = {
    "a dict": (put, lambda: {"w": jnp.zeros(())}),
    "a dict in a list": (put_within, lambda: {"in": [{}]}),
    "a list": (append, list),
    "a dataclass": (set_field, lambda: Pair(jnp.zeros(()), 1)),
    "a number": (count, lambda: {"n": 0}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_compiled_function_must_not_change_its_arguments(what):
    fn, make = CHANGES[what]
    with pytest.raises(ValueError, match=f"{fn.__name__} should not modify its argument"):
        tf.function(fn)(make(), jnp.ones(2))


def test_the_error_names_the_argument_and_the_line_of_the_function():
    with pytest.raises(ValueError, match=r"argument d\. It gets a copy") as caught:
        tf.function(put)({"w": jnp.zeros(())}, jnp.ones(2))
    assert f"test_modified_arguments.py:{put.__code__.co_firstlineno}" in str(caught.value)
    with pytest.raises(ValueError, match="argument d"):
        tf.function(put)(d={"w": jnp.zeros(())}, x=jnp.ones(2))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", CHANGES)
def test_replicas_must_not_change_what_all_are_given(what, way):
    strategy = mirrored(2)
    fn, make = CHANGES[what]
    x = each(strategy, lambda r: jnp.ones(2))
    given = make()
    with pytest.raises(ValueError, match=r"should not modify its argument args\[0\]. Each replica"):
        run(way, strategy, fn, given, x)


@pytest.mark.parametrize("lengths", [(2, 2), (2, 1)])
def test_a_captured_dict_that_run_is_given_is_not_changed_unnoticed(lengths):
    strategy = mirrored(2)
    params = {"w": jnp.zeros(())}
    x = each(strategy, lambda r: jnp.ones(lengths[r]))
    train = tf.function(lambda x: strategy.run(put, args=(params, x)))
    with pytest.raises(ValueError, match="should not modify its argument"):
        train(x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lengths", [(2, 2), (2, 1)])
def test_a_replica_may_do_what_it_likes_with_its_part_of_a_batch(way, lengths):
    strategy = mirrored(2)
    batch = {"x": each(strategy, lambda r: jnp.ones(lengths[r])), "n": 3}

    def scale(batch):
        batch["x"] = batch["x"] * batch.pop("n")
        return batch["x"]

    found = strategy.experimental_local_results(run(way, strategy, scale, batch))
    assert [part.tolist() for part in found] == [[3.0] * length for length in lengths]
    assert sorted(batch) == ["n", "x"]


@pytest.mark.parametrize("way", WAYS)
def test_a_replica_may_take_something_out(way):
    strategy = mirrored(2)
    given = {"a": jnp.float32(2), "b": [jnp.float32(3)]}

    def take(given, x):
        return given.pop("a") * given["b"].pop() * x

    found = run(way, strategy, take, given, each(strategy, lambda r: jnp.float32(r + 1)))
    assert [float(part) for part in strategy.experimental_local_results(found)] == [6.0, 12.0]
    assert sorted(given) == ["a", "b"]


@pytest.mark.parametrize("way", WAYS)
def test_trees_that_cannot_change_are_no_matter(way):
    strategy = mirrored(2)
    model = eqx.nn.Linear(2, 1, key=jax.random.key(0))
    x = each(strategy, lambda r: jnp.ones(2))

    def call(model, x):
        changed = eqx.tree_at(lambda m: m.bias, model, model.bias + 1)
        return changed(x) - model(x)

    arrays, rest = eqx.partition(model, eqx.is_array)
    found = run(way, strategy, lambda arrays, x: call(eqx.combine(arrays, rest), x), arrays, x)
    for part in strategy.experimental_local_results(found):
        np.testing.assert_allclose(part, [1.0])


@jax.tree_util.register_pytree_node_class
class Fresh:
    """A pytree that creates its leaves when it is flattened."""

    def __init__(self, value):
        self.value = value

    def tree_flatten(self):
        return (self.value * 1,), None

    @classmethod
    def tree_unflatten(cls, kind, leaves):
        return cls(*leaves)


@pytest.mark.parametrize("way", WAYS)
def test_a_tree_whose_leaves_are_always_new_is_not_taken_for_changed(way):
    strategy = mirrored(2)
    x = each(strategy, lambda r: jnp.ones(2))
    run(way, strategy, lambda fresh, x: fresh.value * x, Fresh(jnp.ones(())), x)
    assert float(tf.function(lambda fresh: fresh.value + 1)(Fresh(jnp.ones(())))) == 2.0
