"""Arguments are opened without a pytree, and calls of different structures run different programs."""

import jax
import jax.numpy as jnp
import pytest

import evenfeed as tf
from evenfeed.replicas.function import compiler
from evenfeed.replicas.function.flat_arguments import opened

X, Y = jnp.float32(1), jnp.float32(2)
CALLS = [
    ((X, Y),),
    (X, Y),
    ((X,), Y),
    (X, (Y,)),
    ((X,), (Y,)),
    ({"a": X, "b": Y},),
    ({"b": Y, "a": X},),
    ({"a": X}, Y),
    ({"a": X, "c": Y},),
    ([X, Y],),
    (((X, Y),),),
    ({1: X, 2: Y},),
    ((), X, Y),
]


def test_members_come_in_the_order_of_jax():
    args = (X, {"b": Y, "a": X}, (Y, Y))
    assert list(opened(args, [])) == jax.tree.leaves(args)


def test_calls_of_different_structures_have_different_keys():
    keys = []
    for args in CALLS:
        kinds = []
        members = list(opened(args, kinds))
        if all(isinstance(member, jax.Array) for member in members):
            keys.append((tuple(kinds), len(members)))
    same = 1  # a dict in another order
    assert len(set(keys)) == len(keys) - same


@pytest.mark.parametrize("times", [3])
def test_every_structure_gets_its_own_result(times):
    @tf.function
    def described(*args):
        leaves, tree = jax.tree.flatten(args)
        return jnp.float32(hash(str(tree)) % 1000) + 10 * leaves[0] + leaves[1]

    for _ in range(times):
        for args in CALLS:
            expected = hash(str(jax.tree.structure(args))) % 1000 + 12
            assert float(described(*args)) == expected


def test_batches_of_tuples_and_dicts_find_their_program_without_a_pytree(monkeypatch):
    @tf.function
    def step(batch):
        return jax.tree.leaves(batch)[0] + 1

    calls = ((X, Y),), ({"a": X, "b": Y},)
    for args in calls:
        step(*args)

    def refused(*_):
        raise AssertionError("flattened")

    monkeypatch.setattr(compiler.Compiler, "_key_and_arrays", refused)
    assert [float(step(*args)) for args in calls] == [2, 2]
