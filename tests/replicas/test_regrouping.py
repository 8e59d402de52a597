"""Regrouping the results of replicas, and splitting their arguments."""

import collections
import dataclasses

import jax
import jax.numpy as jnp
import pytest
from tests.mirroring import mirrored, number
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.replicas.regrouping import placed, regrouped, share_of

Pair = collections.namedtuple("Pair", "one two")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    weight: object
    count: object


def test_one_object_stays_itself():
    text, array = "text", jnp.ones(2)
    assert regrouped([text, text]) is text
    assert regrouped([array, array, array]) is array
    assert regrouped([None, None]) is None
    assert regrouped([array]) is array


def test_structures_are_joined_leaf_by_leaf():
    made = regrouped([Pair({"a": [r]}, State((r,), 3)) for r in range(2)])
    assert isinstance(made, Pair)
    assert made.one["a"][0].values == (0, 1)
    assert isinstance(made.two, State)
    assert made.two.weight[0].values == (0, 1)
    assert made.two.count == 3


def test_an_object_of_a_class_that_jax_does_not_know_is_a_leaf():
    objects = [object(), object()]
    assert regrouped(objects).values == tuple(objects)


def test_one_replica_may_return_nothing():
    assert regrouped([None, 3]).values == (None, 3)
    assert regrouped([{"a": 1}, {"a": None}])["a"].values == (1, None)


def test_a_variable_stays_itself():
    strategy = mirrored(2)
    with strategy.scope():
        variable = tf.Variable(1.0)
    assert strategy.run(lambda: variable) is variable


@pytest.mark.parametrize(
    ("one", "other"), [((1,), [1]), ((1,), (1, 2)), ({"a": 1}, {"b": 1}), ([1], 1), (Pair(1, 2), (1, 2))]
)  # fmt: skip
def test_unlike_structures_are_refused(one, other):
    with error_saying(
        ValueError,
        "The replicas returned different structures: replica 0 returned …",
        fix="return the same structure from every replica.",
    ):
        regrouped([one, other])


def test_a_share_is_a_replicas_part_and_what_goes_to_all():
    whole = {"x": tf.distribute.PerReplica([1, 2]), "y": "same", "z": None}
    assert share_of(whole, 1) == {"x": 2, "y": "same", "z": None}
    plain = {"y": object()}
    assert share_of(plain, 1) is plain


def test_arrays_that_are_bound_to_a_device_come_to_the_replicas_own():
    replicas = mirrored(2).extended.replicas
    bound = jax.device_put(1.0, replicas.devices[0])
    free = jnp.float32(2)
    share = placed(replicas, {"bound": bound, "free": free, "text": "a"}, 1)
    assert share["bound"].devices() == {replicas.devices[1]}
    assert share["free"] is free
    assert not share["bound"].committed, "JAX may bring it together with others"
    assert placed(replicas, bound, 0).unsafe_buffer_pointer() == bound.unsafe_buffer_pointer()


def test_a_per_replica_value_cannot_be_a_part_of_one():
    """A replica returns its own part. A distributed value that all replicas return stays the same object."""
    strategy = mirrored(2)
    value = tf.distribute.PerReplica([1, 2])
    assert strategy.run(lambda: value) is value
    with pytest.raises(ValueError, match="returned a distributed value where"):
        strategy.run(lambda: tf.distribute.PerReplica([number(), 2]))
